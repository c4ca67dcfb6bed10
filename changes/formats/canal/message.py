"""Reads a Canal message with nothing assumed about its columns: its rows, types and key.

Every value stays the text of the message, so no number passes through a float.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from changes.formats.engine.images import RowShape
from changes.formats.engine.json_text import why_not
from changes.formats.engine.layout import Refused
from changes.model.positions import position_text
from changes.sql.mysql.tokens import on_one_line
from changes.sql.mysql.types import as_bytes

LETTERS = {"INSERT": "I", "INIT": "I", "UPDATE": "U", "DELETE": "D"}
"""The letter of a change, by the type of its message."""

_BYTES = (2004, -3, -4)
"""``java.sql.Types.BLOB``: Canal spells each byte of such a value as a character. Where the value
is NULL it leaves VARBINARY or LONGVARBINARY there, by ``LogEventConvert.parseOneRow``."""

_READ_AS_TEXT = frozenset(("tinytext", "text", "mediumtext", "longtext"))
"""Canal gives these types the number of texts, CLOB, and no others: where one of them has another
number, it is another writer's."""


def type_word(mysql_type: str, sql_type: object) -> str:
    """A column's declared type; marked where its text comes as bytes.

    So Canal sends JSON of MariaDB, which stores it as LONGTEXT, and types like TEXT(300).
    """
    if sql_type not in _BYTES or mysql_type.lower() in _READ_AS_TEXT:
        return mysql_type
    return as_bytes(mysql_type)


_TICDC_WORDS = {"decimal": "text", "decimal unsigned": "text", "bit": "bigint unsigned"}
"""Types of TiCDC without ``content-compatible``, which leaves out their parameters: how many digits
or bits a column has is unknown, so its values are stored as text, or as 64 bits."""


class HandleKey(Struct, gc=False):
    """TiCDC's own part of a message: when its transaction was committed, and the mark on a message
    that was too large and was cut down to its key."""

    onlyHandleKey: bool = False
    claimCheckLocation: str | None = None
    commitTs: int | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the message has that mark."""
        return self.onlyHandleKey or bool(self.claimCheckLocation)


Images = list[dict[str, Raw] | None]


class Message(Struct, gc=False):
    """A message of rows with nothing assumed about its columns."""

    type: str
    data: Images | UnsetType | None = UNSET
    old: Images | None = None
    updateBefore: Images | None = None
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


_message = msgspec.json.Decoder(Message)
_type_block = msgspec.json.Decoder(dict[str, str | None] | None)
_sql_types = msgspec.json.Decoder(dict[str, Any] | None)
_key_names = msgspec.json.Decoder(list[str] | None)


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


class MessageShape(RowShape):
    """The shape of a message's rows. Types and key are parsed when they are needed, since most
    messages repeat known ones; both raise Refused."""

    sql_types: Raw
    is_ticdc: bool

    def __init__(
        self, names: tuple[str, ...], types: Raw, keys: Raw, sql_types: Raw, is_ticdc: bool
    ) -> None:
        vars(self).update(names=names, types_text=bytes(types), key_text=bytes(keys))
        vars(self).update(sql_types=sql_types, is_ticdc=is_ticdc)

    @cached_property
    def types(self) -> Mapping[str, str]:
        block = _parsed(_type_block, self.types_text, "mysqlType is not an object of texts")
        words = {name: text for name, text in block.items() if text is not None}
        if self.is_ticdc:
            return {name: _TICDC_WORDS.get(text.lower(), text) for name, text in words.items()}
        numbers = _parsed(_sql_types, self.sql_types, "sqlType is not an object")
        return {name: type_word(text, numbers.get(name)) for name, text in words.items()}

    @cached_property
    def keys(self) -> tuple[str, ...]:
        return tuple(_parsed(_key_names, self.key_text, "pkNames is not a list of names"))


def _parsed(decoder: msgspec.json.Decoder[Any], text: Any, what_not: str) -> Any:
    try:
        return (decoder.decode(text) if bytes(text) else None) or {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"{what_not}: {error}") from error


def position_of(message: Message, op: str, shape: RowShape) -> str:
    """When the transaction was committed: TiDB has one change of a key in a transaction."""
    commit = None if message.tidb is None else message.tidb.commitTs
    if commit is None or commit < 0:
        raise Refused("the message has no _tidb.commitTs, which the configured positions are")
    for name in shape.types if op != "D" else ():
        if any(row is not None and name not in row for row in message.data or ()):
            raise Refused(
                f"column {name} is missing: rows that carry only part of their columns can't be "
                "put in order by a position a row"
            )
    return position_text(commit)
