"""Messages of several entries, taken apart by target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from changes.formats.base import Piece, Several
from changes.model import AddColumn, ChangeColumn, Ddl, DdlStep, Kind
from changes.routing import TargetRoute


class BesideRows(Exception):
    """A statement that can't be followed where it stands: beside rows of the same table."""


Routes = Callable[[Ddl], Sequence[TargetRoute]]
"""The targets that a statement concerns, and an exception where it can't be followed."""


@dataclass(frozen=True, slots=True)
class TargetPart:
    """What one target gets of a message of several entries."""

    route: TargetRoute
    value: bytes
    ddl: bool


def by_target(
    format_: Several,
    value: bytes,
    rows: Callable[[Piece], Sequence[TargetRoute]],
    statements: Callable[[bytes], Sequence[Ddl]],
    routes: Routes,
    unread: Callable[[str], None] | None = None,
) -> list[TargetPart]:
    """Split a message of several entries by target, each target's entries in their order.

    A statement beside rows of its target is left out where rows show by themselves what it does
    (a new column without a default, a column's other type, a table made); any other raises
    BesideRows: one offset can't be a barrier and rows. One that nobody can read is told to
    ``unread`` and left out, where that is given. Raises BadMessage.
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
    return [_target_part(format_, value, route, pieces, unread) for route, pieces in found.values()]


def _target_part(
    format_: Several,
    value: bytes,
    route: TargetRoute,
    pieces: list[tuple[Piece, list[Ddl]]],
    unread: Callable[[str], None] | None,
) -> TargetPart:
    data = [piece.data for piece, _ in pieces if piece.kind is Kind.ROWS]
    if not data:
        return TargetPart(route, format_.joined(value, [p.data for p, _ in pieces]), ddl=True)
    for ddl in (ddl for _, ddls in pieces for ddl in ddls):
        if ddl.unread is not None and unread is not None:
            unread(f"{ddl.table}: {ddl.unread}")
        elif not _shown_by_rows(ddl):
            sql = " ".join(ddl.sql.split())
            raise BesideRows(
                f"{ddl.table}: a statement that comes in one message with rows of its table is "
                f"not followed: {sql}"
            )
    return TargetPart(route, format_.joined(value, data), ddl=False)


def _shown_by_rows(ddl: Ddl) -> bool:
    readable = ddl.refused is None and ddl.unread is None
    return readable and all(map(_is_shown, ddl.steps))


def _is_shown(step: DdlStep) -> bool:
    """Rows name their columns, with their types; the formats of several entries all do."""
    match step:
        case AddColumn():
            return step.default is None
        case ChangeColumn(old, column):
            return old == column.name
    return False
