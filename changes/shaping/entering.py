"""Filters the changes of a history: each version of a row is there for as long as the row passed.

A row that enters begins its first version, one that leaves ends its last; what happens to it
outside is not told. Whether a row passed before its change is asked of the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from changes.formats.base import RowChange
from changes.model import FROM, FROM_PREFIX, OP, Changes
from changes.shaping.changelog import Kept, Passes, carried, change_at, typed


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
