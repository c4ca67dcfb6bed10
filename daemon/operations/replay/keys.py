"""Finds the targets of a message, and the keys of the rows that it affects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import pyarrow.compute as pc

from actors.contract.multi_entry import by_target, entry_groups
from changes.formats.engine.format import Format, MultiEntry, TableDecoder
from changes.model.model import (
    FROM,
    HAS_PREFIX,
    AddColumn,
    BadMessage,
    ChangeColumn,
    Changes,
    Ddl,
    Kind,
    Mode,
)
from changes.model.types import shortest
from changes.routes.routing import Router, TargetRoute

Key = tuple[str, ...]
"""A row's key as text, so that a type that was widened in between makes no difference."""


@dataclass(frozen=True, slots=True)
class AffectedTarget:
    """What one target gets from a message: rows or statements. If both, the statements come
    first."""

    route: TargetRoute
    value: bytes
    ddl: bool

    @property
    def target(self) -> str:
        """The target's name."""
        return str(self.route.name)


def affected_targets(format_: Format, router: Router, value: bytes | None) -> list[AffectedTarget]:
    """Split a message by target, as the fetcher does. Empty if no route wants it.

    Raises BadMessage, and RouteConflict, which also stops the fetcher.
    """
    kind, table = format_.peek(value)
    if kind in (Kind.NOTHING, Kind.PASSED_OVER) or value is None:
        return []
    if kind is Kind.PART:
        raise BadMessage("a part of a message, without the others")
    if kind is Kind.ROWS:
        assert table is not None
        return [AffectedTarget(route, value, ddl=False) for route in router.targets(table)]
    if kind is Kind.DDL:
        routes = {
            str(route.name): route
            for ddl in format_.ddl(value)
            for route in router.targets(ddl.table)
        }
        return [AffectedTarget(route, value, ddl=True) for route in routes.values()]
    assert isinstance(format_, MultiEntry)
    parts = by_target(
        format_,
        value,
        lambda entry: router.targets(entry.table),
        format_.ddl,
        lambda ddl: router.targets(ddl.table),
    )
    found = []
    for part in parts:
        found.append(AffectedTarget(part.route, part.value, part.ddl))
        if part.ddl:
            every = entry_groups(format_, router, part.route, value)
            found += [
                AffectedTarget(part.route, each.value, ddl=False) for each in every if not each.ddl
            ]
    return found


def statements(format_: Format, router: Router, affected: AffectedTarget) -> Sequence[Ddl]:
    """The statements that concern the target. Raises BadMessage."""
    return [
        ddl
        for ddl in format_.ddl(affected.value)
        if any(route.name == affected.route.name for route in router.targets(ddl.table))
    ]


def keeps_rows(ddl: Ddl) -> bool:
    """Whether a row is the same row under the same names before and after the statement."""
    readable = ddl.refused is None and ddl.unread is None
    return readable and all(
        isinstance(step, AddColumn)
        or (isinstance(step, ChangeColumn) and step.old == step.column.name)
        for step in ddl.steps
    )


def decoder_of(format_: Format, route: TargetRoute) -> TableDecoder:
    """A decoder of a target's rows, like its processor's."""
    return format_.table_decoder(route.mode, route.keys, route.types)


def keys_of(changes: Changes) -> frozenset[Key] | None:
    """The keys of all rows, including the old keys of moved rows. None for a changelog."""
    if changes.mode is Mode.APPEND or not changes.schema.keys:
        return None
    columns = [changes.table.column(name).to_pylist() for name in changes.schema.keys]
    return frozenset(tuple(map(_text, row)) for row in zip(*columns, strict=True))


def moves_in_part(changes: Changes) -> bool:
    """Whether a row goes to another key and takes values along that the message does not have."""
    table = changes.table
    if FROM not in table.column_names:
        return False
    moved = table.filter(pc.is_valid(table[FROM]))
    return any(
        pc.index(moved[name], False).as_py() >= 0
        for name in moved.column_names
        if name.startswith(HAS_PREFIX)
    )


def _text(value: object) -> str:
    match value:
        case Decimal():
            return shortest(value)
        case datetime():
            return value.isoformat()
        case _:
            return str(value)
