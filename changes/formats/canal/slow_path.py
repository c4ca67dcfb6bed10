"""Reads any Canal message, slowly and exactly: typed values, unknown columns, no types at all.

Every value stays the text of the message, so no number passes through a float.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from changes.formats.canal.layout import HandleKey, type_word
from changes.formats.engine.json_text import text_of, why_not
from changes.formats.engine.layout import Layout, Refused
from changes.sql.mysql.tokens import on_one_line

type_block = msgspec.json.Decoder(dict[str, str | None] | None)
_sql_types = msgspec.json.Decoder(dict[str, Any] | None)
_key_names = msgspec.json.Decoder(list[str] | None)


class Message(Struct, gc=False):
    """A message of rows with nothing assumed about its columns."""

    type: str
    data: list[dict[str, Raw] | None] | UnsetType | None = UNSET
    old: list[dict[str, Raw] | None] | None = None
    updateBefore: list[dict[str, Raw] | None] | None = None
    mysqlType: Raw = Raw()
    sqlType: Raw = Raw()
    pkNames: Raw = Raw()
    sql: str | None = None
    id: Any = None
    tidb: HandleKey | None = msgspec.field(default=None, name="_tidb")

    @property
    def is_ticdc(self) -> bool:
        """Whether TiCDC wrote it: no message of Canal has this number."""
        return type(self.id) is int and self.id == 0

    @property
    def before(self) -> list[dict[str, Raw] | None]:
        """The replaced values of an update, row by row: ``old``, in InLong ``updateBefore``."""
        return self.old or self.updateBefore or []


_message = msgspec.json.Decoder(Message)

_TICDC_WORDS = {"decimal": "text", "decimal unsigned": "text", "bit": "bigint unsigned"}
"""Types of TiCDC without ``content-compatible``, which leaves out their parameters: how many digits
or bits a column has is unknown, so its values are stored as text, or as 64 bits."""


def read(value: bytes) -> Message:
    """Raises Refused where the value is no such message."""
    try:
        message = _message.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"not a Canal message: {why_not(value, error)}") from error
    if message.data is UNSET:
        raise Refused(f"a message of type {message.type} without data")
    if not message.data and message.sql and message.sql.strip():
        raise Refused(
            f"a change written as a statement, its rows can't be known; set binlog_format=ROW: "
            f"{on_one_line(message.sql)[:80]!r}"
        )
    if message.tidb is not None and message.tidb.is_cut and message.type != "DELETE":
        raise Refused("a row too large for its producer, which sent only the key (TiCDC)")
    return message


def rows(message: Message, layout: Layout) -> list[Struct]:
    """Raises Refused at a row that is null."""
    return [_row(values, layout) for values in message.data or ()]


def olds(message: Message, layout: Layout) -> list[Struct | None]:
    """The old keys, as far as ``old`` names them."""
    return [
        values if values is None else layout.old(**_fields(values, layout, layout.keys or ()))
        for values in message.before
    ]


def befores(
    message: Message, layout: Layout, updated: Sequence[Struct]
) -> list[tuple[object, ...]]:
    """The values in ``old`` of each updated row, without its key.

    ``data`` is not used: of a minimal image it holds new values that ``old`` does not have.
    """
    found: list[tuple[object, ...]] = []
    for place in range(len(updated)):
        values = message.before[place] if place < len(message.before) else None
        was = _fields(values or {}, layout, layout.columns)
        fields = layout.fields.values()
        found.append(tuple([was.get(f, UNSET) for f in fields if f not in layout.key_fields]))
    return found


def carried(message: Message) -> list[str]:
    """The names of the columns that the rows carry, in order."""
    names: dict[str, None] = {}
    for values in message.data or ():
        names.update(dict.fromkeys(values or ()))
    return list(names)


def types(message: Message) -> dict[str, str]:
    """Raises Refused where the block of types is not one."""
    try:
        block = type_block.decode(message.mysqlType) if bytes(message.mysqlType) else None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(f"mysqlType is not an object of texts: {error}") from error
    words = {name: text for name, text in (block or {}).items() if text is not None}
    if message.is_ticdc:
        return {name: _TICDC_WORDS.get(text.lower(), text) for name, text in words.items()}
    numbers = _numbers(message)
    return {name: type_word(text, numbers.get(name)) for name, text in words.items()}


def _numbers(message: Message) -> Mapping[str, Any]:
    """The columns' types as Java's numbers, where the writer sends them."""
    try:
        return (_sql_types.decode(message.sqlType) if bytes(message.sqlType) else None) or {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(f"sqlType is not an object: {error}") from error


def key_names(message: Message) -> tuple[str, ...]:
    """Raises Refused where pkNames is not a list of names."""
    try:
        names = _key_names.decode(message.pkNames) if bytes(message.pkNames) else None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(f"pkNames is not a list of names: {error}") from error
    return tuple(names or ())


def _row(values: Mapping[str, Raw] | None, layout: Layout) -> Struct:
    if values is None:
        raise Refused("data holds null in place of a row")
    return layout.row(**_fields(values, layout, layout.columns))


def _fields(
    values: Mapping[str, Raw], layout: Layout, names: Mapping[str, object] | tuple[str, ...]
) -> dict[str, str | None]:
    return {
        layout.fields[name]: text_of(bytes(values[name]), layout.columns[name])
        for name in names
        if name in values and name in layout.fields
    }
