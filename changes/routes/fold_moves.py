"""Follows rows that came from another key, to complete the columns that they lack.

A row's key may change while the message carries only part of the row (minimal row images). The
missing columns are in the row of its old key: in the batch as far as it has them, else in the
target.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from changes.model.model import FROM, FROM_PREFIX, HAS_PREFIX, OP

Number = int
"""A key's number: equal keys have equal ones."""


@dataclass(slots=True)
class _State:
    """A key's row at some point. ``known`` has the row of a column's value, None for null.

    Other columns are in the target's row of the key ``stored``; without ``stored`` they are null.
    That is the key of row ``at`` of the table, or its old key where ``at`` is beyond the table's
    end. ``last`` is the row that made this state.
    """

    number: Number
    last: int
    known: dict[str, int | None] = field(default_factory=dict)
    stored: Number | None = None
    at: int = -1


def settle(
    table: pa.Table, keys: Sequence[str], numbers: pa.Array, old_numbers: pa.Array
) -> tuple[pa.Table, pa.Array]:
    """The net rows of all keys that took part in a move, and a mask of the other rows.

    ``numbers`` are the numbers of the rows' keys, ``old_numbers`` those of their old keys, null
    where a row has none. The net rows have the table's columns, ``FROM`` being 0 or null.
    """
    olds: list[Number | None] = old_numbers.to_pylist()
    concerned = pa.array({*(old for old in olds if old is not None)}, pa.int64())
    moved = numbers.filter(pc.is_valid(table[FROM]).combine_chunks())
    taking_part = pc.is_in(numbers, pa.concat_arrays([concerned, moved]).unique())
    places = pc.indices_nonzero(taking_part).to_pylist()
    states = _Walk(table, keys, numbers.to_pylist(), olds).over(places)
    return _rows(table, keys, states), pc.invert(taking_part)


class _Walk:
    """Goes through the rows in order and keeps each key's states."""

    def __init__(
        self,
        table: pa.Table,
        keys: Sequence[str],
        numbers: Sequence[Number],
        olds: Sequence[Number | None],
    ) -> None:
        own = {OP, FROM, *keys, *(FROM_PREFIX + key for key in keys)}
        self._columns = [
            name
            for name in table.column_names
            if name not in own and not name.startswith(HAS_PREFIX)
        ]
        self._ends = [op == "D" for op in table[OP].to_pylist()]
        self._before = table[FROM].to_pylist()
        self._flags = {
            name: table[HAS_PREFIX + name].to_pylist()
            for name in self._columns
            if HAS_PREFIX + name in table.column_names
        }
        self._numbers = numbers
        self._olds = olds
        self._states: dict[Number, list[_State]] = {}

    def over(self, places: Sequence[int]) -> list[_State]:
        """Follow these rows; returns each key's last state."""
        for place in places:
            number = self._numbers[place]
            self._states.setdefault(number, []).append(self._next(place, number))
        return [states[-1] for states in self._states.values()]

    def _next(self, place: int, number: Number) -> _State:
        if self._ends[place]:
            return _State(number, place, dict.fromkeys(self._columns))
        old, before = self._olds[place], self._before[place]
        if old is None or before is None:
            earlier = self._at(number, place, place)
        else:
            earlier = self._at(old, before, place + len(self._numbers))
        state = _State(number, place, dict(earlier.known), earlier.stored, earlier.at)
        for name in self._columns:
            if name not in self._flags or self._flags[name][place]:
                state.known[name] = place
        return state

    def _at(self, number: Number, place: int, named_at: int) -> _State:
        """A key's state before a row; before all rows it is what the target stores."""
        states = self._states.get(number, [])
        found = bisect_left(states, place, key=lambda state: state.last)
        return states[found - 1] if found else _State(number, -1, {}, number, named_at)


def _rows(table: pa.Table, keys: Sequence[str], states: Sequence[_State]) -> pa.Table:
    """Make the table of these states: each cell is one of the table's, or null."""
    own = [state.last for state in states]
    moved = [state.stored is not None and state.stored != state.number for state in states]
    origins = [state.at if left else None for state, left in zip(states, moved, strict=True)]
    olds = {FROM_PREFIX + key: key for key in keys}
    columns = {}
    for name in table.column_names:
        if name == FROM:
            columns[name] = pa.array([0 if left else None for left in moved], pa.int64())
        elif name.startswith(HAS_PREFIX):
            column = name.removeprefix(HAS_PREFIX)
            carried = [state.stored is None or column in state.known for state in states]
            columns[name] = pa.array(carried, pa.bool_())
        elif name in olds:
            key = table[olds[name]]
            both = pa.chunked_array([*key.chunks, *table[name].cast(key.type).chunks])
            columns[name] = both.take(pa.array(origins, pa.int64()))
        else:
            as_is = name == OP or name in keys
            sources = own if as_is else [state.known.get(name) for state in states]
            columns[name] = table[name].take(pa.array(sources, pa.int64()))
    return pa.table(columns)
