"""Sorts a fetched batch: each message goes to the targets that want it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from actors.contract import messages as msg
from actors.contract.multi_entry import TargetPart, by_target
from actors.contract.raw_messages import Messages
from actors.fetcher.spellings import Spellings
from changes.formats.engine.format import Format, MultiEntry
from changes.model.model import BadMessage, Ddl, Kind, TableName
from changes.model.names import target_problem
from changes.routes.routing import RouteConflict, Router, TargetRoute
from changes.sql.mysql.tokens import on_one_line

_Take = tuple[Callable[[int], None], Callable[[bytes], None]]
"""What a slot takes an offset and a value with: bound once for a table, not for each message."""


@dataclass(slots=True)
class _Slot:
    """What one target gets of one fetched batch, in order.

    It grows message by message, so it is no ``Messages`` before all of them are there.
    """

    route: TargetRoute
    offsets: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    ddl: bool = False
    table: TableName | None = None

    def share(self) -> msg.Share:
        messages = Messages.of(self.offsets, self.values)
        return msg.Share(self.route, messages, self.ddl, self.table)


@dataclass(slots=True)
class _Slots:
    """What the targets get, as far as a batch has been sorted."""

    done: list[_Slot] = field(default_factory=list)
    """No more goes into these: something of their target follows that stands apart."""
    by_target: dict[str, _Slot] = field(default_factory=dict)
    by_table: dict[TableName, tuple[_Take, ...]] = field(default_factory=dict)

    def of(self, route: TargetRoute, table: TableName | None) -> _Slot:
        """The one that a target's next rows go into: rows of another table begin a new one."""
        name = str(route.name)
        slot = self.by_target.get(name)
        if slot is not None and slot.table != table:
            self._end(name)
            slot = None
        if slot is None:
            slot = self.by_target[name] = _Slot(route, table=table)
        return slot

    def barrier(self, slot: _Slot) -> None:
        """Put a statement behind what came before it of its target."""
        self._end(str(slot.route.name))
        self.done.append(slot)

    def _end(self, name: str) -> None:
        before = self.by_target.pop(name, None)
        self.done += [before] if before is not None else []
        self.by_table.clear()


class _NotFollowed(Exception):
    """A statement that concerns a whole database: good, and nothing to pass over."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a message can't be sent on. ``lasting``: not the message is wrong, but what it asks."""

    reason: str
    lasting: bool


@dataclass(slots=True)
class PassedOver:
    """Messages of a batch that are passed over for one reason: the first one's offset, how many."""

    first: int
    count: int = 0

    def add(self) -> None:
        """One more of them."""
        self.count += 1


@dataclass(frozen=True, slots=True)
class Sorted:
    """What came of a batch.

    ``shares`` are in lane order, ``good`` is the number of messages before the first
    bad one, ``problem`` what is wrong with the next. ``unread`` are statements
    that can't be understood and are passed over, ``passed_over`` the reasons for which other
    messages are, ``notes`` tables whose names are not sure.
    """

    shares: Sequence[msg.Share]
    good: int
    problem: Problem | None
    unread: Sequence[str]
    passed_over: Mapping[str, PassedOver]
    left_out: Mapping[TableName, str]
    """Tables that were not left out before, and why they are: no target can be named so."""
    notes: Sequence[str] = ()


