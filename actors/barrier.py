"""What a DDL message asks of one target, by the pipeline's policy: one write, or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from actors import effects as fx
from actors.buffer import TargetBuffer
from actors.closing import DataError
from actors.doubts import WAY_OUT, Known, doubts_of, known_after
from actors.ports import Doubt, StagedBatch
from actors.waiting import Chunk
from actors.wanted import AnotherTable, Wanted
from changes.formats import declared_types
from changes.formats.base import Format
from changes.formats.untyped import as_declared
from changes.model import (
    AddColumn,
    BadMessage,
    ChangeColumn,
    Ddl,
    DdlPolicy,
    DropColumn,
    DropTable,
    Mode,
    RenameColumn,
    RenameTable,
    TableName,
    TableSchema,
    TableStep,
    TakeName,
    TruncateTable,
)
from changes.routing import RouteConflict, Router

_OF_LANES = " of a table that keeps source positions"
"""Its other lanes may lag behind the statement's: what they still bring is of before it, and the
tombstones know the table and its key by their names."""


@dataclass(slots=True)
class Barrier:
    """A DDL message, planned for one target.

    ``batch`` is None where nothing is to be written. ``forget``: what is known of the columns
    from the rows of before is out of date. ``notes`` are for the log: what is not followed by
    choice. ``unread`` are the statements that nobody understands. ``types`` are the columns' as
    they are known afterwards, in the source's words; ``added`` those of them that are new.
    """

    batch: StagedBatch | None = None
    forget: bool = False
    notes: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    types: Known = field(default_factory=dict)
    added: set[str] = field(default_factory=set)


def notes_of(buffer: TargetBuffer, barrier: Barrier) -> list[object]:
    """Note what a barrier changes beside its write, and what is to be told of it."""
    buffer.era += barrier.forget
    buffer.types = dict(barrier.types)
    buffer.stated |= barrier.added
    buffer.tally.ddl_not_understood += len(barrier.unread)
    kept = [("ddl_kept", what) for what in barrier.notes]
    unread = [("ddl_not_understood", what) for what in barrier.unread]
    return [
        fx.Log("warning", event, {"target": buffer.name, "what": what})
        for event, what in kept + unread
    ]


class BarrierPlanner:
    """Plans one processor's barriers. Pure."""

    def __init__(self, format_: Format, router: Router, policy: DdlPolicy) -> None:
        self._format = format_
        self._router = router
        self._policy = policy

    def plan(self, buffer: TargetBuffer, chunk: Chunk, batch_id: str) -> Barrier:
        """Plan the statement, before which all that came before is written. Raises DataError.

        Its offset is recorded by the write, so after a restart it is a replay like any other.
        """
        barrier = Barrier(types=buffer.types)
        if chunk.above(buffer.hwm(chunk.source)) is None:
            return barrier
        place = f"{chunk.source} offset {chunk.offsets[0]}"
        at = f"at {place}"
        wanted = Wanted()
        try:
            for statement in self._format.ddl(chunk.values[0]):
                if buffer.route in self._router.targets(statement.table):
                    self._take(statement, buffer, wanted, barrier, at)
                    self._doubt(statement, buffer, wanted, barrier, at)
        except (BadMessage, RouteConflict, AnotherTable, _NotFollowed) as error:
            quarantine = isinstance(error, _NotFollowed) and error.quarantine
            raise DataError(f"{place}: {error}", quarantine=quarantine) from error
        moved = wanted.moves_to is not None or wanted.takes_from is not None
        mode = buffer.state.mode or buffer.route.mode
        stored = buffer.state.schema is not None
        # A changelog's rows are what happened: nothing changes them.
        doubts = tuple(wanted.doubts) if stored and mode is Mode.UPSERT else ()
        changed = bool(wanted.ddl or doubts) or wanted.becomes is not None
        if not moved and not (stored and changed):
            # A table that is not there yet is made from its first row, with all its columns.
            return barrier
        barrier.batch = StagedBatch(
            batch_id=batch_id,
            target=buffer.route.name,
            mode=mode,
            schema=buffer.state.schema or TableSchema((), ()),
            lanes=buffer.spans(buffer.through),
            ddl=tuple(wanted.ddl),
            moves_to=wanted.moves_to,
            takes_from=wanted.takes_from,
            doubts=doubts,
            table=wanted.table,
            becomes=wanted.becomes,
        )
        return barrier

    def _doubt(
        self, statement: Ddl, buffer: TargetBuffer, wanted: Wanted, barrier: Barrier, place: str
    ) -> None:
        """Note what the statement may change in stored rows without a row. Raises _NotFollowed.

        Where several tables share the target, what was told of one column is not true of all.
        """
        known, stored = barrier.types, buffer.state.schema
        steps = statement.steps if statement.refused is None else statement.lenient
        barrier.types = known_after(replace(statement, steps=steps), known)
        new = (step.column.name for step in steps if isinstance(step, AddColumn))
        barrier.added |= {f"{statement.table} {name.lower()}" for name in new}
        if stored is None or (buffer.state.mode or buffer.route.mode) is Mode.APPEND:
            return
        before = len(wanted.doubts)
        if statement.unread is not None:
            wanted.doubts.append(Doubt(f"{statement.table}: a statement not understood {place}"))
        elif statement.refused is not None and self._policy.unknown_default == "null":
            wanted.doubts.append(Doubt(f"{statement.table}: {statement.refused} {place}"))
        merges = self._router.merges(statement.table, buffer.route.name)
        if merges:
            known = {}
        first = not wanted.ddl[1:]
        found = tuple(doubts_of(statement, known, stored, place, first=first))
        if found and self._policy.lossy_change != "report":
            raise _Rewrites(statement, found, self._policy.lossy_change == "quarantine")
        wanted.doubts += found
        if len(wanted.doubts) > before and not merges and wanted.becomes is None:
            wanted.acts(statement.table)

    def _take(
        self, statement: Ddl, buffer: TargetBuffer, wanted: Wanted, barrier: Barrier, place: str
    ) -> None:
        table, target = statement.table, buffer.route.name
        if statement.unread is not None:
            if self._policy.not_understood == "stop":
                raise _NotFollowed(statement, statement.unread)
            barrier.unread.append(f"{table}: {statement.unread}")
            barrier.forget = True
            return
        changelog = (buffer.state.mode or buffer.route.mode) is Mode.APPEND
        lanes, types = self._has_lanes(buffer), declared_types(buffer.route.types)
        statement = self._lenient(statement, barrier, place, changelog=changelog, lanes=lanes)
        merges = self._router.merges(table, target)
        view = _View(self._policy, changelog, merges, lanes, statement, types)
        steps = tuple(view.table_steps(barrier.notes))
        view.check_named(buffer.route.keys)
        if wanted.moves_to is not None and steps:
            raise _NotFollowed(statement, "a change after a RENAME in one message")
        if steps:
            wanted.ddl.append(steps)
            if not merges:
                wanted.acts(table)
        self._names(statement, buffer, wanted, barrier, place)
        barrier.forget |= any(not isinstance(step, AddColumn) for step in statement.steps)

    def _lenient(
        self, statement: Ddl, barrier: Barrier, place: str, *, changelog: bool, lanes: bool
    ) -> Ddl:
        """The statement as it is followed where stored values can't be told. Raises _NotFollowed.

        A changelog needs none: events of the past did not have the column. Nor does a table without
        rows, but where other lanes may lag behind, those of before may come after the statement.
        """
        if statement.refused is None:
            return statement
        refusal = _NotFollowed(statement, statement.refused)
        nulls = self._policy.unknown_default == "null"
        if not statement.lenient or (lanes and not changelog and not nulls):
            raise refusal
        steps = statement.lenient
        if not changelog and nulls:
            barrier.notes.append(f"{statement.table} {statement.refused}: NULL in stored rows")
        elif not changelog:
            steps = tuple(
                replace(step, needs_no_rows=f"{refusal} ({place})")
                if isinstance(step, AddColumn)
                else step
                for step in steps
            )
        return replace(statement, steps=steps, refused=None)

    def _names(
        self, statement: Ddl, buffer: TargetBuffer, wanted: Wanted, barrier: Barrier, place: str
    ) -> None:
        """Follow what happens to the table's name. Where the new one has the same target, that is
        to be of the new name from here on, and nothing else."""
        table, target = statement.table, buffer.route.name
        to = next((step.to for step in statement.steps if isinstance(step, RenameTable)), None)
        of = next((step.of for step in statement.steps if isinstance(step, TakeName)), None)
        if to is None and of is None:
            return
        if self._policy.rename_table == "stop":
            raise _NotFollowed(statement, "RENAME TABLE")
        if to is not None and of is not None and self._is_swap(table, to, of):
            barrier.notes.append(
                f"{of} took the place of {table}, an online schema change whose shadow tables no "
                "route takes: stored rows stay as they are, NULL in columns that are new"
            )
            wanted.doubts.append(Doubt(f"{of} took the place of {table} {place}"))
            return
        for other in filter(None, (to, of)):
            if self._router.twin(table, target, other) is None:
                reason = f"RENAME TABLE between {table} and {other}, which no route takes along,"
                raise _NotFollowed(statement, reason)
        moves_to = None if to is None else self._router.twin(table, target, to)
        takes_from = None if of is None else self._router.twin(table, target, of)
        if to is not None and not self._router.merges(table, target):
            wanted.acts(table)
            wanted.becomes = to
        if target in (moves_to, takes_from):
            return
        for name in filter(None, (target, moves_to, takes_from)):
            if (rebuilt := self._router.stands_in_for(name)) is not None:
                # What it held under its other name is in that one's messages.
                raise _NotFollowed(statement, f"RENAME TABLE while {rebuilt} is being rebuilt")
        if self._has_lanes(buffer):
            raise _NotFollowed(statement, f"RENAME TABLE{_OF_LANES}")
        if wanted.moves_to is not None or wanted.takes_from is not None:
            raise _NotFollowed(statement, "a second RENAME in one message")
        wanted.moves_to, wanted.takes_from = moves_to, takes_from

    def _has_lanes(self, buffer: TargetBuffer) -> bool:
        """Whether the target keeps positions, or will once it is made: maybe by another lane."""
        if buffer.state.schema is not None:
            return buffer.state.positions is not None
        route = buffer.route
        return self._format.table_decoder(route.mode, route.keys, route.types).positions is not None

    def _is_swap(self, table: TableName, to: TableName, of: TableName) -> bool:
        """Tell whether an online schema change ends here, both its shadow tables left out."""
        routed = self._router.targets(to) or self._router.targets(of)
        return not routed and is_shadow(table, new=of, old=to)


