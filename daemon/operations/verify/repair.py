"""The rows of a repair: as the source had them, and as a sink takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from actors.contract.ports import ResettableSink
from actors.contract.writes import StagedBatch, TargetState
from actors.staging.folder import RunFolder
from changes.model.model import OP, Column, Mode, TableSchema
from changes.routes.fold import key_bounds
from daemon.operations.engine.port import Control
from daemon.operations.engine.record import Job
from daemon.operations.engine.source_targets import Compared
from daemon.operations.engine.source_watermarks import frontiers_of
from daemon.operations.engine.thread import AWAY
from daemon.operations.verify.columns import NotComparable
from daemon.operations.verify.in_flight import NotPassed
from daemon.operations.verify.in_flight_here import Interrupted, not_following
from daemon.operations.verify.open_sides import Open
from daemon.operations.verify.repair_story import (
    Ready,
    Story,
    calm_keys,
    made_ready,
    places,
    stands_behind,
    written,
)
from daemon.operations.verify.report import Repaired
from daemon.operations.verify.run import TableRun
from daemon.operations.verify.work import Table
from daemon.state.edits import EditRefused
from databases.base.port import Key, Texts
from offsets.fence import Span
from offsets.position import NO_OFFSET, TopicPartition, repair_lane
from offsets.snapshot import Snapshot, TargetMark


@dataclass(frozen=True, slots=True)
class Rows:
    """``read``: what the table was when the rows of ``ready`` were read; ``values``: the same rows,
    where there is one."""

    read: Open
    ready: Ready
    values: Mapping[Key, pa.Table]

    def lacking(self) -> list[Key]:
        """The rows that came or went between the two reads of them."""
        rows = self.ready.rows.items()
        return [key for key, row in rows if (row is None) != (key not in self.values)]

    def check_same(self, here: Open) -> None:
        """Raise EditRefused where the tables are others than when the rows were read."""
        same = here.described.definition == self.read.described.definition
        if not same or here.shape != self.read.shape or here.state.schema != self.read.state.schema:
            raise EditRefused("the table's definition was changed meanwhile")

    def staged(
        self, here: Open, keys: Sequence[Key], before: Mapping[Key, Texts]
    ) -> tuple[pa.Table, TableSchema]:
        """A write's rows: those that the source has, and the keys to delete."""
        schema = _schema(here)
        fields = [pa.field(OP, pa.string())]
        fields += [pa.field(column.name, column.type) for column in schema.columns]
        wanted = pa.schema(fields)
        tables = [wanted.empty_table()]
        names = [column.name for column in schema.columns]
        if there := [self.values[key] for key in keys if key in self.values]:
            rows = pa.concat_tables(there).combine_chunks().rename_columns(names)
            op = pa.repeat(pa.scalar("U"), rows.num_rows)
            tables.append(rows.add_column(0, OP, op).cast(wanted))
        if gone := [key for key in keys if key not in self.values and key in before]:
            found = here.target.keys(gone, schema.keys)
            op = pa.repeat(pa.scalar("D"), found.num_rows)
            tables.append(found.add_column(0, OP, op))
        whole = pa.concat_tables(tables, promote_options="default")
        return whole.select(wanted.names).cast(wanted), schema


@dataclass(slots=True)
class Writing:
    """The fenced writes of one edit. ``state``: the target's, after the last of them.

    Each edit has a lane of its own: what one attempt wrote says nothing of another's rows.
    """

    control: Control
    sinks: Mapping[str, ResettableSink]
    compared: Compared
    job: str
    here: Open
    state: TargetState | None = None
    _attempt: str = field(default_factory=lambda: uuid4().hex[:8])
    _number: int = NO_OFFSET

    def write(self, staged: tuple[pa.Table, TableSchema]) -> None:
        """Raises as ``BatchWriter.write``."""
        table, schema = staged
        folder = RunFolder(self.control.config.daemon.staging_folder, f"run-{uuid4().hex[:12]}")
        try:
            path = folder.path / "repair.parquet"
            pq.write_table(table, path)
            sink = self.sinks[self.compared.target.sink]
            self.state = sink.write(self._batch(schema, table, str(path)))
            self._number += 1
        finally:
            folder.close()

    def _batch(self, schema: TableSchema, table: pa.Table, path: str) -> StagedBatch:
        return StagedBatch(
            batch_id=f"repair-{self.job}-{self._attempt}-{self._number + 1}",
            target=self.compared.target,
            mode=Mode.UPSERT,
            schema=schema,
            lanes=self._lanes(),
            path=path,
            rows=table.num_rows,
            changes=table.num_rows,
            has_deletes=True,
            bounds=key_bounds(table, schema.keys),
            options=self.compared.route.options,
            shape=self.compared.route.shape.fingerprint,
        )

    def _lanes(self) -> dict[TopicPartition, Span]:
        """Where the streams stand now: had anything come in between, the write is refused."""
        lanes = {lane: Span(mark, mark) for lane, mark in self.here.state.hwms.items()}
        own = repair_lane(f"{self.job}-{self._attempt}")
        return {**lanes, own: Span(self._number, self._number + 1)}


