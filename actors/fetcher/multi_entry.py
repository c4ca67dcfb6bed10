"""Messages of several entries: what each target gets of one, and in which order it is applied.

Where a target has rows alone, these are a message of their own and go with all others. Where it has
statements too it gets the whole message, as a barrier, and takes it apart into segments: rows, a
statement, rows again. Both are at the message's one offset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from changes.formats.base import Format, MultiEntry, Piece
from changes.model import Ddl, Kind, TableName
from changes.routing import Router, TargetRoute

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
class Segment:
    """What is applied at once of a message, of one target: neighbouring rows, or one statement.

    ``value`` is a message of these entries. ``done``: so many of the whole message's entries, be
    they of whatever target, are behind it; so the targets of one statement name the same place.
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
    rows: Callable[[Piece], Sequence[TargetRoute]],
    statements: Callable[[bytes], Sequence[Ddl]],
    routes: Routes,
) -> list[TargetPart]:
    """Split a message of several entries by target. Raises BadMessage.

    Where a target has rows that show by themselves what its statements do (a table made) these are
    left out: no write of their own.
    """
    found: dict[str, tuple[TargetRoute, list[tuple[Piece, list[Ddl]]]]] = {}
    for piece in format_.pieces(value):
        concerned: list[tuple[TargetRoute, list[Ddl]]]
        if piece.kind is Kind.ROWS:
            concerned = [(route, []) for route in rows(piece)]
        else:
            mine: dict[str, tuple[TargetRoute, list[Ddl]]] = {}
            for ddl in statements(format_.joined(value, [piece.data])):
                for route in routes(ddl):
                    mine.setdefault(str(route.name), (route, []))[1].append(ddl)
            concerned = list(mine.values())
        for route, ddls in concerned:
            found.setdefault(str(route.name), (route, []))[1].append((piece, ddls))
    return [_target_part(format_, value, route, pieces) for route, pieces in found.values()]


def _target_part(
    format_: MultiEntry, value: bytes, route: TargetRoute, pieces: list[tuple[Piece, list[Ddl]]]
) -> TargetPart:
    rows = [piece for piece, _ in pieces if piece.kind is Kind.ROWS]
    if rows and all(_shown_by_rows(ddl) for _, ddls in pieces for ddl in ddls):
        joined = format_.joined(value, [piece.data for piece in rows])
        tables = tuple(dict.fromkeys(piece.table for piece in rows))
        return TargetPart(route, joined, ddl=False, tables=tables)
    return TargetPart(route, value, ddl=True)


def _shown_by_rows(ddl: Ddl) -> bool:
    """Rows name their columns, with their types; the formats of several entries all do.

    They don't tell of a column that is added whether it is the one that was dropped before, whose
    values may be kept under the name, nor what became of stored values in one that is redefined.
    """
    return not (ddl.steps or ddl.redefined or ddl.refused or ddl.unread)


def segments(format_: Format, router: Router, route: TargetRoute, value: bytes) -> list[Segment]:
    """Take a message apart for one target, in its order; raises BadMessage.

    Each statement is a segment of its own: other targets that it concerns then stand at the same
    place behind it.
    """
    assert isinstance(format_, MultiEntry)
    found: list[tuple[TableName | None, bool, int, list[bytes]]] = []
    for done, piece in enumerate(format_.pieces(value), 1):
        ddl = piece.kind is Kind.DDL
        if not _concerns(format_, router, route, value, piece):
            continue
        table = None if ddl else router.owner(piece.table, route.name)
        if found and not ddl and found[-1][:2] == (table, False):
            data = [*found.pop()[3], piece.data]
        else:
            data = [piece.data]
        found.append((table, ddl, done, data))
    last = found[-1][2] if found else 0
    return [
        Segment(format_.joined(value, data), ddl, done, done == last, table)
        for table, ddl, done, data in found
    ]


def _concerns(
    format_: Format, router: Router, route: TargetRoute, value: bytes, piece: Piece
) -> bool:
    if piece.kind is Kind.ROWS:
        return route in router.targets(piece.table)
    assert isinstance(format_, MultiEntry)
    statements = format_.ddl(format_.joined(value, [piece.data]))
    return any(route in router.targets(statement.table) for statement in statements)
