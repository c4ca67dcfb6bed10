"""What Maxwell's row messages are, in terms of a row and what an update replaced."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
from msgspec import Raw, Struct, UnsetType

from changes.formats.json_rows import Row
from changes.formats.layout import Refused
from changes.formats.maxwell_sealed import NO_KEY, Opener
from changes.model import TableName

LETTERS = {"insert": "I", "update": "U", "delete": "D", "bootstrap-insert": "I"}
"""What happened to a row, by the type of its message."""


_FIRST_MILLISECONDS = 100_000_000_000
"""From here on a number is no time in seconds (the year 5138) but one in milliseconds (1973):
Maxwell tells rows by the former and statements by the latter."""


class Message(Struct, gc=False):
    """A message of a row with nothing assumed about its columns."""

    type: str
    data: dict[str, Raw] | None = None
    old: dict[str, Raw] | None = None
    primary_key_columns: Raw = Raw()
    primaryKeyColumns: Raw = Raw()
    encrypted: Any = None
    reason: Any = None
    database: str | None = None
    table: str | None = None


class _Times(Struct, gc=False):
    ts: Raw = Raw()


_message = msgspec.json.Decoder(Message)
_times = msgspec.json.Decoder(_Times)
_key_names = msgspec.json.Decoder(list[str] | None)


class MaxwellDialect:
    """The ``Dialect`` of Maxwell."""

    letters: Mapping[str, str] = LETTERS
    drops_nulls = True

    def __init__(self, opener: Opener | None) -> None:
        self._opener = opener

    def message(self, row: type[Struct]) -> type[Struct]:
        image: Any = row
        fields: list[tuple[str, Any, Any]] = [
            ("kind", str, ""),
            ("now", image | None | UnsetType, None),
            ("was", image | None | UnsetType, None),
            ("names", Raw, Raw()),
            ("odd", Any, None),
        ]
        names = {
            "kind": "type",
            "now": "data",
            "was": "old",
            "names": "primary_key_columns",
            "odd": "encrypted",
        }
        return msgspec.defstruct("Message", fields, rename=names, gc=False)

    def read(self, value: bytes) -> Row:
        message = self.message_of(value)
        if message.type not in LETTERS:
            raise Refused(f"unknown type {message.type!r}")
        if message.data is None:
            raise Refused(f"a message of type {message.type} without data")
        # A member of another name is not looked at by the fast way: it says nothing then.
        names = message.primary_key_columns
        keys = key_columns(bytes(names) or bytes(message.primaryKeyColumns), message.data)
        op = LETTERS[message.type]
        return Row(op, message.data, message.old if op == "U" else None, names, keys)

    def message_of(self, value: bytes) -> Message:
        """Read any message, opened where it is encrypted. Raises Refused."""
        message = _read(value)
        if message.encrypted is not None:
            if self._opener is None:
                raise Refused(NO_KEY)
            message = _read(self._opener.opened(value))
        return message

    def table_of(self, value: bytes) -> TableName | None:
        try:
            message = self.message_of(value)
        except Refused:
            return None
        return TableName(message.database or "", message.table or "")


def moment(value: bytes) -> int | None:
    """When the change happened, in milliseconds; None where the message does not say."""
    try:
        given = Decimal(bytes(_times.decode(value).ts).decode())
    except InvalidOperation:
        return None
    if not given.is_finite() or not 0 < given < _FIRST_MILLISECONDS**2:
        return None
    return int(given if given >= _FIRST_MILLISECONDS else given * 1000)


def key_columns(names: bytes, carried: Collection[str]) -> tuple[str, ...]:
    """Find the key's columns among those of a row; raises Refused where the text names none.

    They are named as the source names them, while ``output_naming_strategy`` renames the columns.
    """
    if not names:
        return ()
    try:
        wanted = _key_names.decode(names) or ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"primary_key_columns is not a list of names: {error}") from error
    return tuple(_found(name, carried) for name in wanted)


def _found(name: str, carried: Collection[str]) -> str:
    """The column that is meant by a name; the name itself where none or several may be."""
    if name in carried:
        return name
    like = [column for column in carried if _folded(column) == _folded(name)]
    return like[0] if len(like) == 1 else name


def _folded(name: str) -> str:
    """What is left of a name that was turned to camel case, or to lower case in a record's key."""
    return name.replace("_", "").lower()


def _read(value: bytes) -> Message:
    try:
        return _message.decode(value)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"not a Maxwell message: {error}") from error
