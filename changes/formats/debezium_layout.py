"""What is known of a Debezium target's columns so far, and the structs that read its records.

A layout only ever grows. How a column's values stand in JSON is part of it: where that changes
(0 and 1 became true and false), the column is read raw from then on.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import msgspec
import pyarrow as pa
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import astuple

from changes.assemble import Misfit, Segment, Text
from changes.formats.debezium_shapes import NOTHING_UNAVAILABLE, Unavailable
from changes.formats.debezium_types import UNDECLARED, Wire, WireType
from changes.formats.layout import Refused, check_name, json_name
from changes.model import Column, TableSchema
from changes.types import widen

NULL = b"null"

_CELLS: dict[Wire, Any] = {
    Wire.STR: str | None | UnsetType,
    Wire.INT: int | None | UnsetType,
    Wire.FLOAT: float | None | UnsetType,
    Wire.BOOL: bool | None | UnsetType,
    Wire.RAW: Raw,
}
_WHOLE = re.compile(rb"-?\d+")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_string = msgspec.json.Decoder(str)


@dataclass(frozen=True, slots=True)
class Told:
    """What a record tells of a column: its type where there is a schema, and that type's words."""

    type: WireType | None
    words: str


class Layout:
    """Columns with their types, the key, and the structs that read a record of these.

    ``keys`` is None until a record has told them; an empty key makes a changelog. Not changed once
    made, but for ``declared``, which names types in errors.
    """

    def __init__(
        self,
        columns: Mapping[str, WireType],
        keys: tuple[str, ...] | None,
        declared: Mapping[str, str],
        unsettled: Iterable[str] = (),
    ) -> None:
        self.columns: Final = dict(columns)
        self.keys: Final = keys
        self.declared: Final = dict(declared)
        self.unsettled: Final = frozenset(unsettled)
        """Columns that had only nulls so far: how their values stand is not known."""
        self.fields: Final = {name: f"f{place}" for place, name in enumerate(columns)}
        self._names = {field: json_name(name, field) for name, field in self.fields.items()}
        self.key_fields: Final = [self.fields[key] for key in keys or () if key in self.fields]
        self.key: Final = operator.attrgetter(*self.key_fields) if self.key_fields else None
        self.row: Final = self._struct("Row", columns, strict=True)
        old = self._struct("Old", [key for key in keys or () if key in columns], strict=False)
        before: Any = old if keys else self.row
        after: Any = self.row
        members = [("before", before | None, None), ("after", after | None, None), ("op", str, "")]
        message = msgspec.defstruct("Message", members, gc=False)
        self.decode: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(message).decode

    def _struct(self, title: str, names: Iterable[str], *, strict: bool) -> type[Struct]:
        cells = [(self.fields[name], _CELLS[self.columns[name].wire], UNSET) for name in names]
        return msgspec.defstruct(
            title, cells, rename=self._names, gc=False, forbid_unknown_fields=strict
        )

    @property
    def schema(self) -> TableSchema:
        columns = tuple(Column(name, kind.arrow) for name, kind in self.columns.items())
        return TableSchema(columns, self.keys or ())

    def with_keys(self, keys: tuple[str, ...]) -> Layout:
        """Fix the key; raises Refused where a column has a name that the changelog needs."""
        for name in self.columns:
            check_name(name, (), keys)
        return Layout(self.columns, keys, self.declared, self.unsettled)

    def grown(self, told: Mapping[str, Told], carried: Mapping[str, Raw]) -> Layout:
        """Give the layout that also holds these columns; raises Refused where none can.

        ``carried`` are the values of a record. Without a type a column is text, or stays what it
        is.
        """
        columns, unsettled = dict(self.columns), set(self.unsettled)
        for name in (*carried, *told):
            seen = told[name].type if name in told else None
            stored = columns.get(name)
            if stored is None:
                check_name(name, columns, self.keys)
                columns[name] = seen or UNDECLARED
                unsettled |= set() if seen else {name}
            elif seen is not None and seen != stored:
                columns[name] = self._wider(name, stored, seen, told[name].words)
        self.declared.update({name: column.words for name, column in told.items() if column.type})
        for name, raw in carried.items():
            wire = wire_of(bytes(raw))
            if wire is None or _takes(columns[name].wire, wire, bytes(raw)):
                continue
            fresh = name in unsettled and wire is not Wire.FLOAT
            columns[name] = replace(columns[name], wire=wire if fresh else Wire.RAW)
        unsettled -= {name for name, raw in carried.items() if bytes(raw) != NULL}
        if columns == self.columns and unsettled == self.unsettled:
            return self
        return Layout(columns, self.keys, self.declared, unsettled)

    def _wider(self, name: str, stored: WireType, seen: WireType, words: str) -> WireType:
        if stored.means(seen) and stored.arrow.equals(seen.arrow):
            return stored  # the wire stays what was found
        if pa.types.is_integer(stored.arrow) and pa.types.is_boolean(seen.arrow):
            return stored  # TINYINT(1): 0 and 1 become false and true
        if pa.types.is_boolean(stored.arrow) and pa.types.is_integer(seen.arrow):
            return stored
        wider = widen(stored.arrow, seen.arrow)
        if wider is None:
            was = self.declared.get(name, "text of no declared type")
            raise Refused(
                f"{name}: the type {was} ({stored.arrow}) can't become {words} ({seen.arrow}) "
                f"in the lake"
            )
        if stored.means(seen):
            return replace(stored, arrow=wider)
        return replace(seen, arrow=wider)

    def means_the_same(self, other: Layout) -> bool:
        """Tell whether the values of these columns are read alike by the other layout."""
        return all(kind.means(other.columns[name]) for name, kind in self.columns.items())

    def make(self, values: Mapping[str, Raw]) -> Struct:
        """Make a row of values that ``grown`` has seen; raises Refused where one is no text."""
        return self.row(
            **{
                self.fields[name]: cell(bytes(raw), self.columns[name].wire)
                for name, raw in values.items()
                if name in self.fields
            }
        )

    def gone(self, key: Mapping[str, object]) -> Struct:
        """Make the row that ends a key, given by field; the rest is null."""
        return self.row(**{**dict.fromkeys(self.fields.values(), None), **key})


