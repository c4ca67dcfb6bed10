"""Decodes upsert rows in JSON: the record's key is the row's key, its value is the whole row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from changes.formats.engine.assemble import BLOCK_ROWS
from changes.formats.engine.format import (
    VALUE_AT,
    Confidence,
    DeclaredTypes,
    Packed,
    packed_values,
    sizes,
    unpack,
)
from changes.formats.engine.heads import foreign
from changes.formats.engine.images import RowImage
from changes.formats.engine.json_layout import Documents, JsonLayout
from changes.formats.engine.json_rows import JsonRows, image_of
from changes.formats.engine.json_text import Members, is_empty, text_of, why_not
from changes.formats.engine.layout import Layout, Refused, Unfit, decoded, json_name
from changes.formats.engine.row_format import RowFormat
from changes.formats.engine.rows import Pass
from changes.model.model import (
    BadMessage,
    FormatOptions,
    Head,
    Kind,
    TableName,
)
from changes.model.types import TEXT

TABLE_OPTIONS = frozenset(("default_database", "default_table"))
"""The options that name the table of upsert rows."""

_columns = msgspec.json.Decoder(dict[str, Raw])


def configured_table(format_name: str, options: FormatOptions) -> TableName:
    """The table that the options name; raises ValueError where one is missing."""
    for name in sorted(TABLE_OPTIONS - options.extra.keys()):
        raise ValueError(f"{name}: {format_name} needs it, for its records name no table")
    return TableName(options.extra["default_database"], options.extra["default_table"])


def key_of(packed: bytes) -> Members:
    """The columns in a record's key; raises Refused where it has none."""
    advice = 'have its writer make the key an object of the key\'s columns, such as {"id": 1}'
    if found := _object(unpack(packed).key or b"", advice):
        return found
    raise Refused(f"{advice}: it has none")


def _object(text: bytes, otherwise: str) -> dict[str, Raw]:
    try:
        return _columns.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"{otherwise}: {why_not(text, error)}") from error


def _text(cell: Any) -> str | None:
    """A key's cell as text, whatever has read it; raises Refused."""
    if cell is None or isinstance(cell, str):
        return cell
    return text_of(bytes(cell) if isinstance(cell, Raw) else msgspec.json.encode(cell), TEXT)


class UpsertRows(JsonRows):
    """The ``Rows`` of one table's records, which come packed."""

    tells_inserts = False
    whole = True
    shows_key = False

    def __init__(self, table: TableName) -> None:
        self._table = table
        self._names: tuple[str, ...] = ()
        """The columns of the latest key that was read by itself."""
        self._most = BLOCK_ROWS

    def _message(self, row: type[Struct]) -> type[Struct]:
        return row

    def table_of(self, value: bytes, error: Exception) -> TableName:
        return self._table

    def images(self, value: bytes) -> Iterator[RowImage]:
        key, body = key_of(value), unpack(value).value
        row = {} if body is None or is_empty(body) else _object(body, "its value is no row")
        if (writer := foreign(row)) is not None:
            raise Refused(f"a message of {writer}")
        for name, cell in key.items():
            if _text(row.get(name, cell)) != _text(cell):
                raise Refused(f"{name} is another one in the value than in the record's key")
        for name in row:
            if (given := self.given.get(name.lower(), name)) != name:
                raise Unfit(f"the column names {given} and {name} differ by case only")
        self._names, names = tuple(key), msgspec.json.encode(sorted(key))
        yield image_of("D" if is_empty(body) else "U", {**key, **row}, None, self._names, names)

    def fitted(self, layout: Layout, image: RowImage) -> Layout:
        if set(layout.keys or image.shape.keys) != set(image.shape.keys):
            here, configured = ", ".join(image.shape.keys), ", ".join(layout.keys or ())
            raise Refused(f"the record's key is ({here}), and keys says ({configured})")
        return super().fitted(layout, image)

    # --- many records of one layout

    def block(self, into: Pass) -> bool:
        layout, values = into.layout, into.values[into.place : into.place + self._most]
        bodies = packed_values(values)
        rows = self._with_keys(layout, values, bodies)
        self._most = min(BLOCK_ROWS, 2 * len(rows) + 16)  # fewer where many have to come alone
        if not rows:
            return False
        try:
            texts = layout.texts(rows)
        except Documents as found:
            into.layout = layout.with_documents(found.names)
            return True
        ops = b"".join([b"U" if body else b"D" for body in bodies[: len(rows)]])
        into.add_columns(layout.columns, texts, ops, range(into.place, into.place + len(rows)))
        into.place += len(rows)
        return len(rows) == len(values)

    def _with_keys(
        self, layout: JsonLayout, values: Sequence[bytes], bodies: Sequence[bytes]
    ) -> list[Any]:
        """The rows and their keys, up to the first record that does not fit the layout."""
        read_key = _key_reader(layout, self._names)
        if read_key is None:
            return []
        rows = decoded(layout.decode, [body or b"{}" for body in bodies])
        starts = [VALUE_AT + len(body) for body in bodies[: len(rows)]]
        texts = [v[at : at + sizes(v)[1]] for v, at in zip(values, starts, strict=False)]
        keys = decoded(read_key, texts)
        for name in self._names:
            del rows[_alike(rows[: len(keys)], keys, layout.fields[name]) :]
        return rows


@lru_cache(maxsize=256)
def _key_reader(layout: JsonLayout, names: tuple[str, ...]) -> Callable[[bytes], Any] | None:
    """Make what reads keys of just these columns; None where the layout has others."""
    columns = set(names)
    if not columns or columns - layout.fields.keys() or columns != set(layout.keys or names):
        return None
    members = {layout.fields[name]: json_name(name, layout.fields[name]) for name in names}
    cells = [(field, layout.cell(field)) for field in members]
    key = msgspec.defstruct("Key", cells, rename=members, gc=False, forbid_unknown_fields=True)
    return layout.decoder(key)


def _alike(rows: Sequence[Struct], keys: Sequence[Struct], field: str) -> int:
    """Give rows the column of their key that they lack. Returns how many, from the first on, have
    it as their record's key does."""
    own, given = (list(map(attrgetter(field), each)) for each in (rows, keys))
    if own == given and list(map(type, own)) == list(map(type, given)):
        return len(rows)
    for place, (row, mine, cell) in enumerate(zip(rows, own, given, strict=False)):
        if mine is UNSET:
            setattr(row, field, cell)
        elif (type(mine) is not type(cell) or mine != cell) and _text(mine) != _text(cell):
            return place
    return len(rows)


class UpsertJson(RowFormat):
    """The ``Format`` of upsert rows; raises ValueError without the options that name a table."""

    name: str = "upsert-json"
    keyed: bool = True
    column_types = DeclaredTypes.NONE
    may_lack_types: bool = True
    options = TABLE_OPTIONS

    def __init__(self, options: FormatOptions) -> None:
        super().__init__(options)
        self._table = configured_table(self.name, options)
        self._head = Head(Kind.ROWS, self._table)

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        """Any object may be such a row, so the format is chosen by its name alone."""
        return Confidence.NO

    def peek(self, value: bytes | None) -> Head:
        """That the key is an object is looked at, and no more."""
        try:
            if not (value and value.startswith(b"{", VALUE_AT + max(sizes(value)[0], 0))):
                key_of(value or b"")
        except (Refused, ValueError) as error:
            raise BadMessage(f"{self._table}: {error}") from error
        return self._head

    def rows(self, *, placed: bool = False) -> UpsertRows:
        return UpsertRows(self._table)
