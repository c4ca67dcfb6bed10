"""Turns rows of Debezium's JSON into columns of text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
from msgspec import UNSET
from msgspec.structs import astuple

from changes.formats.debezium.layout import NULL
from changes.formats.debezium.types import Wire, WireType
from changes.formats.debezium.unsent import NOTHING_UNAVAILABLE, Unavailable
from changes.formats.engine.assemble import Misfit, RowSegment, Text
from changes.formats.engine.layout import Refused

NOT_AT_HAND = "a new row without this value, and the row that had it is not at hand"
"""The error of an insert that holds a placeholder."""


@dataclass(slots=True)
class JsonRowSegment(RowSegment):
    """Rows whose cells have JSON's types; their columns are all text.

    Placeholders of values that were not sent become absent here.
    """

    unavailable: Unavailable = NOTHING_UNAVAILABLE
    values: Sequence[bytes] = ()
    """The packed records, whose places are ``records``."""
    keyed: bool = True
    """Whether the rows become a table; in a changelog what was not sent is null."""

    def close_block(self) -> None:
        """Turn the latest rows into columns. Raises Misfit for an insert that is not whole."""
        if not self.rows:
            return
        cells = list(zip(*map(astuple, self.rows), strict=True))
        found: dict[str, Text] = {}
        by_wire: dict[Wire, dict[str, Sequence[Any]]] = {}
        for (name, kind), values in zip(self.columns.items(), cells, strict=True):
            assert isinstance(kind, WireType)
            by_wire.setdefault(kind.wire, {})[name] = values
        for wire, columns in by_wire.items():
            if wire is Wire.STR or wire is Wire.RAW:
                columns = {name: self._sent(name, values) for name, values in columns.items()}
            if wire is Wire.RAW:
                found |= {name: self._raw(name, values) for name, values in columns.items()}
            else:
                found |= dict(zip(columns, _texts([*columns.values()], wire), strict=True))
        self.blocks.append({name: found[name] for name in self.columns})
        self.rows.clear()

    def _sent(self, name: str, values: Sequence[Any]) -> Sequence[Any]:
        """A column's values, UNSET for those that were not sent."""
        placeholders = self._unsent(name, values)
        if not placeholders:
            return values
        first = len(self.ops) - len(self.rows)
        for place in sorted(placeholders):
            if self.keyed and self.ops[first + place] == ord("I"):
                raise Misfit(self.records[first + place], f"{name}: {NOT_AT_HAND}")
        return [UNSET if place in placeholders else value for place, value in enumerate(values)]

    def _unsent(self, name: str, values: Sequence[Any]) -> set[int]:
        """The places of a column's values that were not sent, each decided by its own record."""
        found = self.unavailable.among(values)
        first = len(self.records) - len(self.rows)
        records = {place: self.records[first + place] for place in sorted(found)}
        if not self.unavailable.doubts(map(self.values.__getitem__, records.values())):
            return found
        for place, record in records.items():
            try:
                if not self.unavailable.stands_in(self.values[record]):
                    found.remove(place)
            except Refused as refused:
                raise Misfit(record, f"{name}: {refused}") from refused
        return found

    def _raw(self, name: str, values: Sequence[Any]) -> Text:
        """The raw JSON of values, which the decoder has not parsed."""
        found: list[str | None] = []
        for place, value in enumerate(values):
            raw = NULL if value is UNSET or value is None else bytes(value)
            try:
                found.append(None if raw == NULL else raw.decode())
            except UnicodeDecodeError as error:
                record = self.records[len(self.ops) - len(self.rows) + place]
                raise Misfit(record, f"{name}: not valid UTF-8: {error}") from error
        return Text(pa.array(found, pa.string()), _carried(values))


_ARROWS = {Wire.STR: pa.string(), Wire.FLOAT: pa.float64(), Wire.BOOL: pa.bool_()}


def _texts(columns: Sequence[Sequence[Any]], wire: Wire) -> list[Text]:
    """Several columns of one length and wire, as one array cut up."""
    count = len(columns[0])
    values = list(chain.from_iterable(columns))
    try:
        cells = _integers(values) if wire is Wire.INT else pa.array(values, _ARROWS[wire])
    except (pa.ArrowTypeError, pa.ArrowInvalid, OverflowError):
        return [_text(values) for values in columns]
    if wire is not Wire.STR:
        cells = cells.cast(pa.string())
    return [Text(cells.slice(place * count, count), None) for place in range(len(columns))]


def _integers(values: Sequence[Any]) -> pa.Array:
    """Integers; where none is missing, in half the time of Arrow's conversion."""
    try:
        numbers = struct.pack(f"{len(values)}q", *values)
    except struct.error:
        return pa.array(values, pa.int64())
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(numbers)])


def _text(values: Sequence[Any]) -> Text:
    """One column's values; UNSET is a value that was not carried."""
    texts = pa.array([_plain(value) for value in values], pa.string())
    return Text(texts, _carried(values))


def _plain(value: Any) -> str | None:
    if value is None or value is UNSET:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def _carried(values: Sequence[Any]) -> pa.Array | None:
    if UNSET not in values:
        return None
    return pa.array([value is not UNSET for value in values])
