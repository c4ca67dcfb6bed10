"""Tables of Debezium's records over six partitions, as a producer's own partitioner has them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from typer.testing import CliRunner, Result

from changes.formats.engine.format import unpack
from daemon.cli.__main__ import app
from settings.exit import Exit
from tests.integration.rig import Rig
from tests.integration.test_process import CHECKOUT, ended
from tests.integration.test_sqlite_sink import start
from tests.simulation.keyed.stream import KeyedSource
from tests.simulation.source import Message
from tests.sparkwriter.databases import Server, running

BY_KEY = {"format": "debezium-json", "partitioned_by": "key", "partitioner": "murmur2"}
SIX = 6
COLUMNS = ("id", "v")


def six(rig: Rig, partitions: int = SIX) -> None:
    """The test's topic has so many partitions."""
    rig.topic = f"{rig.topic}-keyed"
    rig.create_topic(rig.topic, partitions)


def produce(rig: Rig, messages: Sequence[Message]) -> None:
    """By the client's own partitioner: what Java's clients choose by default."""
    servers = {"bootstrap.servers": rig.broker.bootstrap, "partitioner": "murmur2_random"}
    producer = Producer(servers)
    for message in messages:
        record = unpack(message.value)
        headers = [(name, value) for name, value in record.headers]
        producer.produce(rig.topic, record.value, record.key, headers=headers)
    assert producer.flush(30) == 0


def changes(rig: Rig, source: KeyedSource, steps: int) -> list[Message]:
    """What so many statements lead to."""
    begin = len(source.made)
    for _ in range(steps):
        source.step()
    return source.made[begin:]


def section(rig: Rig, **more: Any) -> dict[str, Any]:
    """A pipeline whose keys are numbers. No static member: Kafka gives one that comes back the
    partitions that it had, and not those that were added meanwhile."""
    dynamic = {"group.instance.id": ""}
    types = {"id": "bigint"}
    return rig.pipeline(**BY_KEY, topics=[rig.topic], types=types, kafka=dynamic, **more)


def expected(source: KeyedSource, table: str) -> list[tuple[int, str | None]]:
    """What the source has of a table."""
    return [(key, row["v"]) for key, row in sorted(source.rows[table].items())]


def test_six_partitions_of_moving_keys_are_equal_in_the_lake(rig: Rig) -> None:
    """By two runs, and the second one with eight partitions: what came before was applied."""
    six(rig)
    source = KeyedSource(random.Random(5), SIX, 2, rig.db)
    config = rig.write_config(p=section(rig))
    for partitions in (SIX, 8):
        produce(rig, changes(rig, source, 250))
        assert rig.run(config) is Exit.OK, rig.stderr
        for table in source.rows:
            assert rig.select(table, COLUMNS, "id") == expected(source, table)
        if partitions == SIX:
            grow(rig, 8)
    marks = rig.snapshot().targets[f"lake.{rig.db}.t0"].hwms
    assert len(marks) == 8


def grow(rig: Rig, partitions: int) -> None:
    """Partitions are added, and clients see them."""
    admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
    admin.create_partitions([NewPartitions(rig.topic, partitions)])[rig.topic].result(20)
    end = time.monotonic() + 30
    while len(admin.list_topics(rig.topic, 20).topics[rig.topic].partitions) < partitions:
        assert time.monotonic() < end


def test_partitions_that_are_added_before_the_rest_was_read_refuse_the_table(rig: Rig) -> None:
    """Nothing says which of two partitions' records came first. A table that is not of that topic
    goes on."""
    other = f"{rig.topic}-other"
    rig.create_topic(other)
    six(rig, 2)
    source = KeyedSource(random.Random(7), 2, 1, rig.db)
    produce(rig, changes(rig, source, 60))
    grow(rig, SIX)
    produce(rig, changes(rig, source, 60))
    calm = KeyedSource(random.Random(8), 1, 1, rig.db)
    calm.rows = {"calm": calm.rows.pop("t0")}
    calm.columns = {"calm": calm.columns.pop("t0")}
    keyed, rig.topic = rig.topic, other
    produce(rig, changes(rig, calm, 30))
    more = {"topics": [keyed, other], "on_refused_target": "quarantine", "group": f"g-{rig.db}"}
    config = rig.write_config(p={**section(rig), **more})
    rig.run(config)
    (refused,) = rig.events("quarantined")
    assert refused["target"] == f"lake.{rig.db}.t0"
    assert f"of {SIX}: another partitioner wrote it" in refused["reason"]
    assert "`binlogd tables load`" in refused["reason"]
    assert rig.select("calm", COLUMNS, "id") == expected(calm, "calm")


