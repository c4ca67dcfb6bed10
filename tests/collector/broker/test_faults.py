"""What ends a broker by itself: no room, no memory, its port taken. Said by name, and survived."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from actors.runtime.program_keeper import ProgramFigures, ProgramKeeper, ProgramTimes
from actors.runtime.programs import HOST
from collector.broker.embedded import EmbeddedBroker
from collector.broker.home import BrokerHome
from collector.section import BrokerSection
from sources.kafka.admin import Admin
from sources.opening import open_cluster
from tests.needs import missing, tool

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]

WITHIN_S = 90.0


class Kept:
    """A broker of its own with its keeper."""

    def __init__(self, state: Path, section: BrokerSection) -> None:
        self.home = BrokerHome(state, section.port)
        self.home.make()
        self.broker = EmbeddedBroker(section, state, lambda: ["shop"], open_cluster)
        self.keeper = ProgramKeeper([self.broker], ProgramTimes(ask_every_s=0.5))

    def figures(self) -> ProgramFigures:
        return self.keeper.figures()[0]

    def why(self, said: str) -> None:
        """Wait until its state says this."""
        pause = threading.Event()
        for _ in range(round(WITHIN_S / 0.1)):
            if said in (self.figures().why or ""):
                return
            pause.wait(0.1)
        raise AssertionError(self.figures())

    def produce(self, count: int, size: int) -> int:
        """Send so many records of so many bytes; gives how many the broker has answered for."""
        answers: list[bool] = []
        producer = Producer(
            {**self.home.client_settings(), "log_level": 0, "message.timeout.ms": 8000, "acks": -1}
        )
        for _ in range(count):
            producer.produce(
                "shop", bytes(size), on_delivery=lambda error, _: answers.append(error is None)
            )
            producer.poll(0)
        producer.flush(30)
        return sum(answers)

    def end(self) -> int:
        """Where the topic ends."""
        (end,) = Admin(self.home.client_settings()).topic_ends(["shop"]).values()
        return end


@contextmanager
def kept(state: Path, section: BrokerSection) -> Iterator[Kept]:
    made = Kept(state, section)
    made.keeper.open()
    try:
        assert made.keeper.await_up("broker", WITHIN_S), made.figures()
        yield made
    finally:
        made.keeper.close()


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    folder.mkdir()
    words = ["-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
    if subprocess.run([tool("mount"), *words], check=False, capture_output=True).returncode:
        missing("mount", "only root may")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_takes_nothing_that_was_answered(tmp_path: Path) -> None:
    """The broker ends and says why; with room it comes back by itself, and has each record that
    its producer was answered for."""
    section = BrokerSection(embedded=True, max_bytes=1 << 30)
    with small_disk(tmp_path / "disk", 120) as disk, kept(disk / "state", section) as broker:
        filler = disk / "filler"
        filler.write_bytes(bytes(40 << 20))
        answered = broker.produce(400, 256 << 10)
        assert 0 < answered < 400
        broker.why("No space left on device")
        filler.unlink()
        assert broker.keeper.await_up("broker", WITHIN_S), broker.figures()
        assert broker.end() >= answered
        assert broker.produce(10, 1000) == 10


def test_a_port_that_is_taken_is_named_and_waited_for(tmp_path: Path) -> None:
    """Of a configured port; when the other program has gone the broker is there."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        made = Kept(tmp_path, BrokerSection(embedded=True, port=port))
        made.keeper.open()
        try:
            made.why(f"port {port} on {HOST} is in use by another program: end that one")
            other.close()
            assert made.keeper.await_up("broker", WITHIN_S), made.figures()
        finally:
            made.keeper.close()


def test_a_heap_that_is_used_up_ends_the_broker_which_is_replaced(tmp_path: Path) -> None:
    """Kafka's threads would go on without the one that died: the process ends instead."""
    section = BrokerSection.model_construct(
        embedded=True, port=0, max_bytes=1 << 30, max_age_s=86_400.0, heap_bytes=80 << 20
    )
    with kept(tmp_path, section) as broker:
        settings = {**broker.home.client_settings(), "message.max.bytes": 62 << 20}
        producer = Producer(
            {**settings, "log_level": 0, "message.timeout.ms": 20_000, "socket.timeout.ms": 10_000}
        )
        producer.produce("shop", bytes(61 << 20))
        producer.flush(5)
        broker.why("ended with code 3")
        producer.purge()
        producer.flush(5)
        assert broker.keeper.await_up("broker", WITHIN_S), broker.figures()


def test_a_format_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    """A folder that is half made has no user: nobody would ever enter."""
    (tmp_path / "broker" / "logs.new").mkdir(parents=True)
    (tmp_path / "broker" / "logs.new" / "meta.properties").write_text("version=1\n")
    with kept(tmp_path, BrokerSection(embedded=True)) as broker:
        assert broker.produce(3, 10) == 3
