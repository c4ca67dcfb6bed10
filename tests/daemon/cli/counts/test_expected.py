"""``binlogd counts`` and the gate where a topic, or a query of the source, says what there is: a
real broker, real servers, Canal's messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from demo.broker import DevBroker
from tests.daemon.cli.counts.debezium_log import MINUTE, RANGE
from tests.daemon.cli.counts.test_broker import TARGET, World, text
from tests.daemon.cli.counts.test_gate_proofs import gate
from tests.daemon.cli.counts.test_held import finish
from tests.databases.base.servers import PASSWORD, Server
from tests.integration.rig import canal
from tests.live.program import HOST

pytestmark = pytest.mark.timeout(240)

EVENTS = (("INSERT", -1), ("INSERT", 0), ("INSERT", 0), ("UPDATE", 1), ("INSERT", 30))
"""Operation and minute, by the source's clock."""


@pytest.fixture
def world(tmp_path: Path, store_broker: DevBroker) -> World:
    made = World(tmp_path, store_broker, "canal-json")
    made.config.write_text(made.config.read_text() + 'keys = ["id"]\n')
    made.make()
    with_records(made, made.topic, [change(*each) for each in EVENTS])
    return made


def change(kind: str, minute: int) -> tuple[int, bytes]:
    at_ms = (MINUTE + minute) * 60_000 + 1000
    row = {"id": minute + 2, "name": "a", "qty": 1}
    return at_ms, canal("shop.t", kind, [row], es=at_ms, ts=at_ms + 5)


def with_records(world: World, topic: str, records: list[tuple[int, bytes]]) -> None:
    producer = Producer({"bootstrap.servers": world.broker})
    for at_ms, value in records:
        producer.produce(topic, value, partition=0, timestamp=at_ms)
    assert producer.flush(20) == 0


def say(world: World, *told: Any, minute: int = 4) -> None:
    at_ms = (MINUTE + minute) * 60_000
    records = [(at_ms, json.dumps(each).encode()) for each in told]
    with_records(world, f"{world.topic}-counts", records)


def with_counts_topic(world: World, **config: str) -> None:
    """Its topic of counts, which begins before the range."""
    topic = NewTopic(f"{world.topic}-counts", 1, 1, config={"retention.ms": "-1", **config})
    admin = AdminClient({"bootstrap.servers": world.broker})
    admin.create_topics([topic])[topic.topic].result(20)
    asked = f'expected_counts = {{ topic = "{topic.topic}" }}\n'
    world.config.write_text(world.config.read_text() + asked)
    say(world, {"table": "shop.t", "closed": MINUTE - 60}, minute=-60)


def count(minute: int, operation: str, n: int, **more: Any) -> Mapping[str, Any]:
    return {"table": "shop.t", "minute": MINUTE + minute, "operation": operation, "n": n} | more


def test_a_topic_says_what_should_be_there(world: World) -> None:
    """Counts, and the gate that waits for them: shut, until all that is closed is in the log."""
    with_counts_topic(world)
    finish(world)
    say(world, count(0, "insert", 2), [count(1, "update", 1), count(1, "update", 1)])
    status, found = world.document(TARGET)
    assert (status, found["tables"][TARGET]["verdict"]) == (2, "not told")
    status, why = gate(world, 3, "--counts-from", text(MINUTE))
    assert (status, "shop.t is not closed through" in why) == (75, True), why
    say(world, {"table": "shop.t", "closed": RANGE.stop})
    status, found = world.document(TARGET)
    table = found["tables"][TARGET]
    assert (status, table["expected"], table["said_by"]) == (0, 3, f"topic {world.topic}-counts")
    assert [each["expected"] for each in found["counts"]] == [2, 1]
    assert gate(world, 3, "--counts-from", text(MINUTE)) == (0, "")
    say(world, count(2, "delete", 1, part="b"))
    status, found = world.document(TARGET)
    (lacks,) = found["tables"][TARGET]["lacking_minutes"]
    assert (status, lacks["minute"], lacks["operation"]) == (1, MINUTE + 2, "delete")
    line = "shop.t has 0 of 1 delete in the log, by topic"
    assert line in world.counts(TARGET).stdout
    status, why = gate(world, 3, "--counts-from", text(MINUTE))
    assert (status, line in why) == (75, True), why


def test_a_topic_that_loses_messages_tells_nothing(world: World) -> None:
    """A compacted one; one that is not there is refused."""
    with_counts_topic(world, **{"cleanup.policy": "compact,delete"})
    status, found = world.document(TARGET)
    assert status == 2
    assert "counts of it may be gone" in found["tables"][TARGET]["why"][0]
    config = world.config.read_text().replace("-counts", "-nowhere")
    world.config.write_text(config)
    done = world.counts(TARGET)
    assert (done.exit_code, f"{world.topic}-nowhere" in done.stderr) == (2, True)


AUDIT = [
    "CREATE TABLE shop.audit (tab varchar(99), minute bigint, op varchar(9))",
    "INSERT INTO shop.audit VALUES "
    + ", ".join(f"('shop.t', {MINUTE + at}, '{op.lower()}')" for op, at in EVENTS),
]
QUERY = (
    "SELECT tab, minute, op, count(*) FROM shop.audit WHERE tab LIKE 'shop.%' AND "
    "minute >= {from} AND minute < {to} GROUP BY tab, minute, op;"
)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "mysql"])
def test_a_query_says_what_should_be_there(
    world: World, servers: Mapping[str, Server], kind: str
) -> None:
    """It is asked of the pipeline's database, in a session that only reads."""
    server, made = servers[kind], "SCHEMA" if kind == "postgresql" else "DATABASE"
    server.run([f"CREATE {made} shop", *AUDIT])
    section = server.section()
    config = world.config.read_text() + f"database = 'shop'\nexpected_counts.query = \"{QUERY}\"\n"
    world.config.write_text(
        f"{config}[database.shop]\nurl = '{section.url}'\nuser = 'jobs'\n"
        f"password = {json.dumps(PASSWORD)}\n"
    )
    status, found = world.document(TARGET)
    table = found["tables"][TARGET]
    assert (status, table["expected"]) == (0, 3), table
    assert table["said_by"] == "query of database.shop"
    server.run([f"INSERT INTO shop.audit VALUES ('shop.t', {MINUTE + 1}, 'delete')"])
    status, found = world.document(TARGET)
    assert (status, found["tables"][TARGET]["lacking_minutes"][0]["operation"]) == (1, "delete")
    server.run([f"INSERT INTO shop.audit VALUES ('shop.t', {MINUTE + 1}, 'truncate')"])
    status, found = world.document(TARGET)
    assert (status, found["tables"][TARGET]["verdict"]) == (2, "not told")
    assert "'truncate' is no operation" in found["tables"][TARGET]["why"][0]
    config = world.config.read_text()
    world.config.write_text(config.replace("SELECT tab", "DELETE FROM shop.audit; SELECT tab"))
    done = world.counts(TARGET)
    assert done.exit_code == 2, done.output
    assert HOST not in done.stdout
    assert len(server.open().ask("SELECT tab FROM shop.audit")) == len(EVENTS) + 2