@pytest.fixture(scope="module")
def postgres() -> Any:
    with running("postgres") as started:
        yield started


def in_postgres(rig: Rig, server: Server) -> Path:
    """The same into a database: no Java, no Spark."""
    sink = ['kind = "jdbc"', f'url = "{server.url}"', f'user = "{server.user}"']
    return without_spark(rig, sink, 'id = "bigint"')


def without_spark(rig: Rig, sink: list[str], types: str, **more: Any) -> Path:
    """A configuration with such a sink, and the types of some columns."""
    pipeline = {**section(rig), "target": "copy.{database}.{table}", **more}
    for left_out in ("write", "kafka", "types"):
        del pipeline[left_out]
    lines = [
        "[daemon]", f'state_dir = "{rig.folder}/state"', f'staging_dir = "{rig.folder}/staging"',
        "[log]", 'format = "json"', f'file = "{rig.log_file}"', "[batch]", "max_age_s = 0.2",
        "[kafka]", f'"bootstrap.servers" = "{rig.broker.bootstrap}"', "[sink.copy]", *sink,
        "[pipeline.p]", *(f"{key} = {json.dumps(value)}" for key, value in pipeline.items()),
        "[pipeline.p.types]", types,
    ]  # fmt: skip
    path = rig.folder / "config.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_six_partitions_of_moving_keys_are_equal_in_a_database(rig: Rig, postgres: Server) -> None:
    """Killed in mid-stream, and run to the end."""
    six(rig)
    source = KeyedSource(random.Random(9), SIX, 2, rig.db)
    config = in_postgres(rig, postgres)
    command = [sys.executable, "-m", "daemon.cli", "run", "--config", str(config)]
    produce(rig, changes(rig, source, 200))
    process = subprocess.Popen(
        [*command, "--until-caught-up"], cwd=CHECKOUT, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    produce(rig, changes(rig, source, 200))
    assert ended(process) == (0, "")
    produce(rig, changes(rig, source, 50))
    again = subprocess.run(
        [*command, "--until-caught-up"], cwd=CHECKOUT, text=True, capture_output=True, timeout=120
    )
    assert (again.returncode, again.stderr) == (0, "")
    session = postgres.connect()
    for table in source.rows:
        text = f'SELECT id, v FROM "{rig.db}"."{table}" ORDER BY id'
        assert [tuple(row) for row in session.rows(text)] == expected(source, table)


@pytest.mark.parametrize("partitioner", ["murmur2", "unknown"])
def test_a_letter_is_not_replayed_over_partitions_that_were_added(
    rig: Rig, partitioner: str
) -> None:
    """Its row may have changed in one of them, where a replay does not look."""
    six(rig, 2)
    sink = ['kind = "sqlite"', 'path = "copy.db"']
    options = {"partitioner": partitioner, "on_bad_record": "dead-letter"}
    insert(rig, *(f"k{number}" for number in range(20)))
    unfit = without_spark(rig, sink, 'id = "bigint"', **options)
    assert ended(start(unfit, "--until-caught-up"))[0] == Exit.OK.value
    fit = without_spark(rig, sink, 'id = "string"', **options)
    before = replay(fit)
    assert before.exit_code == Exit.OK.value, before.output
    grow(rig, SIX)
    insert(rig, *(f"later{number}" for number in range(40)))
    refused = replay(fit)
    assert refused.exit_code != Exit.OK.value
    why = "has no record as old as it" if partitioner == "unknown" else "its key belongs into"
    assert why in refused.output, refused.output


def insert(rig: Rig, *keys: str) -> None:
    """Rows with keys that are no numbers."""
    servers = {"bootstrap.servers": rig.broker.bootstrap, "partitioner": "murmur2_random"}
    producer = Producer(servers)
    source = {"connector": "mysql", "db": rig.db, "table": "t0"}
    for key in keys:
        change = {"before": None, "after": {"id": key}, "source": source, "op": "c", "ts_ms": 1}
        producer.produce(rig.topic, json.dumps(change), json.dumps({"id": key}))
    assert producer.flush(30) == 0


def replay(config: Path) -> Result:
    """The plan alone."""
    arguments = ["dead-letters", "replay", "--all", "--config", str(config)]
    return CliRunner().invoke(app, arguments)
