"""Which columns of two targets of one table are compared with each other, and how. Pure.

A column is compared where both routes make it of the same columns of the source in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from changes.model.model import Column, TableName, TableSchema
from changes.routes.routing import TargetRoute
from changes.routes.shaping.additions import DELETED, METADATA
from changes.routes.shaping.layout import salt_digest
from changes.sql.forms import Form
from changes.sql.spark.arrow_texts import natural
from changes.sql.spark.schema import iceberg_type
from daemon.operations.load.columns import FittedTable
from daemon.operations.verify.columns import ComparedShape, NotComparable, Pair, prints_alike
from databases.base.port import SourceColumn, SourceTable
from databases.streamed import StreamedColumn

_METADATA = {column.name.lower() for column in METADATA.values()}


@dataclass(frozen=True, slots=True)
class Kept:
    """A target as it is stored, and the route that fills it. ``name`` is for people."""

    name: str
    route: TargetRoute
    schema: TableSchema

    def source_name(self, column: str) -> str:
        """The source's name of a column that is shown as it is, or masked."""
        lower = column.lower()
        for old, new in self.route.shape.rename:
            if new.lower() == lower:
                return old
        return column

    def made_of(self, column: str) -> tuple[str, ...]:
        """What makes the values of a column: columns with equal ones have equal values."""
        shape, lower = self.route.shape, column.lower()
        for name, text in shape.computed:
            if name.lower() == lower:
                return ("computed", text.strip())
        source = self.source_name(column).lower()
        declared = next((type_ for name, type_ in self.route.types if name.lower() == source), "")
        if (mask := shape.mask_of(source)) is not None:
            return ("masked", source, declared, mask.text, salt_digest(shape.salt))
        return ("shown", source, declared)

    def adds(self, column: str) -> bool:
        """Whether the route adds it to tell of changes."""
        lower, shape = column.lower(), self.route.shape
        soft = shape.delete == "soft" and lower == DELETED.name.lower()
        return soft or (bool(shape.metadata) and lower in _METADATA)


def compared(first: Kept, second: Kept) -> tuple[ComparedShape, ComparedShape]:
    """How each side is read: the same columns in the same order. Raises NotComparable."""
    filters = [kept.route.shape.filter.strip() for kept in (first, second)]
    if filters[0] != filters[1]:
        raise NotComparable(
            "their routes have other filters, so that one has rows that the other has not on"
            " purpose: compare each with the source (`binlogd tables verify TARGET`)"
        )
    pairs, notes = _paired(first, second)
    notes += [*_added(first), *_added(second)]
    keys = _keys(first, second, pairs)
    return tuple(
        ComparedShape(
            tuple(pair[side] for pair in pairs.values()),
            tuple(key[side] for key in keys),
            tuple(dict.fromkeys(notes)),
            whole=not notes,
            deleted=DELETED.name if kept.route.shape.delete == "soft" else None,
        )
        for side, kept in enumerate((first, second))
    )  # type: ignore[return-value]


def _paired(first: Kept, second: Kept) -> tuple[dict[str, tuple[Pair, Pair]], list[str]]:
    """By the first one's name the columns that are compared; and why others are not."""
    theirs = {second.made_of(c.name): c for c in second.schema.columns if not second.adds(c.name)}
    pairs: dict[str, tuple[Pair, Pair]] = {}
    notes, found = [], set[str]()
    for column in first.schema.columns:
        if first.adds(column.name):
            continue
        there = theirs.get(first.made_of(column.name))
        if there is None:
            notes.append(_lone(first, second, column.name))
            continue
        found.add(there.name)
        pair = _pair(there, column), _pair(column, there)
        if _alike(*pair) or _alike(*reversed(pair)):
            pairs[column.name] = pair
        else:
            notes.append(
                f"not compared: column {column.name}: {pair[0].type} in {first.name},"
                f" {pair[1].type} in {second.name}, and equal values have no equal text"
            )
    notes += [
        _lone(second, first, column.name)
        for column in second.schema.columns
        if not second.adds(column.name) and column.name not in found
    ]
    return pairs, notes


