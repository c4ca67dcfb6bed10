"""What opens a gate, on a real broker: messages that look as if they proved more than they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from daemon.cli.gate.watch import PipelineGate
from daemon.config.file import load
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.here import Offline
from demo.broker import DevBroker
from offsets.cuts import Cut
from offsets.position import TopicPartition
from tests.daemon.cli.counts.debezium_log import MINUTE, DebeziumLog
from tests.daemon.cli.counts.test_broker import TARGET, World, text
from tests.daemon.cli.counts.test_held import finish
from tests.integration.rig import canal

CUT = 1_700_000_000

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def world(tmp_path: Path, store_broker: DevBroker) -> World:
    made = World(tmp_path, store_broker)
    made.config.write_text(made.config.read_text() + 'keys = ["id"]\n')
    return made


def gate(world: World, minute: int, *more: str) -> tuple[int, str]:
    """Its status once, and what it says on standard error."""
    span = "--through", text(MINUTE + minute), "--timeout", "0s", *more
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


class OneCut:
    """A list of cuts that has one, with a version of the table that is not the present one."""

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        versions = {TARGET: "another"}
        self._cut = Cut(CUT, "p", "time", positions, None, None, versions, {})

    def listed(self) -> list[Cut]:
        return [self._cut]

    def read(self, numbers: Sequence[int]) -> list[Cut]:
        return [self._cut]

    def withdrawn(self, cuts: Sequence[Cut]) -> list[Cut | None]:
        return [None for _ in cuts]


def in_cut(world: World, position: int) -> str | None:
    """Why a cut at this position of the log lacks something."""
    config, through_ms = load(world.config), (MINUTE + 1) * 60_000
    cuts: Any = OneCut({TopicPartition(world.topic, 0): position})
    here = Offline(config, lambda good, line: None, {})
    reads = PipelineConfig(config, "p")
    return PipelineGate(here, reads, [TARGET], through_ms, cuts=cuts).look().shut.get(TARGET)


def day(key: int, minute: int, text_: str) -> bytes:
    """A row with a date, of a minute."""
    types = {"id": "int(11)", "day": "date"}
    row, es = {"id": key, "day": text_}, (MINUTE + minute) * 60_000
    return canal("shop.t", "INSERT", [row], mysqlType=types, es=es)


def letters(world: World, *words: str) -> str:
    """A command about dead letters that succeeds; what it prints."""
    done = CliRunner().invoke(app, ("dead-letters", *words, "-c", str(world.config)))
    assert done.exit_code == 0, done.output
    return done.stdout


def produce(world: World, values: Sequence[bytes]) -> None:
    producer = Producer({"bootstrap.servers": world.broker})
    for value in values:
        producer.produce(world.topic, value, partition=0)
    assert producer.flush(20) == 0


def test_a_replayed_letter_shuts_it_until_its_record_is_written(
    tmp_path: Path, store_broker: DevBroker
) -> None:
    """It is in the log again, behind what the moment needs, and may become a letter again."""
    world = World(tmp_path, store_broker, "canal-json")
    strict, kinder = 'zero_dates = "error"\n', 'zero_dates = "null"\n'
    bare = world.config.read_text() + 'on_bad_record = "dead-letter"\n'
    world.config.write_text(bare + strict)
    world.make()
    produce(world, [day(1, -1, "2026-01-01"), day(2, 0, "0000-00-00"), day(3, 5, "2026-01-01")])
    finish(world)
    assert "a dead letter is open: " in gate(world, 1)[1]
    world.config.write_text(bare + kinder)
    letters(world, "replay", "--all", "--execute")
    status, why = gate(world, 1)
    assert (status, "the committed position of" in why) == (75, True), why
    world.config.write_text(bare + strict)
    finish(world)
    assert '"state": "open"' in letters(world, "list", "--json")
    status, why = gate(world, 1)
    assert (status, "a dead letter is open: " in why) == (75, True), why
    world.config.write_text(bare + kinder)
    letters(world, "replay", "--all", "--execute")
    finish(world)
    assert gate(world, 1) == (0, "")
    assert in_cut(world, 3) == f"cut {CUT} was made before"
    assert in_cut(world, 9) is None


def test_a_sink_of_counts_that_is_away_is_waited_for(world: World) -> None:
    """It may be back within the time; asked once, the counts are refused."""
    world.config.write_text(
        world.config.read_text() + 'counts = "db.binlogd.counts"\n[sink.db]\nkind = "jdbc"\n'
        'url = "jdbc:postgresql://127.0.0.1:1/postgres"\nuser = "nobody"\n'
    )
    log = DebeziumLog().framed().at(0)
    log.transaction("1", "I")
    world.write(log.passed())
    world.record(frontier=9)
    status, why = gate(world, 1, "--counts-from", text(MINUTE))
    assert (status, "127.0.0.1" in why) == (75, True), why
    done = world.counts(TARGET)
    assert (done.exit_code, "127.0.0.1" in done.stderr) == (2, True), done.output
