"""The columns of a Debezium target as known so far, and the structs that read its records.

A layout only grows. It includes the JSON type of each column's values: where that changes (0 and 1
became true and false), the column is read raw from then on.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import pyarrow as pa
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import astuple

from changes.formats.debezium.places import LogPlace, SourceTime
from changes.formats.debezium.types import UNDECLARED, Wire, WireType, as_text
from changes.formats.debezium.untyped import NOTHING_CONFIGURED, ConfiguredWireTypes
from changes.formats.engine.layout import Layout, Refused, Unfit, check_name, json_name, spelled
from changes.model.model import Column, TableSchema
from changes.model.types import SourceType, widen

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
class DeclaredColumn:
    """A column in a record: its type where there is a schema, and that type's words."""

    type: WireType | None
    words: str


class DebeziumLayout(Layout):
    """The ``Layout`` of Debezium's records. ``kinds`` are the columns' types with the encodings of
    their values."""

    def __init__(
        self,
        columns: Mapping[str, WireType],
        keys: tuple[str, ...] | None,
        declared: Mapping[str, str],
        unsettled: Iterable[str] = (),
        configured: ConfiguredWireTypes = NOTHING_CONFIGURED,
        *,
        placed: bool = False,
    ) -> None:
        """``placed``: messages carry their ``LogPlace``, else their ``SourceTime``."""
        self.kinds: Final = dict(columns)
        self.placed: Final = placed
        self._configured: Final = configured
        self.unsettled: Final = frozenset(unsettled)
        """Columns that had only nulls so far: how their values stand is not known."""
        self._cells: Final = [_CELLS[kind.wire] for kind in columns.values()]
        super().__init__(columns, keys, declared)
        self.key: Final = operator.attrgetter(*self.key_fields) if self.key_fields else None
        self._flat: dict[tuple[str, ...], Callable[[bytes], Any]] = {}

    def cell(self, field: str) -> Any:
        return self._cells[int(field.removeprefix("f"))]

    def message_type(self) -> type[Struct]:
        before: Any = self.old if self.keys else self.row
        after: Any = self.row
        members: list[tuple[str, Any, Any]] = [
            ("before", before | None, None),
            ("after", after | None, None),
            ("op", str, ""),
        ]
        source: Any = LogPlace if self.placed else SourceTime
        members.append(("source", source | None, None))
        self.message = msgspec.defstruct("Message", members, gc=False)
        return self.message

    def changed(self, **what: Any) -> DebeziumLayout:
        """Another layout, which differs from this one in some arguments."""
        same = {
            "columns": self.kinds,
            "keys": self.keys,
            "declared": self.declared,
            "unsettled": self.unsettled,
            "configured": self._configured,
        }
        return DebeziumLayout(**same | what, placed=self.placed)

    def reader(self, added: tuple[str, ...] | None) -> Callable[[bytes], Any]:
        """The function that reads envelopes, or flattened rows with these additional members.

        Both return messages; a row that is marked deleted is a message without op.
        """
        if added is None:
            return self.decode
        if added not in self._flat:
            self._flat[added] = self._flat_decoder(added)
        return self._flat[added]

    def _flat_decoder(self, added: tuple[str, ...]) -> Callable[[bytes], Any]:
        count, texts = len(self.fields), {"__op": "u", "__deleted": "false"}
        cells = [(field, self.cell(field), UNSET) for field in self.fields.values()]
        others = [each for each in added if each not in texts]
        for place, name in enumerate((*texts, *others)):
            kind = (str | None, texts[name]) if name in texts else (Raw, UNSET)
            cells.append((f"a{place}", *kind))
        rename = {field: json_name(name, field) for name, field in self.fields.items()}
        rename |= {f"a{place}": name for place, name in enumerate((*texts, *others))}
        flat = msgspec.defstruct("Flat", cells, rename=rename, gc=False, forbid_unknown_fields=True)
        read, row, message = msgspec.json.Decoder(flat).decode, self.row, self.message

        def decode(payload: bytes) -> Any:
            values = astuple(read(payload))
            op, deleted = values[count : count + 2]
            gone = deleted not in ("false", None) or op == "d"
            return message(None, row(*values[:count]), "" if gone else op or "u")

        return decode

    def rebuilt(
        self,
        columns: Mapping[str, SourceType],
        keys: tuple[str, ...] | None,
        known: Iterable[bytes],
    ) -> DebeziumLayout:
        return self.changed(columns=columns, keys=keys)

    def extended(
        self, declared: Mapping[str, DeclaredColumn], carried: Mapping[str, Raw]
    ) -> DebeziumLayout:
        """The layout that also has these columns; raises Refused where there is none.

        ``carried`` are the values of a record. A column without a declared type has the configured
        one, else text, or stays what it is.
        """
        columns, unsettled = dict(self.kinds), set(self.unsettled)
        for name in (*carried, *declared):
            seen = self.seen(name, declared[name].type) if name in declared else None
            stored = columns.get(name)
            if stored is None:
                check_name(name, columns, self.keys)
                columns[name] = self._first_type(name, seen, declared)
                unsettled |= {name} if columns[name] == UNDECLARED and not seen else set()
            elif seen is not None and seen != stored:
                columns[name] = self._wider_type(name, stored, seen, declared[name].words)
        self.declared.update({name: each.words for name, each in declared.items() if each.type})
        for name, raw in carried.items():
            wire = wire_of(bytes(raw))
            if wire is None or _takes(columns[name].wire, wire, bytes(raw)):
                continue
            fresh = name in unsettled and wire is not Wire.FLOAT
            columns[name] = replace(columns[name], wire=wire if fresh else Wire.RAW)
        unsettled -= {name for name, raw in carried.items() if bytes(raw) != NULL}
        if columns == self.kinds and unsettled == self.unsettled:
            return self
        keys = spelled(self.keys, columns)
        return self.changed(columns=columns, keys=keys, unsettled=unsettled)

    def seen(self, name: str, by_schema: WireType | None) -> WireType | None:
        """A column's type by the schema, or by the configuration where that says more; a column
        configured as text takes nearly all as such."""
        if (seen := by_schema) is None:
            return None
        configured = self._configured
        return as_text(seen) if configured.is_text(name) else configured.over(name, seen)

    def _first_type(
        self, name: str, seen: WireType | None, declared: Mapping[str, DeclaredColumn]
    ) -> WireType:
        """The type of a column that is new here."""
        configured = self._configured.type_of(name)
        if configured is None:
            stored = self._configured.stored_as(name)
            if seen is not None or stored is None:
                return seen or UNDECLARED
            return stored
        self.declared.setdefault(name, self._configured.words_of(name))
        if seen is None:
            return configured
        return self._wider_type(name, configured, seen, declared[name].words)

    def _wider_type(self, name: str, stored: WireType, seen: WireType, words: str) -> WireType:
        if stored.means(seen) and stored.arrow.equals(seen.arrow):
            return seen if stored.stored else stored  # the wire stays what was found
        if pa.types.is_integer(stored.arrow) and pa.types.is_boolean(seen.arrow):
            return stored  # TINYINT(1): 0 and 1 become false and true
        if pa.types.is_boolean(stored.arrow) and pa.types.is_integer(seen.arrow):
            return stored
        wider = widen(stored.arrow, seen.arrow)
        if wider is None:
            unnamed = "of the stored column" if stored.stored else "text of no declared type"
            was = self.declared.get(name, unnamed)
            error = Unfit if name in self.columns else Refused
            raise error(
                f"{name}: the type {was} ({stored.arrow}) can't become {words} ({seen.arrow}) "
                f"in the lake"
            )
        if stored.means(seen):
            return replace(stored, arrow=wider, stored=False)
        return replace(seen, arrow=wider)

    def with_stored(self, stored: TableSchema) -> DebeziumLayout:
        return self.changed(configured=self._configured.with_stored(stored))

    def type_of_stored(self, column: Column) -> pa.DataType:
        """As it is stored."""
        return pa.string() if pa.types.is_null(column.type) else column.type

    def means_the_same(self, other: DebeziumLayout) -> bool:
        """Whether the other layout reads the values of these columns alike."""
        return all(kind.means(other.kinds[name]) for name, kind in self.kinds.items())

    def make(self, values: Mapping[str, Raw]) -> Struct:
        """Make a row of values that ``extended`` has seen; raises Refused where one is no text."""
        return self.row(
            **{
                self.fields[name]: cell(bytes(raw), self.kinds[name].wire)
                for name, raw in values.items()
                if name in self.fields
            }
        )


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
    if column is Wire.RAW:
        return True
    if column is Wire.FLOAT:
        if value is Wire.STR:
            return _NOT_FINITE.fullmatch(string_of(raw)) is not None
        # Too large a number would be an infinity.
        return value in (Wire.INT, Wire.FLOAT) and math.isfinite(float(raw))
    return column is value


def string_of(raw: bytes) -> str:
    """The text of a JSON string; raises Refused where it is none."""
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