NOT_AT_HAND = "a new row without this value, and the row that had it is not at hand"
"""What is wrong with an insert that holds a placeholder."""


@dataclass(slots=True)
class RawSegment(Segment):
    """Rows whose cells are of the kinds that JSON has; as columns they are all text.

    Cells that stand for a value which was not sent become absent here.
    """

    unavailable: Unavailable = NOTHING_UNAVAILABLE
    keyed: bool = True
    """Whether the rows become a table; in a changelog what was not sent is null."""

    def seal(self) -> None:
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
        placeholders = self.unavailable.among(values)
        if not placeholders:
            return values
        first = len(self.ops) - len(self.rows)
        for place in sorted(placeholders):
            if self.keyed and self.ops[first + place] == ord("I"):
                raise Misfit(self.records[first + place], f"{name}: {NOT_AT_HAND}")
        return [UNSET if place in placeholders else value for place, value in enumerate(values)]

    def _raw(self, name: str, values: Sequence[Any]) -> Text:
        """The JSON of values, which the decoder has not looked into."""
        found: list[str | None] = []
        for place, value in enumerate(values):
            raw = NULL if value is UNSET or value is None else bytes(value)
            try:
                found.append(None if raw == NULL else raw.decode())
            except UnicodeDecodeError as error:
                record = self.records[len(self.ops) - len(self.rows) + place]
                raise Misfit(record, f"{name}: not valid UTF-8: {error}") from error
        return Text(pa.array(found, pa.string()), _carried(values))


_ARROWS = {Wire.STR: pa.string(), Wire.INT: pa.int64(), Wire.FLOAT: pa.float64()}
_ARROWS[Wire.BOOL] = pa.bool_()


def _texts(columns: Sequence[Sequence[Any]], wire: Wire) -> list[Text]:
    """Several columns of one length and wire, as one array cut up."""
    count = len(columns[0])
    try:
        cells = pa.array(list(chain.from_iterable(columns)), _ARROWS[wire])
    except (pa.ArrowTypeError, pa.ArrowInvalid, OverflowError):
        return [_text(values) for values in columns]
    if wire is not Wire.STR:
        cells = cells.cast(pa.string())
    return [Text(cells.slice(place * count, count), None) for place in range(len(columns))]


def _text(values: Sequence[Any]) -> Text:
    """One column's values: UNSET stands for one that was not carried."""
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


def wire_of(raw: bytes) -> Wire | None:
    """How a JSON value stands, None for null. A number with a fraction is FLOAT."""
    first = raw[:1]
    if first == b'"':
        return Wire.STR
    if first in b"-0123456789":
        return Wire.INT if _WHOLE.fullmatch(raw) else Wire.FLOAT
    if first in b"tf":
        return Wire.BOOL
    return None if raw == NULL else Wire.RAW


def _takes(column: Wire, value: Wire, raw: bytes) -> bool:
    if column is Wire.RAW or column is value:
        return True
    if column is Wire.FLOAT:
        return value is Wire.INT or (
            value is Wire.STR and _NOT_FINITE.fullmatch(string_of(raw)) is not None
        )
    return False


def string_of(raw: bytes) -> str:
    """A JSON string's own text; raises Refused where it is none."""
    try:
        return _string.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(f"a value is not valid text: {error}") from error


def cell(raw: bytes, wire: Wire) -> object:
    """A value as the structs hold it. Raises Refused."""
    if wire is Wire.RAW:
        return Raw(raw)
    if raw == NULL:
        return None
    if wire is Wire.STR:
        return string_of(raw)
    if wire is Wire.BOOL:
        return raw == b"true"
    try:
        if wire is Wire.INT:
            return int(raw)
        return float(string_of(raw) if raw.startswith(b'"') else raw)
    except ValueError as error:
        raise Refused(f"a number that can't be read: {raw[:60]!r}") from error
