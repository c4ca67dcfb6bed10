"""The dev broker: a real Kafka that starts, stops, is killed, keeps its data, never outlives us."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from actors.runtime.java import CHECKOUT
from demo.broker import BrokerError, DevBroker
from demo.produce import ProduceError, create_topic, produce
from demo.shop import Shop

pytestmark = [pytest.mark.integration, pytest.mark.machine, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """A running broker on a free port."""
    with DevBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running


def _read(bootstrap: str, topic: str, count: int) -> list[tuple[int, bytes]]:
    """Read messages of partition 0 from its start: offset and value of each."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    read: list[tuple[int, bytes]] = []
    while len(read) < count:
        batch = consumer.consume(count - len(read), timeout=20)
        assert batch, f"{len(read)} of {count} messages came"
        for message in batch:
            assert message.error() is None
            read.append((message.offset() or 0, bytes(message.value() or b"")))
    consumer.close()
    return read


def test_messages_keep_their_order_and_offsets(broker: DevBroker) -> None:
    """The stream lies in one partition as the shop gave it, at the offsets that produce told."""
    create_topic(broker.bootstrap, "ordered")
    offsets = produce(broker.bootstrap, "ordered", Shop(3000))
    expected = [message.value for message in Shop(3000).messages()]
    assert list(zip(offsets, expected, strict=True)) == _read(
        broker.bootstrap, "ordered", len(expected)
    )


@pytest.mark.long
def test_data_outlives_a_kill(broker: DevBroker) -> None:
    """After SIGKILL and a restart the port is the same and the messages are there."""
    create_topic(broker.bootstrap, "kept")
    produce(broker.bootstrap, "kept", Shop(100))
    before, address = _read(broker.bootstrap, "kept", 10), broker.bootstrap
    broker.kill()
    broker.start()
    assert (address, before) == (broker.bootstrap, _read(broker.bootstrap, "kept", 10))


def test_data_outlives_a_stop(broker: DevBroker) -> None:
    """After an orderly stop and a restart a topic is still there: creating it again fails."""
    create_topic(broker.bootstrap, "again")
    broker.stop()
    broker.start()
    with pytest.raises(ProduceError, match="already exists"):
        create_topic(broker.bootstrap, "again")


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    """Somebody listens there: said at once, without a Java trace."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BrokerError) as told:
            DevBroker(tmp_path, port).start()
    assert str(told.value) == f"port {port} on 127.0.0.1 is in use"


def test_a_broker_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    """A data folder of another cluster: the error holds the end of the broker's log."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "meta.properties").write_text(
        "version=1\nnode.id=7\ncluster.id=another-cluster-000000\n"
    )
    with pytest.raises(BrokerError, match=r"meta\.properties"):
        DevBroker(tmp_path).start()


def _command(data: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "demo.broker", "--port", "0", "--data", str(data)],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_the_command_ends_by_sigterm(tmp_path: Path) -> None:
    """It prints one line when it is ready; SIGTERM ends it with code 0."""
    command = _command(tmp_path)
    assert command.stdout is not None
    ready = command.stdout.readline()
    command.send_signal(signal.SIGTERM)
    rest = command.stdout.read()
    assert ready.startswith("broker ready on 127.0.0.1:")
    assert (command.wait(30), rest) == (0, "")


def _pids(data: Path) -> list[int]:
    """The processes of the broker on a data folder: the leash and the JVM."""
    settings = os.fsencode(data / "server.properties")
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # Others' processes end while this looks.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if settings in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


@pytest.mark.long
@pytest.mark.parametrize("victim", ["parent", "leash"])
def test_the_broker_dies_with_its_parent(tmp_path: Path, victim: str) -> None:
    """Whichever process above it is killed, the JVM ends too."""
    command = _command(tmp_path)
    assert command.stdout is not None
    assert command.stdout.readline().startswith("broker ready")
    leash, jvm = sorted(_pids(tmp_path))
    ends = [os.pidfd_open(leash), os.pidfd_open(jvm)]
    os.kill(command.pid if victim == "parent" else leash, signal.SIGKILL)
    for end in ends:
        assert wait([end], 20), "it lives on"
        os.close(end)
    command.wait(30)
    command.stdout.close()
