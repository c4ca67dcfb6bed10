"""Filters a changelog: a change is kept whose row passes before or after it.

A row of a changelog is the row after its change, or the one that was deleted. What it was before
is read from the message itself, and only where that decides: for updates that don't pass, and where
a value is NULL that the message may not have carried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from changes.formats.engine.format import RowChange
from changes.model.model import FROM, FROM_PREFIX, OP, Changes, Origins
from changes.routes.shaping.names import ShapeRefused

Passes = Callable[[Mapping[str, pa.Array], Sequence[int]], pa.Array]
"""Whether rows pass, true, false or null: of columns by their names in small letters, and the
records of the rows."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Where the rows that are kept come from."""

    ops: bytes
    records: Sequence[int]


def filtered_changelog(
    changes: Changes,
    uses: Sequence[str],
    passes: Passes,
    images: Callable[[int], Sequence[RowChange]],
) -> Changes:
    """The changes that are kept. ``uses`` are the columns that the filter needs; ``images`` gives
    what a record says of each of its rows. Raises ShapeRefused, and what ``passes`` raises."""
    origins, table = changes.origins, changes.table
    assert origins is not None
    columns = {name.lower(): table[name].combine_chunks() for name in uses}
    keeps = pc.fill_null(passes(columns, origins.records), False)
    asked = _asked(origins, columns, keeps)
    before: list[int] = []
    values: dict[str, list[object]] = {name: [] for name in columns}
    for row, is_null in asked:
        change = change_at(images, origins.records[row], table["_index"][row].as_py())
        if is_null:
            carried(change.after if change.op != "D" else change.before, columns)
        if change.op == "U" and not keeps[row].as_py():
            image = carried(change.before, columns)
            before.append(row)
            for name in columns:
                values[name].append(image[name])
    if before:
        known = {name: typed(name, values[name], columns[name].type) for name in columns}
        passed = pc.fill_null(passes(known, [origins.records[row] for row in before]), False)
        mask = pa.array([row in set(before) for row in range(len(keeps))], pa.bool_())
        keeps = pc.replace_with_mask(keeps, mask, passed)
    if pc.all(keeps).as_py():
        return changes
    rows = pc.indices_nonzero(keeps).to_pylist()
    kept = Kept(bytes(origins.ops[row] for row in rows), [origins.records[row] for row in rows])
    return replace(changes, table=table.filter(keeps), origins=kept)


def _asked(
    origins: Origins, columns: Mapping[str, pa.Array], keeps: pa.Array
) -> list[tuple[int, bool]]:
    """The rows whose messages are read, each with whether one of its values is NULL."""
    nulls = pa.repeat(pa.scalar(False), len(keeps))
    for column in columns.values():
        nulls = pc.or_(nulls, pc.is_null(column))
    rows = zip(origins.ops, keeps.to_pylist(), nulls.to_pylist(), strict=True)
    return [
        (row, is_null)
        for row, (op, keep, is_null) in enumerate(rows)
        if is_null or (op == _UPDATE and not keep)
    ]


_UPDATE = ord("U")


def change_at(images: Callable[[int], Sequence[RowChange]], record: int, index: int) -> RowChange:
    """What a record says of its change at that place. Raises ShapeRefused."""
    found = images(record)
    if index >= len(found):
        raise ShapeRefused("filter: a message does not say what each of its rows was before")
    return found[index]


def carried(
    image: Mapping[str, object] | None, columns: Mapping[str, pa.Array]
) -> dict[str, object]:
    """An image by names in small letters. Raises ShapeRefused where it lacks a column."""
    known = {name.lower(): value for name, value in (image or {}).items()}
    for name in columns:
        if name not in known:
            raise ShapeRefused(
                f"filter: a change comes without column {name}, before or after it, and "
                "changelogs and histories are filtered by both: have the source send whole rows "
                "(binlog_row_image = FULL, REPLICA IDENTITY FULL)"
            )
    return known


def typed(name: str, values: Sequence[object], type_: pa.DataType) -> pa.Array:
    """A column's values before the changes. Raises ShapeRefused."""
    try:
        return pa.array(values, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise ShapeRefused(f"filter: what column {name} was before is no {type_}") from error


# Filters the changes of a history: each version of a row is there for as long as the row passed.


def filtered_history(
    changes: Changes,
    uses: Sequence[str],
    passes: Passes,
    images: Callable[[int], Sequence[RowChange]],
) -> Changes:
    """The changes of rows that pass before or after, as inserts, updates and deletes of what
    passes. Whole rows; see ``changelog.filtered_changelog``."""
    origins, table = changes.origins, changes.table
    assert origins is not None
    columns = {name.lower(): table[name].combine_chunks() for name in uses}
    ops, records = origins.ops, origins.records
    alive = pc.equal(table[OP].combine_chunks(), "U").to_pylist()
    moved = [False] * len(ops)
    if FROM in table.column_names:
        moved = pc.is_valid(table[FROM]).to_pylist()
    living = [row for row, lives in enumerate(alive) if lives]
    leaving = [row for row, op in enumerate(ops) if op != _INSERT and not moved[row]]
    after = _passing(
        {name: column.take(pa.array(living, pa.int64())) for name, column in columns.items()},
        living, records, passes,
    )  # fmt: skip
    places = _places(records, moved)
    rows = [carried(change_at(images, records[r], places[r]).before, columns) for r in leaving]
    known = {name: typed(name, [row[name] for row in rows], columns[name].type) for name in columns}
    before = _passing(known, leaving, records, passes)
    kept = [row for row in range(len(ops)) if row in before or row in after]
    letters = "".join("D" if r not in after else "U" if r in before else "I" for r in kept)
    # Rows are whole: none needs what its row had under another key.
    own = [name for name in table.column_names if name != FROM and not name.startswith(FROM_PREFIX)]
    taken = table.select(own).take(pa.array(kept, pa.int64()))
    marks = pa.array(["D" if letter == "D" else "U" for letter in letters], pa.string())
    taken = taken.set_column(taken.schema.get_field_index(OP), OP, marks)
    return replace(
        changes, table=taken, origins=Kept(letters.encode(), [records[row] for row in kept])
    )


_INSERT = ord("I")


def _passing(
    columns: dict[str, pa.Array], rows: Sequence[int], records: Sequence[int], passes: Passes
) -> frozenset[int]:
    """Which of the rows pass."""
    if not rows:
        return frozenset()
    found = passes(columns, [records[row] for row in rows]).to_pylist()
    return frozenset(row for row, passed in zip(rows, found, strict=True) if passed)


def _places(records: Sequence[int], moved: Sequence[bool]) -> list[int]:
    """Of each row the place of its change in its message: a row that moved is two rows."""
    places: list[int] = []
    for row, record in enumerate(records):
        if not row or records[row - 1] != record:
            places.append(0)
        else:
            places.append(places[-1] + (not moved[row]))
    return places
