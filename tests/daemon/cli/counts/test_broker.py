"""``binlogd counts`` on a real broker: its statuses, its document, what it refuses."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.state.offset_file import OffsetFile
from demo.broker import DevBroker
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot, TargetMark
from sources.base.port import LogRecord
from sources.kafka.topics import KafkaTopics
from tests.daemon.cli.counts.debezium_log import MINUTE, RANGE, DebeziumLog

TARGET = "lake.shop.t"


class World:
    """A topic, and the pipeline that reads it."""

    def __init__(self, folder: Path, broker: DevBroker, format_: str = "debezium-json") -> None:
        self.broker, self.topic = broker.bootstrap, f"counts-{uuid.uuid4().hex[:8]}"
        self.config, self.state = folder / "config.toml", folder / "state"
        self.state.mkdir()
        self.config.write_text(
            f'[daemon]\nstate_dir = "state"\n[kafka]\nbootstrap.servers = "{self.broker}"\n'
            '[sink.lake]\nkind = "sqlite"\npath = "lake.db"\n'
            f'[pipeline.p]\ntopics = ["{self.topic}"]\nformat = "{format_}"\n'
            'target = "lake.{database}.{table}"\ninclude = ["shop.*"]\n'
        )

    def make(self, **config: str) -> None:
        """Its topic, which keeps old records."""
        topic = NewTopic(self.topic, 1, 1, config={"retention.ms": "-1", **config})
        admin = AdminClient({"bootstrap.servers": self.broker})
        admin.create_topics([topic])[self.topic].result(20)

    def write(self, log: DebeziumLog) -> None:
        """Have the topic hold a log's records, with their times."""
        self.make()
        producer = Producer({"bootstrap.servers": self.broker})
        self.send(producer, [each for one in log.source.records.values() for each in one])
        assert producer.flush(20) == 0

    def send(self, producer: Producer, records: Iterable[LogRecord]) -> None:
        for each in records:
            producer.produce(self.topic, each.value, partition=0, timestamp=each.time_ms or 0)

    def record(self, frontier: int = 0, topic_id: str | None = None) -> None:
        id_ = KafkaTopics({"bootstrap.servers": self.broker}).log(self.topic).describe()[0]
        source = TopicPartition(self.topic, 0)
        OffsetFile(self.state, "p").save(
            Snapshot(
                "p", "binlogd-p", {self.topic: topic_id or id_}, {source: PartitionState(frontier)},
                {TARGET: TargetMark("1", {source: frontier - 1})},
            )
        )  # fmt: skip

    def counts(self, *words: str) -> Result:
        span = ("--from", text(RANGE.start), "--to", text(RANGE.stop))
        return CliRunner().invoke(app, ("counts", *words, *span, "-c", str(self.config)))

    def document(self, *words: str) -> tuple[int, Any]:
        done = self.counts("--json", *words)
        assert done.stdout, done.stderr
        return done.exit_code, json.loads(done.stdout)


def text(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).isoformat()


@pytest.fixture
def world(tmp_path: Path, store_broker: DevBroker) -> World:
    return World(tmp_path, store_broker)


def lacking() -> DebeziumLog:
    """One transaction of two that lacks a change."""
    log = DebeziumLog().framed().at(0)
    log.transaction("6", "I", "shop.u:U")
    log.at(1).begin("7")
    log.row("7", 2)
    log.end("7", {"shop.t": 2})
    return log.passed()


def test_a_missing_message_is_named(world: World) -> None:
    """Status 1: table, minute, transaction, the END's offset. The other table alone: 0."""
    world.write(lacking())
    status, found = world.document(TARGET)
    assert status == 1
    assert found["transactions"] == [{
        "transaction": "7", "end": f"{world.topic}:0:9", "minute": MINUTE + 1,
        "source_table": "shop.t", "tables": [TARGET], "expected": 2, "found": 1,
    }]  # fmt: skip
    assert [(c["minute"] - MINUTE, c["inserted"], c["expected"]) for c in found["counts"]] == [
        (0, 1, 1), (1, 1, 2),
    ]  # fmt: skip
    assert found["tables"][TARGET]["verdict"] == "differs"
    assert found["read"] == {f"{world.topic}:0": {"from": 0, "to": 13}}
    assert world.document("lake.shop.u")[0] == 0
    shown = world.counts().stdout
    assert f"transaction 7, END at {world.topic}:0:9, " in shown
    assert "shop.t has 1 of 2 events" in shown
    assert f"read {world.topic}:0 from 0 to 13" in shown