class Sorter:
    """Splits batches by target. Pure but for what it counts; one thread."""

    def __init__(self, format_: Format, router: Router, *, ddl_not_understood_stops: bool) -> None:
        self._format = format_
        self._router = router
        self._ddl_not_understood_stops = ddl_not_understood_stops
        self._unread: list[str] = []
        self.dropped = 0
        """Messages that no route wants, or that carry no change."""
        self.passed_over = 0
        """Messages that may ask for a change, of a table that they don't name for sure."""
        self._why: dict[str, PassedOver] = {}
        self.left_out: Counter[TableName] = Counter()
        """Messages of each table that is left out."""
        self._newly_left_out: dict[TableName, str] = {}
        self._spellings = Spellings()

    def sort(self, fetched: msg.Fetched) -> Sorted:
        """Look at each message of a batch, in order, up to the first that is not good."""
        rows, nothing = Kind.ROWS, Kind.NOTHING
        slots = _Slots()
        by_table = slots.by_table
        good = 0
        problem: Problem | None = None
        first = fetched.offsets[0] if fetched.offsets else fetched.next_offset
        self._format.turn_to(str(fetched.source), first, fetched.next_offset)
        try:
            heads = self._format.heads(fetched.values)
            for offset, value, (kind, table) in zip(
                fetched.offsets, fetched.values, heads, strict=True
            ):
                if kind is rows:
                    takes = by_table.get(table)  # type: ignore[arg-type]
                    if takes is None:
                        takes = self._takes(table, slots)  # type: ignore[arg-type]
                        by_table[table] = takes  # type: ignore[index]
                    if not takes:
                        self.dropped += 1
                    for take_offset, take_value in takes:
                        take_offset(offset)
                        take_value(value)  # type: ignore[arg-type]
                elif kind is nothing:
                    self.dropped += 1
                elif kind is Kind.PASSED_OVER:
                    self._pass_over(offset, value)
                else:
                    assert value is not None
                    if kind is Kind.DDL:
                        barriers = self._barriers(offset, value)
                    else:
                        barriers = self._several(offset, value, slots)
                    for barrier in barriers:
                        slots.barrier(barrier)
                good += 1
        except BadMessage as bad:
            problem = Problem(str(bad), lasting=False)
        except (RouteConflict, _NotFollowed) as refused:
            problem = Problem(str(refused), lasting=True)
        done = [*slots.done, *slots.by_target.values()]
        shares = [slot.share() for slot in done if slot.offsets]
        unread, self._unread = tuple(self._unread), []
        why, self._why = self._why, {}
        left_out, self._newly_left_out = self._newly_left_out, {}
        return Sorted(shares, good, problem, unread, why, left_out, self._format.notes())

    def _pass_over(self, offset: int, value: bytes | None) -> None:
        assert value is not None
        why = self._format.why_passed_over(value)
        self._why.setdefault(why, PassedOver(offset)).add()
        self.passed_over += 1

    def _takes(self, table: TableName, slots: _Slots) -> tuple[_Take, ...]:
        found = (
            slots.of(route, self._router.owner(table, route.name))
            for route in self._leads(table, 0)
        )
        takes: list[_Take] = [(slot.offsets.append, slot.values.append) for slot in found]
        if takes:
            self._spellings.rows_of(table)
        if self._router.left_out(table) is not None:
            takes.append(self._count_of(table))
        return tuple(takes)

    def _count_of(self, table: TableName) -> _Take:
        """Takes messages that lead nowhere, to count them."""

        def count(_offset: int) -> None:
            self.left_out[table] += 1

        def ignore(_value: bytes) -> None:
            pass

        return count, ignore

    def _leads(self, table: TableName, messages: int = 1) -> tuple[TargetRoute, ...]:
        """The targets of a table's rows, those left out that no lake can have. Counted as
        ``messages`` of it."""
        why = self._router.left_out(table)
        if why is not None:
            if table not in self.left_out:
                self._newly_left_out[table] = why
            self.left_out[table] += messages
        targets = self._router.targets(table)
        if all(table):
            return targets
        return tuple(route for route in targets if target_problem(route.name) is None)

    def _barriers(self, offset: int, value: bytes) -> list[_Slot]:
        """One slot for each target that the statement concerns, also where it names more tables."""
        routes: dict[str, TargetRoute] = {}
        statements = self._format.ddl(value)
        why = self._format.why_not_followed(value, statements)
        if why is not None and any(self._router.targets(each.table) for each in statements):
            self._report_unread(why, statements[0])
            return []
        for statement in statements:
            for route in self._concerned(statement):
                routes[str(route.name)] = route
        return [_Slot(route, [offset], [value], ddl=True) for route in routes.values()]

    def _report_unread(self, why: str, statement: Ddl) -> None:
        """Report a statement that an operator must look at. Raises _NotFollowed where it stops."""
        if self._ddl_not_understood_stops:
            raise _NotFollowed(f"{why}: {on_one_line(statement.sql)}")
        self._unread.append(why)

    def _concerned(self, statement: Ddl) -> tuple[TargetRoute, ...]:
        if all(statement.table):
            if (other := self._spellings.otherwise(statement)) is not None:
                self._report_unread(other, statement)
            return self._leads(statement.table)
        concerned = self._router.targets(statement.table)
        if not concerned:
            return ()
        # Of a whole database, or of an unknown one: there is no one target whose lane could
        # carry it.
        reason = statement.refused or statement.unread
        name = _shown(statement.table)
        if reason is None:
            return ()
        if statement.refused is None and not self._ddl_not_understood_stops:
            self._unread.append(f"{name}{reason}")
            return ()
        raise _NotFollowed(f"{name}{reason} is not followed: {on_one_line(statement.sql)}")

    def _several(self, offset: int, value: bytes, slots: _Slots) -> list[_Slot]:
        """Give each target its part of a message of several entries; barriers are given back."""
        format_ = self._format
        if not isinstance(format_, MultiEntry):
            raise BadMessage("a part of a message, without the others")
        parts = by_target(
            format_,
            value,
            lambda entry: self._rows_lead(entry.table),
            self._format.ddl,
            self._concerned,
        )
        self.dropped += not parts
        for part in parts:
            if not part.ddl:
                slot = slots.of(part.route, self._owner(part))
                slot.offsets.append(offset)
                slot.values.append(part.value)
        return [_Slot(part.route, [offset], [part.value], ddl=True) for part in parts if part.ddl]

    def _rows_lead(self, table: TableName) -> tuple[TargetRoute, ...]:
        targets = self._leads(table)
        if targets:
            self._spellings.rows_of(table)
        return targets

    def _owner(self, part: TargetPart) -> TableName | None:
        """The one table of a part's rows, where its target is to be of one."""
        owners = {self._router.owner(table, part.route.name) for table in part.tables}
        if len(owners) > 1:
            both = " and ".join(sorted(map(str, part.tables)))
            raise RouteConflict(f"{both} both go to {part.route.name}, which no route merges")
        return next(iter(owners), None)


def _shown(table: TableName) -> str:
    """The database, or the table of an unknown one, as the beginning of a message."""
    name = table.database or (f"{table.table} of an unknown database" if table.table else "")
    return f"{name}: " if name else ""