def is_shadow(table: TableName, *, new: TableName, old: TableName) -> bool:
    """Tell whether the names are those that gh-ost, pt-online-schema-change and others give.

    ``new`` is the table that takes the place of ``table``, ``old`` what that becomes.
    """
    if not (table.database == new.database == old.database):
        return False
    name = re.escape(table.table)
    grown = (rf"_+{name}_(gho|new)", rf"lhmn_{name}")
    left = (rf"_+{name}(_\d+)?_(del|old)(_\d+)?", rf"lhma_[\d_]+_{name}")
    return any(
        re.fullmatch(a, new.table) and re.fullmatch(b, old.table)
        for a, b in zip(grown, left, strict=True)
    )


class _NotFollowed(Exception):
    """A statement that stops the target. ``quarantine``: the configuration sends it there."""

    quarantine = False

    def __init__(self, statement: Ddl, reason: str) -> None:
        sql = " ".join(statement.sql.split())
        shown = sql if len(sql) <= 200 else f"{sql[:200]}…"
        super().__init__(f"{statement.table}: {reason} is not followed: {shown}")


class _Rewrites(_NotFollowed):
    """A statement that may change stored rows."""

    def __init__(self, statement: Ddl, doubts: Sequence[Doubt], quarantine: bool) -> None:
        said = "; ".join(doubt.what.removeprefix(f"{statement.table}: ") for doubt in doubts)
        super().__init__(statement, f"{said}, which may change stored rows without a row of it,")
        self.args = (
            f'{self.args[0]}. ddl.lossy_change = "report" goes on and marks the target: {WAY_OUT}',
        )
        self.quarantine = quarantine