def _schema(here: Open) -> TableSchema:
    """What the source's rows become, under the target's names."""
    assert here.state.schema is not None
    stored = {column.name.lower(): column for column in here.state.schema.columns}
    shown = here.wanted.schema
    names = {column.name: stored[column.name.lower()].name for column in shown.columns}
    columns = tuple(Column(names[column.name], column.type) for column in shown.columns)
    return TableSchema(columns, tuple(names[key] for key in shown.keys))


def check(here: Open) -> None:
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


# Carries out a repair: rows are read while the pipeline runs, and written while it stands.


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
        """Read the rows, stop the pipeline, write, start it again. Repeating it is harmless.

        Raises EditFailed, Interrupted, and what is away.
        """
        self._sinks = self._control.sinks()
        pipeline = self._job.wanted.pipeline
        try:
            with self._run.opened(self._control.snapshot(pipeline)) as here:
                check(here)
                since = {} if self._table.trail is None else self._table.trail.at
                ready = made_ready(self._table.found, since, self._run.lookout(here))
                there = [key for key, row in ready.rows.items() if row is not None]
                rows = Rows(here, ready, here.values.single(there))
            self._control.edit(pipeline, lambda snapshot: self._edited(snapshot, rows))
        except (NotPassed, NotComparable) as why:
            return Repaired(notes=(f"not repaired: {why}",))
        except EditRefused as refused:
            if isinstance(self._failure, (*AWAY, Interrupted)):
                raise self._failure from refused
            return Repaired(notes=(f"not repaired: {refused}",))
        return self._done

    def _edited(self, snapshot: Snapshot, rows: Rows) -> Snapshot:
        """The edit. Whatever goes wrong leaves rows that were written, and those are right."""
        target = str(self._run.compared.target)
        try:
            if (why := not_following(snapshot, target)) is not None:
                raise EditRefused(why)
            with self._run.opened(snapshot) as here:
                state = self._written(snapshot, here, rows)
        except EditRefused:
            raise
        except Exception as error:
            self._failure = error
            raise EditRefused(str(error) or type(error).__name__) from error
        if state is None:
            return snapshot
        mark = TargetMark(state.version, dict(state.hwms), rows_may_differ=state.rows_may_differ)
        return replace(snapshot, targets={**snapshot.targets, target: mark})

    def _written(self, snapshot: Snapshot, here: Open, rows: Rows) -> TargetState | None:
        rows.check_same(here)
        ready = rows.ready
        at = places(ready, frontiers_of(snapshot), here.state.hwms)
        if stands_behind(ready, at):
            raise EditRefused("the pipeline's positions went back meanwhile")
        torn = set(rows.lacking())
        keys = [key for key in calm_keys(ready, at, self._run.lookout(here)) if key not in torn]
        before = here.target.rows(keys)
        wrong = [key for key in keys if before.get(key) != ready.rows[key]]
        kept = {key for key in wrong if ready.rows[key] is None} if here.shape.deleted else set()
        wrong = [key for key in wrong if key not in kept]
        writing = Writing(self._control, self._sinks, self._run.compared, self._job.id, here)
        ended = written(wrong, lambda some: writing.write(rows.staged(here, some, before)))
        stored = here.target.rows(ended.done)
        target = str(self._run.compared.target)
        story = Story(self._job.id, target, here.shape, ready, before, stored)
        self._done = story.lines(keys, kept, ended, len(self._table.found) - len(keys))
        return writing.state
