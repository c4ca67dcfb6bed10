"""Who may enter the embedded broker: whoever has the secret, by neither of its two ports else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from actors.runtime.program_keeper import ProgramKeeper
from actors.runtime.programs import HOST
from collector.broker.embedded import EmbeddedBroker
from collector.broker.home import BrokerHome
from collector.section import BrokerSection
from sources.opening import open_cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


class Running:
    """A broker with one topic."""

    def __init__(self, folder: Path) -> None:
        self.home = BrokerHome(folder, 0)
        self.home.make()
        section = BrokerSection(embedded=True)
        self.broker = EmbeddedBroker(section, folder, lambda: ["shop"], open_cluster)
        self.keeper = ProgramKeeper([self.broker])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    made = Running(tmp_path_factory.mktemp("state"))
    made.keeper.open()
    assert made.keeper.await_up("broker", 90), made.keeper.figures()
    yield made
    made.keeper.close()


def refused(settings: dict[str, object]) -> bool:
    try:
        AdminClient({**settings, "log_level": 0}).list_topics(timeout=4)
    except KafkaException:
        return True
    return False


def test_with_the_secret_one_enters(running: Running) -> None:
    settings = running.home.client_settings()
    assert "shop" in AdminClient(settings).list_topics(timeout=20).topics


@pytest.mark.parametrize(
    "wrong",
    [
        {"security.protocol": "PLAINTEXT"},
        {"sasl.password": "0" * 64},
        {"sasl.password": "none-yet"},
        {"sasl.username": "admin"},
        {"sasl.mechanism": "PLAIN"},
    ],
    ids=["no login", "wrong secret", "no secret", "another user", "plain"],
)
@pytest.mark.parametrize("listener", ["client", "controller"])
def test_without_it_nobody_does(running: Running, wrong: dict[str, str], listener: str) -> None:
    """Another user of this machine reaches both ports, and reads or writes by neither."""
    settings = dict(running.home.client_settings())
    if listener == "controller":
        text = (running.home.folder / "server.properties").read_text()
        found = re.search(r"CONTROLLER://[\d.]+:(\d+)", text)
        assert found is not None
        settings["bootstrap.servers"] = f"{HOST}:{found[1]}"
    assert refused({**settings, **wrong})


def test_the_clients_secret_is_not_the_controllers(running: Running) -> None:
    """Who may read and write records may not act as the broker itself."""
    text = (running.home.folder / "server.properties").read_text()
    found = re.search(r"CONTROLLER://[\d.]+:(\d+)", text)
    assert found is not None
    settings = {**running.home.client_settings(), "bootstrap.servers": f"{HOST}:{found[1]}"}
    assert refused({**settings, "sasl.mechanism": "PLAIN"})


def test_no_secret_is_in_a_command_line_or_log(running: Running) -> None:
    """``ps`` shows the one to everybody; the other is sent to whoever helps."""
    secret = str(running.home.client_settings()["sasl.password"])
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert secret.encode() not in process.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
    assert secret not in (running.home.folder / "broker.log").read_text()
    left = {path.name for path in running.home.folder.iterdir()}
    assert left == {"broker.log", "logs", "port", "secret", "server.properties", "tmp"}


def test_others_can_read_no_file_of_it(running: Running) -> None:
    """The folder is closed, whatever modes Kafka gives to what is in it."""
    assert running.home.folder.stat().st_mode & 0o077 == 0


def test_a_large_row_fits(running: Running) -> None:
    """Kafka's own bound is 1 MB; a row with a picture in it is more."""
    failed: list[str] = []
    producer = Producer({**running.home.client_settings(), "message.max.bytes": 60 << 20})
    producer.produce(
        "shop", bytes(20 << 20), on_delivery=lambda error, _: failed.append(str(error))
    )
    assert producer.flush(60) == 0
    assert failed == ["None"]