@dataclass(frozen=True, slots=True)
class _View:
    """One statement as one target sees it.

    ``merges``: the target holds other tables too; ``lanes``: it keeps positions, so that the
    table may come in several partitions. ``types`` are those that the configuration declares.
    """

    policy: DdlPolicy
    changelog: bool
    merges: bool
    lanes: bool
    statement: Ddl
    types: Mapping[str, pa.DataType]

    def table_steps(self, notes: list[str]) -> Iterator[TableStep]:
        """The steps that the target takes; what it does not is noted. Raises _NotFollowed."""
        for step in self.statement.steps:
            match step:
                case AddColumn():
                    yield self._add_column(step)
                case DropColumn():
                    yield from self._drop_column(step, notes)
                case RenameColumn():
                    yield from self._rename_column(step, notes)
                case ChangeColumn(old, column):
                    if old == column.name:
                        yield step
                    elif self.changelog:
                        yield self._add_column(AddColumn(column))
                    else:
                        yield from self._rename_column(step, notes)
                case TruncateTable():
                    yield from self._truncate(step, notes)
                case DropTable():
                    yield from self._drop_table(notes)
                case RenameTable() | TakeName():
                    continue

    def _add_column(self, step: AddColumn) -> AddColumn:
        declared = self.types.get(step.column.name.lower())
        if declared is not None:
            try:
                step = as_declared(step, declared)
            except ValueError as error:
                reason = f"ADD COLUMN {step.column.name}: {error}"
                raise _NotFollowed(self.statement, reason) from error
        # Events of the past did not have the column: a changelog shows none there.
        return AddColumn(step.column) if self.changelog else step

    def check_named(self, keys: tuple[str, ...] | None) -> None:
        """Refuse that a column is renamed which the configuration names: as a key, by its type."""
        named = dict.fromkeys(self.types, "of a declared type")
        named |= dict.fromkeys((key.lower() for key in keys or ()), "a key of the route")
        for step in self.statement.steps:
            if isinstance(step, RenameColumn):
                old, new = step.old, step.new
            elif isinstance(step, ChangeColumn):
                old, new = step.old, step.column.name
            else:
                continue
            why = named.get(old.lower())
            if old.lower() != new.lower() and why is not None:
                raise _NotFollowed(self.statement, f"renaming {old}, {why},")

    def _drop_column(self, step: DropColumn, notes: list[str]) -> Iterator[TableStep]:
        if self.policy.drop_column == "stop":
            raise _NotFollowed(self.statement, f"DROP COLUMN {step.name}")
        stays = self.changelog or self.merges or self.lanes
        if stays or self.policy.drop_column == "keep":
            self._note(notes, f"column {step.name} was dropped and is kept")
            if not stays:
                yield DropColumn(step.name, keep=True)
        else:
            yield step

    def _rename_column(
        self, step: RenameColumn | ChangeColumn, notes: list[str]
    ) -> Iterator[TableStep]:
        if self.changelog:
            self._note(notes, f"column {step.old} was renamed: a changelog gets a new column")
        elif self.merges:
            raise _NotFollowed(self.statement, f"renaming {step.old} in one of several tables")
        elif self.lanes:
            raise _NotFollowed(self.statement, f"renaming {step.old}{_OF_LANES}")
        else:
            yield step

    def _truncate(self, step: TruncateTable, notes: list[str]) -> Iterator[TableStep]:
        if self.policy.truncate == "stop":
            raise _NotFollowed(self.statement, "TRUNCATE")
        if self.changelog or self.policy.truncate == "keep":
            self._note(notes, "was truncated, and what is stored is kept")
        elif self.merges:
            raise _NotFollowed(self.statement, "TRUNCATE of one of several tables")
        elif self.lanes:
            raise _NotFollowed(self.statement, f"TRUNCATE{_OF_LANES}")
        else:
            yield step

    def _drop_table(self, notes: list[str]) -> Iterator[TableStep]:
        if self.policy.drop_table == "stop":
            raise _NotFollowed(self.statement, "DROP TABLE")
        if self.changelog:
            self._note(notes, "was dropped, and what is stored is kept")
        elif self.merges and self.policy.drop_table == "follow":
            raise _NotFollowed(self.statement, "DROP TABLE of one of several tables")
        elif self.merges:
            self._note(notes, "was dropped, its rows are kept among those of other tables")
        elif self.lanes:
            raise _NotFollowed(self.statement, f"DROP TABLE{_OF_LANES}")
        else:
            keep = self.policy.drop_table == "keep"
            self._note(notes, f"was dropped, and is {'kept' if keep else 'dropped here too'}")
            yield DropTable(keep)

    def _note(self, notes: list[str], what: str) -> None:
        notes.append(f"{self.statement.table} {what}")