def test_all_tables_are_counted_where_none_is_named(world: World) -> None:
    """The format is detected where nothing is recorded of it."""
    log = DebeziumLog().framed().at(0)
    log.transaction("6", "I", "shop.u:U")
    world.config.write_text(world.config.read_text().replace('"debezium-json"', '"auto"'))
    world.write(log.passed())
    status, found = world.document()
    assert (status, sorted(found["tables"])) == (0, [TARGET, "lake.shop.u"])
    assert found["tables"][TARGET] == {
        "pipeline": "p", "verdict": "agrees", "inserted": 1, "updated": 0, "deleted": 0,
        "expected": 1, "said_by": "transactions", "read_from_table": 0, "why": [],
        "lacking_minutes": [],
    }  # fmt: skip


def test_rows_that_a_route_leaves_out_are_counted(world: World) -> None:
    """The log has them, whatever a filter makes of them; another target has the table, too."""
    routes = "".join(
        f'[[pipeline.p.route]]\ntables = ["shop.t"]\ntarget = "lake.{name}"\n{more}'
        for name, more in (("shop.few", 'filter = "id > 99"\n'), ("shop.all", ""))
    )
    text_ = world.config.read_text().replace('include = ["shop.*"]\n', "")
    world.config.write_text(text_.replace('target = "lake.{database}.{table}"\n', "") + routes)
    world.write(lacking())
    status, found = world.document()
    verdicts = {name: each["verdict"] for name, each in found["tables"].items()}
    assert (status, verdicts) == (1, {"lake.shop.all": "differs", "lake.shop.few": "differs"})
    assert found["transactions"][0]["tables"] == ["lake.shop.few", "lake.shop.all"]


def test_what_a_producer_took_back_counts_nothing(world: World) -> None:
    """Kafka's aborted transactions: only what is committed is read."""
    log = DebeziumLog().framed().at(0)
    log.transaction("6", "I")
    log.begin("7")
    log.row("7", 1)
    kept, taken = log.source.records, DebeziumLog().at(0)
    taken.row("6", 2)
    taken.row("7", 2)
    world.make()
    producer = Producer({"bootstrap.servers": world.broker, "transactional.id": world.topic})
    producer.init_transactions(20)
    producer.begin_transaction()
    world.send(producer, next(iter(taken.source.records.values())))
    producer.flush(20)
    producer.abort_transaction(20)
    producer.begin_transaction()
    log.end("7", {"shop.t": 1})
    log.passed()
    world.send(producer, next(iter(kept.values())))
    producer.commit_transaction(20)
    status, found = world.document(TARGET)
    assert (status, found["tables"][TARGET]["inserted"], found["repeated"]) == (0, 2, {})


def test_what_nothing_tells_is_never_status_0(world: World) -> None:
    """No ENDs; a range that is not over."""
    log = DebeziumLog().at(-1)
    log.row(None, 0)
    log.at(0).row(None, 0)
    log.at(30).row(None, 0)
    world.write(log)
    status, found = world.document(TARGET)
    assert (status, found["tables"][TARGET]["verdict"]) == (2, "not told")
    assert "nothing in this log says what should have come" in world.counts().stdout


def test_a_compacted_topic_is_refused(world: World) -> None:
    """What it lost would look as if it had never been there."""
    world.make(**{"cleanup.policy": "compact,delete"})
    done = world.counts()
    assert (done.exit_code, done.stdout) == (2, "")
    assert "changes of a key that changed again may be gone" in done.stderr


def test_another_log_than_the_recorded_one_is_refused(world: World) -> None:
    """A topic that was made again; one that ends below the committed position."""
    world.write(lacking())
    world.record(topic_id="another")
    assert "was deleted and recreated since the last run" in world.counts().stderr
    world.record(frontier=99)
    done = world.counts()
    assert done.exit_code == 2
    assert "ends at 13, below the committed position 99" in done.stderr


def test_what_is_asked_wrongly_is_refused(world: World) -> None:
    done = world.counts("lake.other.t")
    assert (done.exit_code, done.stderr) == (
        2, "binlogd: 'lake.other.t': no target of any route, such as lake.shop.orders\n",
    )  # fmt: skip
    words = ("counts", "--from", "5s", "--to", "10s", "-c", str(world.config))
    assert "at least a minute after" in CliRunner().invoke(app, words).stderr


def test_a_table_that_nobody_knows_agrees_with_nothing(world: World) -> None:
    """A name that is misspelt fits the route; one that is quiet is known by what is recorded."""
    world.write(DebeziumLog().framed().passed())
    status, found = world.document("lake.shop.tt")
    assert (status, found["tables"]["lake.shop.tt"]["verdict"]) == (2, "not told")
    assert "misspelt" in world.counts("lake.shop.tt").stdout
    assert world.document(TARGET)[0] == 2
    world.record()
    assert world.document(TARGET)[0] == 0


def test_a_topic_that_is_missing_is_refused(world: World) -> None:
    assert world.counts().exit_code == 2
