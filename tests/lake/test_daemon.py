"""The daemon as a process, its Spark on a cluster of another user, its staged files in the lake."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demo.broker import DevBroker
from demo.servers.s3 import BUCKET, ObjectStore
from demo.servers.server import ask
from tests.integration.rig import MYSQL_TYPES, canal, ddl
from tests.lake.daemons import QUICK, Daemons, Record, running
from tests.lake.lakes import Lake
from tests.lake.servers.cluster import Cluster
from tests.lake.streams import TableInEach
from tests.lake.test_group import held, listed

pytestmark = [pytest.mark.lake, pytest.mark.integration, pytest.mark.timeout(600)]

SECRET = "nobody-guesses-it"
WIDE = 100_000
"""A key that the stream itself never has."""


@pytest.fixture
def broker(lake: Lake, spark_master: str, tmp_path: Path) -> Iterator[DevBroker]:
    """A broker of the test's own, where no other cluster runs."""
    if lake.name != "rest-s3" or not spark_master.startswith("local"):
        pytest.skip("starts a cluster of its own, on rest-s3")
    with DevBroker(tmp_path / "broker") as started:
        yield started


@pytest.fixture
def cluster(broker: DevBroker, tmp_path: Path) -> Iterator[Cluster]:
    """It asks whoever comes for a secret."""
    with Cluster(tmp_path / "cluster", apart=True, secret=SECRET) as started:
        yield started


def settings(cluster: Cluster, events: Path) -> dict[str, str]:
    """As docs/scaling.md has them, and Spark's own log of which executor did what."""
    events.mkdir()
    return {
        "spark.master": cluster.master,
        "spark.executor.memory": "900m",
        "spark.executor.extraJavaOptions": QUICK,
        "spark.authenticate": "true",
        "spark.authenticate.secret": SECRET,
        "spark.network.crypto.enabled": "true",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }


def test_a_daemon_on_a_cluster(
    lake: Lake,
    broker: DevBroker,
    cluster: Cluster,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """Killed while an executor reads a staged copy; the next run removes that, tables are equal."""
    stream = TableInEach(tmp_path.name, 2)
    section = {
        "topics": ["shop"], "format": "canal-json", "group": "shop",
        "include": [f"{stream.database}.*"],
        "target": "lake.{database}.{table}", "kafka": {"session.timeout.ms": "6000"},
    }  # fmt: skip
    spark = settings(cluster, tmp_path / "events")
    made = Daemons(lake, broker, tmp_path, {"p": section}, spark=spark, shared_staging=True)
    made.create_topic("shop", 2)
    store = lake.servers["storage"]
    assert isinstance(store, ObjectStore)
    with running(made) as daemons:
        assert any(killed_in_a_statement(daemons, stream, store) for _ in range(3))
        daemons.produce("shop", [*stream.wave(100), *widened(stream), *stream.wave(50)])
        daemons.catch_up("a")
        assert copies(store) == []
    by = tasks(tmp_path / "events")
    assert by["driver"] == 0 < by.total()
    session = request.getfixturevalue("spark")
    check(session, stream)


def killed_in_a_statement(daemons: Daemons, stream: TableInEach, store: ObjectStore) -> list[str]:
    """Send rows until a copy of some is where executors read it, and kill; the copies that stay.

    None do where the statement ended in that very moment.
    """
    deadline, pause = time.monotonic() + 120, threading.Event()
    daemons.start("a").wait_for("running")
    while not copies(store):
        assert time.monotonic() < deadline
        daemons.produce("shop", stream.wave(20))
        pause.wait(0.05)
    daemons.kill("a")
    return copies(store)


def copies(store: ObjectStore) -> list[str]:
    """The objects of the staging area."""
    told = ask(f"{store.endpoint}/{BUCKET}?list-type=2&prefix=staging/")
    assert told is not None
    return re.findall(r"<Key>([^<]+)</Key>", told.decode())


def widened(stream: TableInEach) -> list[Record]:
    """A column is added to the first table, and a row that has it."""
    stream.sent[0] += 2
    stream.tables[0][WIDE] = ("wide", 1)
    row = {"id": WIDE, "name": "wide", "qty": 1, "more": 5}
    sql = "ALTER TABLE t0 ADD COLUMN more int DEFAULT 3"
    types = MYSQL_TYPES | {"more": "int(11)"}
    table = f"{stream.database}.t0"
    added = canal(table, "INSERT", [row], mysqlType=types)
    return [(0, None, ddl(table, "ALTER", sql)), (0, None, added)]


def tasks(events: Path) -> Counter[str]:
    """How many tasks each executor has ended, by Spark's own logs."""
    done: Counter[str] = Counter(driver=0)
    for file in events.rglob("*"):
        if file.is_file():
            lines = (line for line in file.read_text().splitlines() if "TaskEnd" in line)
            ended = (json.loads(line) for line in lines)
            done.update(event["Task Info"]["Executor ID"] for event in ended)
    return done


def check(spark: SparkSession, stream: TableInEach) -> None:
    """Both tables are the source's."""
    for number, rows in enumerate(stream.tables):
        assert held(spark, f"{stream.database}.t{number}", "id, name, qty") == listed(rows)
    (row,) = spark.sql(f"SELECT more FROM lake.{stream.database}.t0 WHERE id = {WIDE}").collect()
    assert row.more == 5
