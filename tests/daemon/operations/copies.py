"""A source's table and its copy in another database, filled by the load's own reads: no Spark.

The copy is in the same server, or in another, in a schema of its own.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from actors.contract.writes import StagedBatch
from changes.model.model import Mode, TableName, TargetName
from daemon.config.config import Config
from daemon.operations.engine.port import Advanced, Finished
from daemon.operations.engine.record import JobRequest, new_job
from daemon.operations.load.source_tables import SourceTables
from daemon.operations.verify.job.kind import VerifyKind
from databases.base.url import parse_url
from offsets.fence import Span
from offsets.position import NO_OFFSET
from offsets.recovery import Watermarks
from offsets.snapshot import TargetMark
from sparkwriter.kit.store import Absent
from sparkwriter.sinks import sinks_of
from sparkwriter.sql.connect import connect
from sparkwriter.sql.store import JdbcStore
from sparkwriter.sql.stored import read_table
from tests.daemon.operations.verify.rig import FORMATS, LANE, Beating, FakeControl, beat
from tests.databases.base.servers import PASSWORD, Server
from tests.live.program import HOST

_numbers = itertools.count()


def load_into(control: FakeControl, table: TableName, target: TargetName, rows: int) -> None:
    """Write a table's rows as a load reads them, in ranges of so many."""
    tables = SourceTables(control, "p", anew=True)  # type: ignore[arg-type]
    control.log.produce(beat(1000))
    try:
        described = tables.describe(table, str(target))
        chunks = tables.read(table, str(target), tables.ranges(table, rows), "1")
        for number, chunk in enumerate(chunks):
            after = NO_OFFSET if number == 0 else number - 1
            batch = StagedBatch(
                batch_id=str(number), target=target, mode=Mode.UPSERT,
                schema=described.schema, lanes={LANE: Span(after, number)},
                path=chunk.path, rows=chunk.rows, changes=chunk.rows,
                shape=described.shape, table=described.owner,
            )  # fmt: skip
            control.writers[target.sink].write(batch)
    finally:
        tables.close()


class Copy:
    """One table ``t`` of a source, and its target. ``route``: keys of its route."""

    def __init__(
        self, source: Server, into: Server, folder: Path, route: Mapping[str, Any] | None = None
    ) -> None:
        self.source, self.into, self.folder = source, into, folder
        self.schema = f"c{next(_numbers)}"
        self.table = TableName(self.schema, "t")
        self.target = TargetName("copy", f"{self.schema}_copy", "t")
        word = "SCHEMA" if source.kind == "postgresql" else "DATABASE"
        source.run([f"CREATE {word} {self.schema}"])
        postgres = into.kind == "postgresql"
        end = "/postgres" if postgres else "/"
        self.url = f"jdbc:{into.kind}://{HOST}:{into.port}{end}"
        self.user, self.password = ("postgres", None) if postgres else ("live", "live")
        self.routed(route or {})

    def routed(self, route: Mapping[str, Any]) -> None:
        """Have this route from now on."""
        self.config = self._config(route)
        self.log = Beating({LANE: Watermarks(0, 0)})
        self.writer = sinks_of(self.config)["copy"].writer()
        self.control = FakeControl(
            self.config, self.log, {"copy": self.writer}, None,  # type: ignore[arg-type]
            {str(self.target): TargetMark("1", {LANE: 0})},
        )  # fmt: skip

    def _config(self, route: Mapping[str, Any]) -> Config:
        section = self.source.section()
        sink = {"kind": "jdbc", "url": self.url, "user": self.user}
        sink |= {} if self.password is None else {"password": self.password}
        return Config.model_validate(
            {
                "kafka": {"bootstrap.servers": "nowhere:1"},
                "sink": {"copy": sink},
                "database": {
                    "shop": {"url": section.url, "user": section.user, "password": PASSWORD}
                },
                "pipeline": {
                    "p": {
                        "topics": ["shop"],
                        "format": FORMATS[self.source.kind],
                        "database": "shop",
                        "route": [
                            {"tables": [f"{self.schema}.t"], "target": str(self.target), **route}
                        ],
                        "verify": {"margin_s": 0},
                    }
                },
                "daemon": {"state_dir": str(self.folder)},
            }
        )

    def run(self, *statements: str) -> None:
        """At the source; ``{t}`` is the table."""
        self.source.run([each.replace("{t}", f"{self.schema}.t") for each in statements])

    def plant(self, *statements: str) -> None:
        """At the target, as somebody else would."""
        self.into.run([each.replace("{t}", f"{self.schema}_copy.t") for each in statements])

    def loaded(self, rows: int = 100) -> None:
        """Read the table in ranges of so many rows, and write what is read."""
        load_into(self.control, self.table, self.target, rows)

    def stored(self) -> pa.Table:
        """The target's rows."""
        session = connect(parse_url(self.url), self.user, self.password)
        store = JdbcStore(lambda: session, "binlogd")
        try:
            seen = store.look(self.target)
            assert not isinstance(seen, Absent)
            return read_table(session, seen)
        finally:
            store.close()

    def verified(self, **params: Any) -> dict[str, Any]:
        """The result of a whole job, whose memory is written and read between the steps."""
        kind = VerifyKind()
        plan = kind.plan(self.control, JobRequest("verify", "p", (str(self.target),), params))
        assert not plan.refusals, plan
        job = new_job(plan.wanted[0], 0)
        for _ in range(1000):
            outcome = kind.step(job, self.control)  # type: ignore[arg-type]
            if isinstance(outcome, Finished):
                (table,) = json.loads(json.dumps(outcome.result))["tables"]
                return table
            assert isinstance(outcome, Advanced)
            job = replace(job, memory=json.loads(json.dumps(outcome.memory)))
        raise AssertionError("it does not end")
