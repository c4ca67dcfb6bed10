"""A verification without a daemon: a real source, a real table of the lake, a log of plain records.

The target is filled by a load's own chunks, so that it is equal at first. The log has a heartbeat
whenever somebody looks for its end.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from actors.contract.ports import ResettableSink
from actors.contract.writes import StagedBatch
from changes.model.model import OP, Column, Mode, TableName, TableSchema, TargetName
from changes.sql.spark.schema import arrow_type
from daemon.config.config import Config
from daemon.operations.engine.port import Advanced, Finished
from daemon.operations.engine.record import Job, JobProgress, JobRequest, new_job
from daemon.operations.verify.job.kind import VerifyKind
from databases.base.database import Database
from databases.base.log_end import ReaderPosition
from databases.base.port import KeyRange, SourceTable
from offsets.fence import Span
from offsets.position import NO_OFFSET, TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import PartitionState, Snapshot, TargetMark
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.session.chunks import read_chunks
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.session.requests import ChunkColumn, ChunkQuery
from tests.databases.base.servers import PASSWORD, Server
from tests.sources.fake_source import FakeSource

FORMATS = {"mariadb": "canal-json", "mysql": "canal-json", "postgresql": "debezium-json"}
LANE = TopicPartition("shop", 0)
_numbers = itertools.count()


@dataclass
class Beating(FakeSource):
    """A log with a heartbeat of the database's present at each question for its end."""

    beats: bool = True

    def committed_ends(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        if self.beats:
            self.produce(beat(round(time.time() * 1000) + 3000))
        return super().committed_ends(sources)

    def read(self, source: TopicPartition, first: int, last: int) -> Any:
        found = self.records.get(source, ())
        return (each for each in found if first <= each.offset <= last)


def beat(at_ms: int) -> bytes:
    """A change of a table, in a message that is one of Canal's and one of Debezium's."""
    canal = {"database": "beats", "table": "beat", "type": "INSERT", "isDdl": False, "es": at_ms,
             "pkNames": ["id"], "mysqlType": {"id": "int"}, "data": [{"id": "1"}]}  # fmt: skip
    source = {"db": "beats", "schema": "beats", "table": "beat", "ts_ms": at_ms, "connector": "x"}
    debezium = {"op": "c", "before": None, "after": {"id": 1}, "source": source, "ts_ms": at_ms}
    return json.dumps({**canal, **debezium}).encode()


@dataclass
class FakeControl:
    """``daemon.operations.engine.port.Control`` of one pipeline, whose target has all of the log at
    once."""

    config: Config
    log: Beating
    writers: Mapping[str, ResettableSink]
    session: SparkSession
    targets: dict[str, TargetMark] = field(default_factory=dict)
    spills: dict[str, Any] = field(default_factory=dict)
    asked: str = ""
    behind: int = 0
    before_wait: Callable[[], None] = lambda: None
    messages: list[str] = field(default_factory=list)

    def snapshot(self, pipeline: str) -> Snapshot:
        ends = {s: PartitionState(m.high - self.behind) for s, m in self.log.logs.items()}
        return Snapshot(pipeline, "g", {}, ends, self.targets, spills=self.spills)

    def source(self, pipeline: str) -> Beating:
        return self.log

    def reader_position(self, pipeline: str) -> ReaderPosition:
        return {}

    def wait(self, seconds: float) -> bool:
        self.before_wait()
        return bool(self.asked)

    def tell(self, progress: JobProgress, message: str = "") -> None:
        self.messages.append(message)

    def sinks(self) -> Mapping[str, ResettableSink]:
        return self.writers

    def spark(self, act: Callable[[SparkJvm], Any]) -> Any:
        class Jvm:
            spark = self.session

        return act(Jvm())  # type: ignore[arg-type]

    def edit(self, pipeline: str, change: Callable[[Snapshot], Snapshot]) -> None:
        change(self.snapshot(pipeline))


class Rig:
    """One table of a source, and its target."""

    def __init__(
        self,
        server: Server,
        spark: SparkSession,
        folder: Path,
        catalog: Mapping[str, str],
        route: Mapping[str, Any] | None = None,
        table: TableName | None = None,
    ) -> None:
        """``route``: keys of the table's route, if it has one of its own. ``table``: its name, in
        a schema that is not there; else a new one's ``t``."""
        self.server, self.session, self.folder = server, spark, folder
        self.table = table or TableName(f"v{next(_numbers)}", "t")
        self.schema = self.table.database
        self.target = TargetName("lake", self.schema, self.table.table)
        word = "SCHEMA" if server.kind == "postgresql" else "DATABASE"
        server.run([f"CREATE {word} {self.schema}"])
        self.writer = IcebergWriter(spark)
        self.route = route
        self.log = Beating({LANE: Watermarks(0, 0)})
        self.config = self._config(catalog)
        self.control = FakeControl(
            self.config, self.log, {"lake": self.writer}, spark,
            {str(self.target): TargetMark("1", {LANE: 0})},
        )  # fmt: skip

    def _config(self, catalog: Mapping[str, str], **verify: Any) -> Config:
        section = self.server.section()
        return Config.model_validate(
            {
                "kafka": {"bootstrap.servers": "nowhere:1"},
                "sink": {"lake": {"kind": "iceberg", "catalog": dict(catalog)}},
                "database": {
                    "shop": {"url": section.url, "user": section.user, "password": PASSWORD}
                },
                "pipeline": {
                    "p": {
                        "topics": ["shop"],
                        "format": FORMATS[self.server.kind],
                        **self._routes(),
                        "database": "shop",
                        "verify": {"margin_s": 0, **verify},
                    }
                },
                "daemon": {"state_dir": str(self.folder)},
            }
        )

    def _routes(self) -> dict[str, Any]:
        if self.route is None:
            return {"target": "lake.{database}.{table}"}
        one = {"tables": [str(self.table)], "target": str(self.target), **self.route}
        return {"route": [one]}

    def run(self, *statements: str) -> None:
        """At the source."""
        self.server.run(statements)

    def lake(self, sql: str) -> None:
        """On the target, as another tool would; ``{t}`` is its name."""
        name = f"`lake`.`{self.schema}`.`{self.table.table}`"
        session = self.session.newSession()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        session.sql(sql.format(t=name)).collect()

    def filled(self, types: Mapping[str, str]) -> None:
        """Make the target of the source's present rows; ``types`` by Iceberg's names."""
        database = self.server.open()
        try:
            described = database.describe(self.table)
            self._write(database, described, types)
        finally:
            database.close()

    def _write(self, database: Database, described: SourceTable, types: Mapping[str, str]) -> None:
        columns = [column for column in described.columns if column.name in types]
        wanted = []
        for column in columns:
            assert column.form is not None, column
            wanted.append(ChunkColumn(column.name, types[column.name], column.form))
        out = self.folder / f"{self.schema}.parquet"
        query = database.query(described, columns, KeyRange())
        (rows,) = read_chunks(
            self.session, database.jdbc(), [ChunkQuery(query, out)], wanted, constants=[(OP, "U")]
        )
        schema = TableSchema(
            tuple(Column(name, arrow_type(types[name])) for name in (c.name for c in columns)),
            described.keys,
        )
        assert pq.read_metadata(out).num_rows == rows
        self.log.produce(beat(1000))
        batch = StagedBatch(
            batch_id="1", target=self.target, mode=Mode.UPSERT, schema=schema,
            lanes={LANE: Span(NO_OFFSET, 0)}, path=str(out), rows=rows, changes=rows,
            table=self.table,
        )  # fmt: skip
        self.writer.write(batch)

    def job(self, **params: Any) -> Job:
        """One for the table, planned."""
        wanted = JobRequest("verify", "p", (f"lake.{self.schema}.*",), params)
        plan = VerifyKind().plan(self.control, wanted)
        assert not plan.refusals, plan
        job = new_job(plan.wanted[0], 0)
        self.job_id = job.id
        return job

    def change(self, id_: int, more: Mapping[str, Any]) -> None:
        """A change of a row in the log, by Canal or by Debezium."""
        now_ms = round(time.time() * 1000)
        source = {"db": self.schema, "schema": self.schema, "table": "t", "ts_ms": now_ms,
                  "connector": "postgresql", "name": "x"}  # fmt: skip
        canal = {"isDdl": False, "es": now_ms, "pkNames": ["id"], "mysqlType": {"id": "bigint"},
                 "data": [{"id": str(id_)}], "old": [{}]}  # fmt: skip
        debezium = {"op": "u", "before": None, "after": {"id": id_}, "source": source}
        self.log.produce(json.dumps({**canal, **debezium, **more}).encode())

    def verified(self, **params: Any) -> dict[str, Any]:
        """The result of a whole job, whose memory is written and read between the steps."""
        return self.finished(self.job(**params))

    def finished(self, job: Job) -> dict[str, Any]:
        """The result."""
        from dataclasses import replace

        kind = VerifyKind()
        for _ in range(1000):
            outcome = kind.step(job, self.control)  # type: ignore[arg-type]
            if isinstance(outcome, Finished):
                return json.loads(json.dumps(outcome.result))
            assert isinstance(outcome, Advanced)
            job = replace(job, memory=json.loads(json.dumps(outcome.memory)))
        raise AssertionError("it does not end")
