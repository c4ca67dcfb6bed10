"""Repairs the rows that a verification has found: one fenced write of a stopped pipeline.

Why it may be done beside a stream that lags: the rows are read while the pipeline stands, and only
those without a change in the log for a margin, so each row read has all changes of it that are in
the log. Those that the target has not got yet overtake it for a while, and the last of them brings
it to the row that was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import structlog

from actors.contract.ports import ResettableSink
from actors.contract.writes import StagedBatch, TargetState
from changes.model import OP, Column, Mode, TableSchema
from changes.net.fold import key_bounds
from daemon.databases.port import Key, Texts
from daemon.jobs.port import Control
from daemon.jobs.record import Job
from daemon.jobs.thread import AWAY
from daemon.jobs.verify.lookout import not_following
from daemon.jobs.verify.looks import Found
from daemon.jobs.verify.opening import Open
from daemon.jobs.verify.report import shown
from daemon.jobs.verify.run import TableRun
from daemon.jobs.verify.work import Table
from daemon.runtime.edits import EditRefused
from daemon.staging.folder import RunFolder
from offsets.fence import Span
from offsets.position import NO_OFFSET, repair_lane
from offsets.snapshot import Snapshot, TargetMark

log: Any = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Repaired:
    """``rows``: what was done, a row each. ``notes``: what was not, and why; one line each."""

    rows: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


class Repair:
    """Writes the rows of one table as the source has them. The job's thread begins it, and the
    pipeline's edit carries it out on one of its own."""

    def __init__(self, job: Job, control: Control, run: TableRun, table: Table) -> None:
        self._job = job
        self._control = control
        self._run = run
        self._table = table
        self._sinks: Mapping[str, ResettableSink] = {}
        self._failure: Exception | None = None
        self._done = Repaired()

    def carried_out(self) -> Repaired:
        """Stop the pipeline, write, start it again. Repeating it changes nothing more.

        Raises EditFailed, JobStopped, and what is away.
        """
        self._sinks = self._control.sinks()
        try:
            self._control.edit(self._job.wanted.pipeline, self)
        except EditRefused as refused:
            if isinstance(self._failure, AWAY):
                raise self._failure from refused
            return Repaired(notes=(f"not repaired: {refused}",))
        return self._done

    def __call__(self, snapshot: Snapshot) -> Snapshot:
        """The edit. Whatever goes wrong leaves the pipeline as it was: the write is one step."""
        target = str(self._run.compared.target)
        try:
            if (why := not_following(snapshot, target)) is not None:
                raise EditRefused(why)
            with self._run.opened(snapshot) as here:
                state = self._written(snapshot, here)
        except EditRefused:
            raise
        except Exception as error:
            self._failure = error
            raise EditRefused(str(error) or type(error).__name__) from error
        if state is None:
            return snapshot
        mark = TargetMark(state.version, dict(state.hwms), rows_may_differ=state.rows_may_differ)
        return replace(snapshot, targets={**snapshot.targets, target: mark})

    def _written(self, snapshot: Snapshot, here: Open) -> TargetState | None:
        _check(here)
        keys = self._calm(snapshot, here)
        before = here.target.rows(keys)
        now = here.source.rows(keys)
        wrong = [key for key in keys if before.get(key) != now.get(key)]
        kept = [key for key in wrong if key not in now] if here.shape.deleted else []
        keys = [key for key in keys if key not in kept]
        wrong = [key for key in wrong if key not in kept]
        self._tell(len(keys) + len(kept), keys, wrong, here, before, now)
        if kept:
            line = f'not repaired: {len(kept)} rows that the source has not: delete = "soft" keeps'
            self._done = replace(self._done, notes=(*self._done.notes, f"{line} deleted rows"))
        if not wrong:
            return None
        sink = self._sinks[self._run.compared.target.sink]
        folder = RunFolder(self._control.config.daemon.staging_folder, f"run-{uuid4().hex[:12]}")
        try:
            table, schema = self._staged(here, wrong, before, now)
            path = folder.path / "repair.parquet"
            pq.write_table(table, path)
            return sink.write(self._batch(here, schema, table, path))
        finally:
            folder.close()

    def _calm(self, snapshot: Snapshot, here: Open) -> list[Key]:
        """The keys without a change in the log since a margin ago: what a read shows of these is
        all that the log has of them."""
        moments = self._run.moments(snapshot)
        begins = moments.ended_before(self._run.settings.margin_s)
        keys = self._table.found
        moved = set(self._run.changes(snapshot, here).among(keys, begins, moments.ends()))
        return [key for key in keys if key not in moved]

    def _staged(
        self, here: Open, keys: Sequence[Key], before: Mapping[Key, Texts], now: Mapping[Key, Texts]
    ) -> tuple[pa.Table, TableSchema]:
        """The write's rows: those that the source has, read once more, and the keys to delete."""
        schema = _schema(here)
        fields = [pa.field(OP, pa.string())]
        fields += [pa.field(column.name, column.type) for column in schema.columns]
        wanted = pa.schema(fields)
        tables = [wanted.empty_table()]
        there = [key for key in keys if key in now]
        for rows in here.values.values(there):
            renamed = rows.rename_columns([column.name for column in schema.columns])
            op = pa.repeat(pa.scalar("U"), rows.num_rows)
            tables.append(renamed.add_column(0, OP, op).cast(wanted))
        if gone := [key for key in keys if key not in now and key in before]:
            found = here.target.keys(gone, schema.keys)
            op = pa.repeat(pa.scalar("D"), found.num_rows)
            tables.append(found.add_column(0, OP, op))
        whole = pa.concat_tables(tables, promote_options="default")
        return whole.select(wanted.names).cast(wanted), schema

    def _batch(self, here: Open, schema: TableSchema, table: pa.Table, path: Path) -> StagedBatch:
        compared, state = self._run.compared, here.state
        # Where the streams stand now: had anything come in between, the write would be refused.
        lanes = {lane: Span(mark, mark) for lane, mark in state.hwms.items()}
        return StagedBatch(
            batch_id=f"repair-{self._job.id}",
            target=compared.target,
            mode=Mode.UPSERT,
            schema=schema,
            lanes={**lanes, repair_lane(self._job.id): Span(NO_OFFSET, 0)},
            path=str(path),
            rows=table.num_rows,
            changes=table.num_rows,
            has_deletes=True,
            bounds=key_bounds(table, schema.keys),
            options=compared.route.options,
            shape=compared.route.shape.fingerprint,
        )

    def _tell(
        self,
        calm: int,
        keys: Sequence[Key],
        wrong: Sequence[Key],
        here: Open,
        before: Mapping[Key, Texts],
        now: Mapping[Key, Texts],
    ) -> None:
        """Each row that is changed: before, after, and why."""
        rows: list[Mapping[str, Any]] = []
        why = f"{self._job.id}: the log has no change of it, and the two were not the same"
        for key in keys:
            row = {**shown(Found(key, now.get(key), before.get(key)), here.shape), "why": why}
            if key not in wrong:
                row |= {"what": "equal now"}
            else:
                log.info("row_repaired", target=str(self._run.compared.target), **row)
            rows.append(row)
        left = len(self._table.found) - calm
        notes = (f"not repaired: {left} rows, which the source changes just now",) if left else ()
        self._done = Repaired(tuple(rows), notes)


def _schema(here: Open) -> TableSchema:
    """What the source's rows become, under the target's names."""
    assert here.state.schema is not None
    stored = {column.name.lower(): column for column in here.state.schema.columns}
    shown = here.wanted.schema
    names = {column.name: stored[column.name.lower()].name for column in shown.columns}
    columns = tuple(Column(names[column.name], column.type) for column in shown.columns)
    return TableSchema(columns, tuple(names[key] for key in shown.keys))


def _check(here: Open) -> None:
    """Raise EditRefused where a row could not be written as it is."""
    if here.state.positions is not None:
        raise EditRefused(
            "the target keeps the source's positions of its rows, which the database does not"
            " tell: `binlogd tables rebuild`"
        )
    if not here.shape.whole:
        raise EditRefused(
            f"whole rows can't be had: {'; '.join((*here.shape.notes, *here.shape.missing))}"
        )
