"""What opens a gate, on a real broker: messages that look as if they proved more than they do."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from demo.broker import DevBroker
from tests.daemon.cli.counts.debezium_log import MINUTE, DebeziumLog
from tests.daemon.cli.counts.test_broker import TARGET, World, text
from tests.daemon.cli.counts.test_held import finish

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def world(tmp_path: Path, store_broker: DevBroker) -> World:
    made = World(tmp_path, store_broker)
    made.config.write_text(made.config.read_text() + 'keys = ["id"]\n')
    return made


def gate(world: World, minute: int) -> tuple[int, str]:
    """Its status once, and what it says on standard error."""
    span = "--through", text(MINUTE + minute), "--timeout", "0s"
    done = CliRunner().invoke(app, ("gate", "wait", TARGET, *span, "-c", str(world.config)))
    return done.exit_code, done.stderr


def send_more(world: World, log: DebeziumLog, begin: int) -> None:
    """What a log has from an offset on."""
    producer = Producer({"bootstrap.servers": world.broker})
    (records,) = log.source.records.values()
    world.send(producer, records[begin:])
    assert producer.flush(20) == 0


def test_a_statement_of_its_own_time_proves_nothing(world: World) -> None:
    """A session may set its time: rows of tomorrow are no sign that today is over."""
    log = DebeziumLog().framed().at(0, 30)
    log.begin("7")
    log.row("7", 1, ts_ms=(MINUTE + 1440) * 60_000)
    log.end("7", {"shop.t": 1})
    world.write(log)
    finish(world)
    status, why = gate(world, 1)
    assert (status, "waits for a change of after" in why) == (75, True), why
    there = len(log.source.records[next(iter(log.source.logs))])
    log.at(0, 50).transaction("8", "U")
    log.at(2).transaction("9", "U")
    send_more(world, log, there)
    assert "the committed position of" in gate(world, 1)[1]
    finish(world)
    assert gate(world, 1)[0] == 0
