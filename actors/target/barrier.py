"""Plans a DDL message for one target, by the pipeline's policy: one write, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from actors.contract import effects as fx
from actors.contract.writes import Doubt, StagedBatch
from actors.target.batching import DataError
from actors.target.buffer import TargetBuffer
from actors.target.ddl_view import OF_LANES, NotFollowed, Rewrites, StatementView, is_shadow, judged
from actors.target.divergence import Known, doubts_of, known_after
from actors.target.pending import PendingShare
from changes.formats import configured_types
from changes.formats.engine.format import Format
from changes.model.model import (
    AddColumn,
    BadMessage,
    Ddl,
    DdlPolicy,
    Mode,
    RenameTable,
    TableName,
    TableSchema,
    TableStep,
    TakeName,
    TargetName,
)
from changes.routes.routing import RouteConflict, Router
from changes.routes.shaping.statements import NamedByShape, shaped_statement

# Sum of the statements of one message, for one target.


class AnotherTable(Exception):
    """Two tables have a statement for a target that is meant to be of one."""


@dataclass(slots=True)
class Total:
    """The steps, and what becomes of the target's name.

    ``table``: whose statements they are, where the target is meant to be of one table alone;
    ``becomes``: its name afterwards, where they rename it.
    """

    ddl: list[tuple[TableStep, ...]] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    moves_to: TargetName | None = None
    takes_from: TargetName | None = None
    table: TableName | None = None
    becomes: TableName | None = None

    def acts(self, table: TableName) -> None:
        """A statement of that table does something to the target. Raises AnotherTable."""
        owner = self.becomes or self.table
        if owner is None:
            self.table = table
        elif owner != table:
            raise AnotherTable(f"{owner} and {table} have statements in one message")


@dataclass(slots=True)
class Barrier:
    """A DDL message, planned for one target.

    ``batch`` is None where nothing is to be written. ``forget``: what earlier rows
    showed of the columns is out of date. ``notes`` are for the log: what is not followed by
    choice. ``unread`` are the statements that can't be understood. ``types`` are the columns' as
    they are known afterwards, in the source's words; ``added`` those of them that are new.
    """

    batch: StagedBatch | None = None
    forget: bool = False
    notes: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    types: Known = field(default_factory=dict)
    added: set[str] = field(default_factory=set)


def notes_of(buffer: TargetBuffer, barrier: Barrier) -> list[fx.TargetEffect]:
    """Note what a barrier changes beside its write, and report what is not followed."""
    buffer.columns.stated_by(barrier.types, barrier.added, outdated=barrier.forget)
    buffer.tally.not_understood(len(barrier.unread))
    kept = [("ddl_kept", what) for what in barrier.notes]
    unread = [("ddl_not_understood", what) for what in barrier.unread]
    return [
        fx.Log("warning", event, {"target": buffer.name, "what": what})
        for event, what in kept + unread
    ]


def _shaped(statement: Ddl, buffer: TargetBuffer) -> Ddl:
    """The statement as the target sees it. Raises NotFollowed."""
    if not buffer.route.shape:
        return statement
    try:
        return shaped_statement(buffer.route.shape, statement)
    except NamedByShape as error:
        raise NotFollowed(statement, str(error)) from error


class BarrierPlanner:
    """Plans one processor's barriers. Pure."""

    def __init__(
        self, format_: Format, router: Router, policy: DdlPolicy, *, by_key: bool = False
    ) -> None:
        """``by_key``: each key has one partition."""
        self._by_key = by_key
        self._format = format_
        self._router = router
        self._policy = policy

    def plan(self, buffer: TargetBuffer, chunk: PendingShare, batch_id: str) -> Barrier:
        """Plan the statement, before which all that came before is written. Raises DataError.

        Its offset is recorded by the write, so after a restart it is a replay like any other.
        """
        barrier = Barrier(types=buffer.columns.types)
        if chunk.above(buffer.hwm(chunk.source)) is None:
            return barrier
        place = f"{chunk.source} offset {chunk.messages.first}"
        at = f"at {place}"
        total = Total()
        try:
            for statement in self._format.ddl(chunk.messages.values[0]):
                if buffer.route in self._router.targets(statement.table):
                    statement = _shaped(judged(statement, buffer.state), buffer)
                    self._take(statement, buffer, total, barrier, at)
                    self._doubt(statement, buffer, total, barrier, at)
        except (BadMessage, RouteConflict, AnotherTable, NotFollowed) as error:
            quarantine = isinstance(error, NotFollowed) and error.quarantine
            raise DataError(f"{place}: {error}", quarantine=quarantine) from error
        moved = total.moves_to is not None or total.takes_from is not None
        mode = buffer.state.mode or buffer.route.mode
        stored = buffer.state.schema is not None
        # A changelog's rows are what happened: nothing changes them.
        doubts = tuple(total.doubts) if stored and mode is Mode.UPSERT else ()
        changed = bool(total.ddl or doubts) or total.becomes is not None
        if not moved and not (stored and changed):
            # A table that is not there yet is made from its first row, with all its columns.
            return barrier
        barrier.batch = StagedBatch(
            batch_id=batch_id,
            target=buffer.route.name,
            mode=mode,
            schema=buffer.state.schema or TableSchema((), ()),
            lanes=buffer.spans(buffer.through),
            ddl=tuple(total.ddl),
            moves_to=total.moves_to,
            takes_from=total.takes_from,
            doubts=doubts,
            table=total.table,
            becomes=total.becomes,
        )
        return barrier

    def _doubt(
        self, statement: Ddl, buffer: TargetBuffer, total: Total, barrier: Barrier, place: str
    ) -> None:
        """Note what the statement may change in stored rows without a row. Raises NotFollowed.

        Where several tables share the target, what is known of one column is not true of all.
        """
        known, stored = barrier.types, buffer.state.schema
        steps = statement.steps if statement.refused is None else statement.lenient
        barrier.types = known_after(replace(statement, steps=steps), known)
        # By key the rows of each partition show when they have it.
        named = () if self._is_by_key(buffer) else steps
        new = (step.column.name for step in named if isinstance(step, AddColumn))
        barrier.added |= {f"{statement.table} {name.lower()}" for name in new}
        if stored is None or (buffer.state.mode or buffer.route.mode) is Mode.APPEND:
            return
        before = len(total.doubts)
        if statement.unread is not None:
            total.doubts.append(Doubt(f"{statement.table}: a statement not understood {place}"))
        elif statement.refused is not None and self._policy.unknown_default == "null":
            total.doubts.append(Doubt(f"{statement.table}: {statement.refused} {place}"))
        merges = self._router.merges(statement.table, buffer.route.name)
        if merges:
            known = {}
        first = not total.ddl[1:]
        found = tuple(doubts_of(statement, known, stored, place, first=first))
        if found and self._policy.lossy_change != "report":
            raise Rewrites(statement, found, self._policy.lossy_change != "stop")
        total.doubts += found
        if len(total.doubts) > before and not merges and total.becomes is None:
            total.acts(statement.table)

    def _take(
        self, statement: Ddl, buffer: TargetBuffer, total: Total, barrier: Barrier, place: str
    ) -> None:
        table, target = statement.table, buffer.route.name
        if statement.unread is not None:
            if self._policy.not_understood == "stop":
                raise NotFollowed(statement, statement.unread)
            barrier.unread.append(f"{table}: {statement.unread}")
            barrier.forget = True
            return
        changelog = (buffer.state.mode or buffer.route.mode) is Mode.APPEND
        lanes, types = self._has_lanes(buffer), configured_types(buffer.route.types)
        statement = self._lenient(statement, barrier, place, changelog=changelog, lanes=lanes)
        merges = self._router.merges(table, target)
        by_key = self._is_by_key(buffer)
        view = StatementView(self._policy, changelog, merges, lanes, statement, types, by_key)
        steps = tuple(view.table_steps(barrier.notes))
        view.check_named(buffer.route.keys)
        if total.moves_to is not None and steps:
            raise NotFollowed(statement, "a change after a RENAME in one message")
        if steps:
            total.ddl.append(steps)
            if not merges:
                total.acts(table)
        self._names(statement, buffer, total, barrier, place)
        barrier.forget |= any(not isinstance(step, AddColumn) for step in statement.steps)

    def _lenient(
        self, statement: Ddl, barrier: Barrier, place: str, *, changelog: bool, lanes: bool
    ) -> Ddl:
        """The statement as it is followed where stored values are unknown. Raises NotFollowed.

        A changelog needs none: events of the past did not have the column. Nor does a table without
        rows; but where other lanes may lag behind, older rows may come after the statement.
        """
        if statement.refused is None:
            return statement
        refusal = NotFollowed(statement, statement.refused)
        nulls = self._policy.unknown_default == "null"
        late = lanes and not changelog and not nulls and not self._by_key
        if not statement.lenient or late:
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
        self, statement: Ddl, buffer: TargetBuffer, total: Total, barrier: Barrier, place: str
    ) -> None:
        """Follow what happens to the table's name. Where the new one has the same target, that is
        to be of the new name from here on, and nothing else."""
        table, target = statement.table, buffer.route.name
        to = next((step.to for step in statement.steps if isinstance(step, RenameTable)), None)
        of = next((step.of for step in statement.steps if isinstance(step, TakeName)), None)
        if to is None and of is None:
            return
        if self._policy.rename_table == "stop":
            raise NotFollowed(statement, "RENAME TABLE")
        if to is not None and of is not None and self._is_swap(table, to, of):
            barrier.notes.append(
                f"{of} took the place of {table}, an online schema change whose shadow tables no "
                "route takes: stored rows stay as they are, NULL in columns that are new"
            )
            total.doubts.append(Doubt(f"{of} took the place of {table} {place}"))
            return
        for other in filter(None, (to, of)):
            if self._router.twin(table, target, other) is None:
                reason = f"RENAME TABLE between {table} and {other}, which no route takes along,"
                raise NotFollowed(statement, reason)
        moves_to = None if to is None else self._router.twin(table, target, to)
        takes_from = None if of is None else self._router.twin(table, target, of)
        if to is not None and not self._router.merges(table, target):
            total.acts(table)
            total.becomes = to
        if target in (moves_to, takes_from):
            return
        for name in filter(None, (target, moves_to, takes_from)):
            if (rebuilt := self._router.stands_in_for(name)) is not None:
                # What it held under its other name is in that one's messages.
                raise NotFollowed(statement, f"RENAME TABLE while {rebuilt} is being rebuilt")
        if self._has_lanes(buffer):
            raise NotFollowed(statement, f"RENAME TABLE{OF_LANES}")
        if total.moves_to is not None or total.takes_from is not None:
            raise NotFollowed(statement, "a second RENAME in one message")
        total.moves_to, total.takes_from = moves_to, takes_from

    def _has_lanes(self, buffer: TargetBuffer) -> bool:
        """Whether rows may come in several partitions: it keeps positions, or will; or by key."""
        if self._is_by_key(buffer):
            return True
        if buffer.state.schema is not None:
            return buffer.state.positions is not None
        route = buffer.route
        return self._format.table_decoder(route.mode, route.keys, route.types).positions is not None

    def _is_by_key(self, buffer: TargetBuffer) -> bool:
        return self._by_key and (buffer.state.mode or buffer.route.mode) is Mode.UPSERT

    def _is_swap(self, table: TableName, to: TableName, of: TableName) -> bool:
        """Whether an online schema change ends here, both its shadow tables left out."""
        routed = self._router.targets(to) or self._router.targets(of)
        return not routed and is_shadow(table, new=of, old=to)
