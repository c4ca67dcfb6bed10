"""Two targets of one table, in real sinks, behind a log of plain records: no source is there.

Each target holds the log up to where a test has it, and its pipeline's record says so.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from actors.contract.writes import StagedBatch
from changes.model.model import OP, Column, Mode, TableName, TableSchema, TargetName
from daemon.config.config import Config
from daemon.operations.engine.port import Advanced, Finished, Plan
from daemon.operations.engine.record import Job, new_job
from daemon.operations.verify.between.plan import plan_between
from daemon.operations.verify.job.kind import VerifyKind
from offsets.fence import Span
from offsets.position import NO_OFFSET
from offsets.recovery import Watermarks
from offsets.snapshot import PartitionState, Snapshot, SpillMark, TargetMark
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.sinks import sinks_of
from tests.daemon.operations.verify.rig import LANE, Beating, FakeControl
from tests.databases.base.servers import Server
from tests.live.program import HOST

_numbers = itertools.count()

SCHEMA = TableSchema(
    (
        Column("id", pa.int64()),
        Column("note", pa.string()),
        Column("price", pa.decimal128(10, 2)),
        Column("made", pa.timestamp("us")),
    ),
    ("id",),
)


@dataclass
class PairControl(FakeControl):
    """``done``: up to where the pipeline has recorded the log as done."""

    done: int = 0
    marks: Mapping[str, TargetMark] = field(default_factory=dict)

    def snapshot(self, pipeline: str) -> Snapshot:
        ends = {LANE: PartitionState(self.done, begin=0)}
        return Snapshot(pipeline, "g", {}, ends, self.targets, spills=self.spills)


class PairRig:
    """A table ``t`` in a lake, and another target of it: in a database, or in the lake as well.

    ``routes``: keys of the two routes beside tables and target.
    """

    def __init__(
        self,
        server: Server | None,
        spark: SparkSession,
        folder: Path,
        catalog: Mapping[str, str],
        routes: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
        schema: TableSchema = SCHEMA,
        sink: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``sink``: keys of the database's section."""
        self.server, self.session, self.folder, self.rows = server, spark, folder, schema
        self.sink = dict(sink)
        self.schema = f"b{next(_numbers)}"
        self.table = TableName(self.schema, "t")
        self.first = TargetName("lake", self.schema, "t")
        other = "lake" if server is None else "pg"
        self.second = TargetName(other, f"{self.schema}_copy", "t")
        self.log = Beating({LANE: Watermarks(0, 0)}, beats=False)
        self.config = self._config(catalog, routes)
        writers: dict[str, Any] = {"lake": IcebergWriter(spark)}
        if server is not None:
            writers["pg"] = sinks_of(self.config)["pg"].writer()
        self.control = PairControl(self.config, self.log, writers, spark)
        self.written = {self.first: NO_OFFSET, self.second: NO_OFFSET}
        self.changes: list[tuple[int, int, str | None]] = []

    def _config(
        self, catalog: Mapping[str, str], routes: tuple[Mapping[str, Any], Mapping[str, Any]]
    ) -> Config:
        sinks: dict[str, Any] = {"lake": {"kind": "iceberg", "catalog": dict(catalog)}}
        if self.server is not None:
            postgres = self.server.kind == "postgresql"
            end, user = ("/postgres", "postgres") if postgres else ("/", "live")
            url = f"jdbc:{self.server.kind}://{HOST}:{self.server.port}{end}"
            sinks["pg"] = {"kind": "jdbc", "url": url, "user": user, **self.sink}
            sinks["pg"] |= {} if postgres else {"password": "live"}
        made = [
            {"tables": [str(self.table)], "target": str(target), **more}
            for target, more in zip((self.first, self.second), routes, strict=True)
        ]
        return Config.model_validate(
            {
                "kafka": {"bootstrap.servers": "nowhere:1"},
                "sink": sinks,
                "pipeline": {
                    "p": {
                        "topics": ["shop"],
                        "format": "canal-json",
                        "route": made,
                        "verify": {"margin_s": 0, "wait_s": 3},
                    }
                },
                "daemon": {"state_dir": str(self.folder)},
            }
        )

    def write(
        self, target: TargetName, rows: pa.Table, through: int, keys: tuple[str, ...] = ("id",)
    ) -> None:
        """One batch, ``rows`` with their operations, that holds the log up to there."""
        path = self.folder / f"{target.sink}-{target.namespace}-{through}.parquet"
        pq.write_table(rows, path)
        schema = TableSchema(
            tuple(Column(f.name, f.type) for f in rows.schema if f.name != OP), keys
        )
        state = self.control.writers[target.sink].write(
            StagedBatch(
                batch_id=str(through),
                target=target,
                mode=Mode.UPSERT,
                schema=schema,
                lanes={LANE: Span(self.written[target], through)},
                path=str(path),
                rows=rows.num_rows,
                changes=rows.num_rows,
                has_deletes=True,
                table=self.table,
            )
        )
        self.written[target] = through
        self.control.targets[str(target)] = TargetMark(state.version, dict(state.hwms))

    def filled(self, *targets: TargetName, number: int = 300) -> None:
        """The same rows in these targets, all by the log's first message."""
        self.changed(10**6, "first")
        for target in targets or (self.first, self.second):
            self.write(target, rows_of(range(number), self.rows), 0)
        self.control.done = 1

    def changed(self, id_: int, note: str | None) -> None:
        """A change of a row in the log: another note, or deleted."""
        offset = self.log.logs[LANE].high
        data = {"id": str(id_), "note": note, "price": "1.00", "made": "2026-01-02 03:04:05"}
        types = {"id": "bigint", "note": "varchar(20)", "price": "decimal(10,2)",
                 "made": "datetime(6)"}  # fmt: skip
        message = {"database": self.schema, "table": "t", "isDdl": False, "es": 1000 + offset,
                   "type": "DELETE" if note is None else "UPDATE", "pkNames": ["id"],
                   "mysqlType": types, "data": [data], "old": [{"note": "x"}]}  # fmt: skip
        self.log.produce(json.dumps(message).encode())
        self.changes.append((offset, id_, note))

    def caught_up(self, *targets: TargetName) -> None:
        """These targets get all that the log has, and the pipeline's record says so."""
        for target in targets or (self.first, self.second):
            news = [each for each in self.changes if each[0] > self.written[target]]
            if not news:
                continue
            last = {id_: note for _, id_, note in news}
            rows = rows_of(last, self.rows, last)
            self.write(target, rows, news[-1][0])
        behind = min(self.written.values()) + 1
        spilled = self.control.spills.keys() - {str(target) for target in targets}
        self.control.done = self.log.logs[LANE].high if spilled else behind

    def paused(self, target: TargetName) -> None:
        """Its changes from here on are in its spill, and count as done."""
        high = self.log.logs[LANE].high
        self.control.spills[str(target)] = SpillMark(9, {LANE: (high, 10**9)}, away=True)

    def lake(self, sql: str) -> None:
        """On the first target, as another tool would; ``{t}`` is its name."""
        session = self.session.newSession()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        session.sql(sql.format(t=f"`lake`.`{self.schema}`.t")).collect()

    def other(self, sql: str) -> None:
        """On the second target, as another tool would."""
        if self.server is None:
            self.session.sql(sql.format(t=f"`lake`.`{self.second.namespace}`.t")).collect()
        else:
            self.server.run([sql.format(t=f"{self.second.namespace}.t")])

    def plan(self, first: str = "", second: str = "", **asked: Any) -> Plan:
        """Of these patterns; of the two targets, if none is given."""
        names = first or str(self.first), second or str(self.second)
        return plan_between(self.control, "verify", *names, asked)

    def compared(self, **asked: Any) -> dict[str, Any]:
        """The result of the table."""
        plan = self.plan(**asked)
        assert not plan.refusals, plan
        assert not VerifyKind().wrong(plan.wanted[0])
        (table,) = self.finished(new_job(plan.wanted[0], 0))["tables"]
        return table

    def finished(self, job: Job, between_steps: Callable[[], None] = lambda: None) -> Any:
        """The result of a job, whose memory is written and read between the steps."""
        kind = VerifyKind()
        for _ in range(1000):
            outcome = kind.step(job, self.control)  # type: ignore[arg-type]
            if isinstance(outcome, Finished):
                return json.loads(json.dumps(outcome.result))
            assert isinstance(outcome, Advanced)
            job = replace(job, memory=json.loads(json.dumps(outcome.memory)))
            between_steps()
        raise AssertionError("it does not end")


def rows_of(
    ids: Any, schema: TableSchema, notes: Mapping[int, str | None] | None = None
) -> pa.Table:
    """Rows with their operations. ``notes``: by id the note that it has, None: it is deleted."""
    from datetime import UTC, datetime
    from decimal import Decimal

    made = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).replace(tzinfo=None)
    numbers = list(ids)
    columns: dict[str, Any] = {
        "id": numbers,
        "note": [f"note {n}" if notes is None else notes[n] for n in numbers],
        "price": [Decimal(f"{n % 1000}.05") if notes is None else Decimal("1.00") for n in numbers],
        "made": [made.replace(microsecond=n % 1000) if notes is None else made for n in numbers],
    }
    gone = [notes is not None and notes[n] is None for n in numbers]
    fields = {column.name: pa.array(columns[column.name], column.type) for column in schema.columns}
    return pa.table({OP: pa.array(["D" if each else "U" for each in gone]), **fields})
