"""A restart with 1,000 tables known: from the process's start to the first new commit.

The daemon is a process of its own, with the embedded catalog and a real broker. What is measured
is beside Spark's own start, which the daemon's log tells, and its warm-up.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from time import time
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.rig import fill, message
from changes.model.model import Mode, TargetName
from changes.sql.spark.schema import LakeColumn
from daemon.state.offset_file import FileStore
from demo.broker import DevBroker
from demo.lake import open_session
from offsets.fence import Marks
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot, TargetMark
from sources.kafka.admin import Admin
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.look import KEYS, MODE
from sparkwriter.iceberg.store import TABLE_PROPERTIES
from sparkwriter.session.jvm import SparkJvm

TABLES = int(os.environ.get("BENCH_TABLES", "1000"))
WANTED_S = 15.0
TOPIC = "known"
SOURCE = TopicPartition(TOPIC, 0)
COLUMNS = {
    "id": "long", "name": "string", "email": "string", "city": "string",
    "amount": "decimal(10, 2)", "qty": "int", "created": "timestamp",
}  # fmt: skip
CONFIG = """
[daemon]
state_dir = "{var}/state"
staging_dir = "{var}/staging"
[log]
level = "debug"
format = "json"
file = "{var}/log/binlogd.log"
[kafka]
bootstrap.servers = "{bootstrap}"
[spark.conf]
spark.driver.extraJavaOptions = "-XX:TieredStopAtLevel=1"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "jdbc"
uri = "jdbc:sqlite:{var}/catalog.db"
"jdbc.schema-version" = "V1"
warehouse = "{var}/warehouse"
[pipeline.bench]
topics = ["{topic}"]
group = "{topic}"
format = "canal-json"
target = "lake.{{database}}.{{table}}"
"""


@dataclass
class Known:
    """A lake of tables that a run before has written, and that run's positions."""

    var: Path
    broker: DevBroker
    tables: list[str]
    heads: dict[str, str] = field(default_factory=dict)

    def record(self) -> None:
        """What the run before has left: messages read to the end, the file with all marks."""
        old = (message(number, table) for number, table in enumerate(self.tables))
        fill(self.broker.bootstrap, TOPIC, old)
        store = FileStore(self.var / "state", "bench")
        store.start()
        ids = Admin({"bootstrap.servers": self.broker.bootstrap}).ids([TOPIC])
        marks = {
            f"lake.bench.{table}": TargetMark(self.heads[table], {SOURCE: number})
            for number, table in enumerate(self.tables)
        }
        at = {SOURCE: PartitionState(len(self.tables))}
        store.set(Snapshot("bench", TOPIC, ids, at, marks)).result()
        store.stop()

    def restart(self, tables: list[str]) -> dict[str, float]:
        """One new change for each of these tables, then the daemon; its times in seconds."""
        new = (message(3 * number, table) for number, table in enumerate(tables))
        fill(self.broker.bootstrap, TOPIC, new)
        path = self.var / "config.toml"
        path.write_text(CONFIG.format(var=self.var, bootstrap=self.broker.bootstrap, topic=TOPIC))
        return self._run(path)

    def _run(self, config: Path) -> dict[str, float]:
        log = self.var / "log" / "binlogd.log"
        log.unlink(missing_ok=True)
        begun = time()
        command = ["-m", "daemon.cli", "run", "--until-caught-up", "--config", str(config)]
        subprocess.run([sys.executable, *command], check=True, timeout=600)
        ended = time()
        events: dict[str, list[dict[str, Any]]] = {}
        for event in map(json.loads, log.read_text().splitlines()):
            events.setdefault(event["event"], []).append(event)
        spark = events["spark_started"][0]
        sparks = spark["seconds"] + events["spark_warmed_up"][0]["seconds"]
        at = {
            name: datetime.fromisoformat(found[0]["timestamp"]).timestamp() - begun - sparks
            for name, found in events.items()
        }
        last = datetime.fromisoformat(events["written"][-1]["timestamp"]).timestamp()
        return {
            "spark_s": spark["seconds"], "warm_up_s": events["spark_warmed_up"][0]["seconds"],
            "running_s": at["running"], "assigned_s": at["assigned"],
            "first_commit_s": at["written"], "last_commit_s": last - begun - sparks,
            "whole_run_s": ended - begun,
        }  # fmt: skip


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    """The tables, made by a session that has ended when the daemon starts."""
    var = tmp_path_factory.mktemp("known")
    tables = [f"t{number:04d}" for number in range(TABLES)]
    (var / "state").mkdir()
    with DevBroker(var / "broker") as broker:
        made = Known(var, broker, tables)
        jvm = SparkJvm(open_session(var))
        try:
            _make_tables(made, LakeCatalog(jvm.spark))
        finally:
            jvm.stop(20)
        made.record()
        yield made


def _make_tables(known: Known, catalog: LakeCatalog) -> None:
    columns = [LakeColumn(name, type_) for name, type_ in COLUMNS.items()]
    properties = {**TABLE_PROPERTIES, MODE: Mode.UPSERT.value, KEYS: '["id"]'}
    for number, table in enumerate(known.tables):
        target = TargetName("lake", "bench", table)
        catalog.create(target, columns, properties, (HWM, Marks({SOURCE: number}).text()))
        stored = catalog.load(target)
        assert stored is not None
        known.heads[table] = str(stored.head("main"))


@pytest.mark.parametrize("news", ["one table", "all tables"])
def test_restart_to_the_first_new_commit(
    benchmark: BenchmarkFixture, known: Known, news: str
) -> None:
    """Under 15 s is required beside Spark's own start, whether one table has news or all have."""
    tables = known.tables[-1:] if news == "one table" else known.tables
    found = benchmark.pedantic(lambda: known.restart(tables), rounds=1)
    benchmark.extra_info.update({name: round(value, 2) for name, value in found.items()})
    benchmark.extra_info["tables"] = len(known.tables)
    assert found["first_commit_s"] < WANTED_S