def _pair(column: Column, stored: Column) -> Pair:
    """``stored`` as it is printed where ``column`` is what it is compared with."""
    there, words = iceberg_type(column.type), iceberg_type(stored.type)
    return Pair(SourceColumn(stored.name, there, True, natural(words)), stored.name, words)


def _alike(pair: Pair, other: Pair) -> bool:
    """Whether a value of the one has the same text as a value of the other's type."""
    return prints_alike(replace(pair, source=replace(pair.source, form=natural(other.type))))


def _lone(kept: Kept, other: Kept, column: str) -> str:
    """Why a column of the one has none in the other that is compared with it."""
    source = kept.made_of(column)[1]
    alike = [each.name for each in other.schema.columns if source in other.made_of(each.name)[:2]]
    if alike:
        return f"not compared: column {column}: the routes make another value of it"
    return f"not compared: column {column}, which {other.name} has not"


def _added(kept: Kept) -> Iterator[str]:
    for column in kept.schema.columns:
        if kept.adds(column.name) and column.name != DELETED.name:
            yield f"not compared: column {column.name} of {kept.name}, which tells of changes"


def _keys(
    first: Kept, second: Kept, pairs: Mapping[str, tuple[Pair, Pair]]
) -> Sequence[tuple[Pair, Pair]]:
    made = [{kept.made_of(key) for key in kept.schema.keys} for kept in (first, second)]
    if not made[0] or not made[1]:
        lacks = second if made[0] else first
        raise NotComparable(f"{lacks.name} has no key: its rows can't be told apart")
    if made[0] != made[1]:
        names = [", ".join(kept.schema.keys) for kept in (first, second)]
        raise NotComparable(f"they have other keys: {names[0]}, and {names[1]} in {second.name}")
    if lacking := [key for key in first.schema.keys if key not in pairs]:
        raise NotComparable(f"the key's column {', '.join(lacking)} is stored as another type")
    keys = [pairs[key] for key in first.schema.keys]
    if any(natural(pair.type) is Form.BITS for key in keys for pair in key):
        raise NotComparable("their key is a floating-point number")
    return keys


def without(
    shapes: tuple[ComparedShape, ComparedShape], left: tuple[ComparedShape, ComparedShape]
) -> tuple[ComparedShape, ComparedShape]:
    """The shapes without the columns that either side's own database leaves out: ``left``."""
    places = [
        place
        for place in range(len(shapes[0].pairs))
        if all(shapes[side].pairs[place] in left[side].pairs for side in (0, 1))
    ]
    notes = tuple(dict.fromkeys(note for shape in left for note in shape.notes))
    return tuple(
        ComparedShape(
            tuple(shape.pairs[place] for place in places),
            shape.keys,
            notes,
            whole=not notes,
            deleted=shape.deleted,
        )
        for shape in shapes
    )  # type: ignore[return-value]


def logged(table: TableName, kept: Kept) -> FittedTable:
    """What the log's changes of the target are read for: its key, and the columns that it is made
    of. Types are not asked for."""
    keys = tuple(kept.source_name(key) for key in kept.schema.keys)
    shown = [c.name for c in kept.schema.columns if not kept.adds(c.name)]
    made = {name.lower() for name, _ in kept.route.shape.computed}
    names = dict.fromkeys(kept.source_name(name) for name in shown if name.lower() not in made)
    here = {name.lower() for name in names}
    names |= dict.fromkeys(sorted(kept.route.shape.computes_with - here))
    columns = tuple(SourceColumn(name, "", True, None) for name in names)
    streamed = tuple(StreamedColumn(column, "") for column in columns)
    return FittedTable(
        SourceTable(table, columns, keys, 0, 0, ""), streamed, kept.route, keys, None
    )
