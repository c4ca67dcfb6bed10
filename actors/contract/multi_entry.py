"""Messages of several entries: what each target gets of one, and in which order it is applied.

Where a target has only rows in a message, they become a message of their own. Where it has
statements too, it gets the whole message as a barrier, and the processor takes that apart into
entry groups: rows, a statement, rows again. Both are at the message's one offset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from changes.formats.engine.format import Entry, Format, MultiEntry
from changes.model.model import Ddl, Kind, TableName
from changes.routes.routing import Router, TargetRoute

Routes = Callable[[Ddl], Sequence[TargetRoute]]
"""The targets that a statement concerns, and an exception where it can't be followed."""


@dataclass(frozen=True, slots=True)
class TargetPart:
    """What one target gets of a message: its rows as a message of their own, or all of it, for
    there are statements of the target in it (``ddl``). ``tables``: whose rows these are."""

    route: TargetRoute
    value: bytes
    ddl: bool
    tables: tuple[TableName, ...] = ()


@dataclass(frozen=True, slots=True)
class EntryGroup:
    """What one target applies at once of a message: neighbouring rows, or one statement.

    ``value`` is a message of these entries. ``done``: so many of the whole message's entries, of
    whichever target, are behind it; so all targets of one statement name the same place.
    ``table``: see ``Share.table``.
    """

    value: bytes
    ddl: bool
    done: int
    last: bool
    table: TableName | None = None


def by_target(
    format_: MultiEntry,
    value: bytes,
    rows: Callable[[Entry], Sequence[TargetRoute]],
    statements: Callable[[bytes], Sequence[Ddl]],
    routes: Routes,
) -> list[TargetPart]:
    """Split a message of several entries by target. Raises BadMessage.

    Where a target has rows that show by themselves what its statements do (a table made) these are
    left out: no write of their own.
    """
    found: dict[str, tuple[TargetRoute, list[tuple[Entry, list[Ddl]]]]] = {}
    for entry in format_.entries(value):
        concerned: list[tuple[TargetRoute, list[Ddl]]]
        if entry.kind is Kind.ROWS:
            concerned = [(route, []) for route in rows(entry)]
        else:
            mine: dict[str, tuple[TargetRoute, list[Ddl]]] = {}
            for ddl in statements(format_.joined(value, [entry.data])):
                for route in routes(ddl):
                    mine.setdefault(str(route.name), (route, []))[1].append(ddl)
            concerned = list(mine.values())
        for route, ddls in concerned:
            found.setdefault(str(route.name), (route, []))[1].append((entry, ddls))
    return [_target_part(format_, value, route, entries) for route, entries in found.values()]


def _target_part(
    format_: MultiEntry, value: bytes, route: TargetRoute, entries: list[tuple[Entry, list[Ddl]]]
) -> TargetPart:
    rows = [entry for entry, _ in entries if entry.kind is Kind.ROWS]
    if rows and all(_shown_by_rows(ddl) for _, ddls in entries for ddl in ddls):
        joined = format_.joined(value, [entry.data for entry in rows])
        tables = tuple(dict.fromkeys(entry.table for entry in rows))
        return TargetPart(route, joined, ddl=False, tables=tables)
    return TargetPart(route, value, ddl=True)


def _shown_by_rows(ddl: Ddl) -> bool:
    """Rows name their columns, with their types; the formats of several entries all do.

    They don't show whether an added column is one that was dropped before (whose values may be kept
    under the name), nor what became of stored values in a column that is redefined.
    """
    return not (ddl.steps or ddl.redefined or ddl.refused or ddl.unread)


def entry_groups(
    format_: Format, router: Router, route: TargetRoute, value: bytes
) -> list[EntryGroup]:
    """Take a message apart for one target, in its order; raises BadMessage.

    Each statement is an entry group of its own, so that all targets that it concerns stand at the
    same place behind it.
    """
    assert isinstance(format_, MultiEntry)
    found: list[tuple[TableName | None, bool, int, list[bytes]]] = []
    for done, entry in enumerate(format_.entries(value), 1):
        ddl = entry.kind is Kind.DDL
        if not _concerns(format_, router, route, value, entry):
            continue
        table = None if ddl else router.owner(entry.table, route.name)
        if found and not ddl and found[-1][:2] == (table, False):
            data = [*found.pop()[3], entry.data]
        else:
            data = [entry.data]
        found.append((table, ddl, done, data))
    last = found[-1][2] if found else 0
    return [
        EntryGroup(format_.joined(value, data), ddl, done, done == last, table)
        for table, ddl, done, data in found
    ]


def _concerns(
    format_: Format, router: Router, route: TargetRoute, value: bytes, entry: Entry
) -> bool:
    if entry.kind is Kind.ROWS:
        return route in router.targets(entry.table)
    assert isinstance(format_, MultiEntry)
    statements = format_.ddl(format_.joined(value, [entry.data]))
    return any(route in router.targets(statement.table) for statement in statements)
