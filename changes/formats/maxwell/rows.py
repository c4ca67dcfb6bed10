"""What Maxwell's row messages are, in terms of a row and what an update replaced."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
from msgspec import Raw, Struct

from changes.formats.engine.format import VALUE_AT, packed_values, sizes
from changes.formats.engine.images import RowImage
from changes.formats.engine.json_rows import JsonRows, image_of
from changes.formats.engine.json_text import why_not
from changes.formats.engine.layout import Refused
from changes.formats.maxwell.ddl import TYPES
from changes.formats.maxwell.encrypted import NO_KEY, Decryptor

# Records as they come packed, and which columns are a row's key: as its message names them, else
# as its record's key does.

_PREFIX = "pk."
"""Begins the members of a record key (``kafka_key_format=hash``) that are columns."""

_names = msgspec.json.Decoder(list[str] | None)
_hash = msgspec.json.Decoder(dict[str, Raw])
_array = msgspec.json.Decoder(tuple[Raw, Raw, list[dict[str, Raw]]])


def body(packed: bytes) -> bytes:
    """The message of a packed record; a tombstone's is empty."""
    size = sizes(packed)[0]
    return packed[VALUE_AT : VALUE_AT + size] if size > 0 else b""


def record_key(packed: bytes) -> bytes | None:
    """The key of a packed record."""
    size, key_size, _ = sizes(packed)
    start = VALUE_AT + max(size, 0)
    return None if key_size < 0 else packed[start : start + key_size]


def key_names(text: bytes) -> tuple[str, ...]:
    """The names in ``primary_key_columns``; raises Refused where it is no list of names."""
    try:
        return tuple(_names.decode(text) or ())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"primary_key_columns is not a list of names: {error}") from error


def record_names(key: bytes | None) -> tuple[str, ...]:
    """The key's columns as a record's key has them, in lower case.

    None where the table has no key, and where the record's key is not one of Maxwell's.
    """
    try:
        if key and key.startswith(b"["):
            return tuple(name for part in _array.decode(key)[2] for name in part)
        members = _hash.decode(key or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    return tuple(name.removeprefix(_PREFIX) for name in members if name.startswith(_PREFIX))


def is_record_key(key: bytes | None) -> bool:
    """Whether a record's key is one of Maxwell's: a table's name, and its key or a random one."""
    if key is None:
        return False
    try:
        if key.startswith(b"["):
            _array.decode(key)
            return True
        members = _hash.decode(key)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    prefixed = any(name.startswith(_PREFIX) or name == "_uuid" for name in members)
    return prefixed and members.keys() >= {"database", "table"}


def found_columns(names: Collection[str], carried: Collection[str]) -> tuple[str, ...]:
    """Find the columns that are meant by names among those of a row.

    Names are the source's, or in lower case, while ``output_naming_strategy`` may have turned the
    columns' to camel case. Where none or several may be meant, the name stays.
    """
    return tuple(name if name in carried else _found(name, carried) for name in names)


def _found(name: str, carried: Collection[str]) -> str:
    like = [column for column in carried if _folded(column) == _folded(name)]
    return like[0] if len(like) == 1 else name


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


LETTERS = {"insert": "I", "update": "U", "delete": "D", "bootstrap-insert": "I"}
"""What happened to a row, by the type of its message."""

_READ = frozenset(("bootstrap-insert",))
"""The types of rows that were read from the table."""

_FIRST_MILLISECONDS = 100_000_000_000
"""From here on a number is a time in milliseconds (1973), not in seconds (the year 5138): Maxwell's
rows have the latter, its statements the former."""


class Message(Struct, gc=False):
    """A message of a row with nothing assumed about its columns."""

    type: str = ""
    data: dict[str, Raw] | None = None
    old: dict[str, Raw] | None = None
    primary_key_columns: Raw = Raw()
    primaryKeyColumns: Raw = Raw()
    encrypted: Any = None
    reason: Any = None
    database: str | None = None
    table: str | None = None


class _Times(Struct, gc=False):
    type: str = ""
    ts: Raw = Raw()


_message = msgspec.json.Decoder(Message)
_times = msgspec.json.Decoder(_Times)


_UNNAMED = Raw()
"""The value of ``primary_key_columns`` in a message without it."""


def _shape(names: Sequence[str]) -> Callable[[bytes], object]:
    """Make a reader of record keys that takes just those of these columns."""
    fields = [("database", Any), ("table", Any), *((f"f{n}", Any) for n in range(len(names)))]
    members = {f"f{place}": f"pk.{name}" for place, name in enumerate(names)}
    key = msgspec.defstruct("Key", fields, rename=members, gc=False, forbid_unknown_fields=True)
    return msgspec.json.Decoder(key).decode


class MaxwellRows(JsonRows):
    """The ``Rows`` of Maxwell, whose records come packed."""

    letters: Mapping[str, str] = LETTERS
    members: Mapping[str, str] = {
        "kind": "type",
        "now": "data",
        "was": "old",
        "names": "primary_key_columns",
        "odd": "encrypted",
    }
    """One that is encrypted is read slowly."""
    times = "ts"
    drops_nulls = True
    completes = False
    moves_freely = True

    def __init__(self, decryptor: Decryptor | None) -> None:
        self._decryptor = decryptor
        self._shape: Callable[[bytes], object] | None = None
        self._shape_text = b""

    def bodies(self, values: Sequence[bytes]) -> Sequence[bytes]:
        return packed_values(values)

    def times_of(self, kinds: Sequence[str], times: Sequence[Any]) -> Sequence[object]:
        if set(map(type, times)) != {int} or not _READ.isdisjoint(kinds):
            return ()
        return [time if time >= _FIRST_MILLISECONDS else time * 1000 for time in times]

    def key_texts(self, names: Sequence[Raw], values: Sequence[bytes]) -> Sequence[bytes]:
        if _UNNAMED not in names:
            first = names[0]
            return (bytes(first),) if names.count(first) == len(names) else list(map(bytes, names))
        if names.count(_UNNAMED) == len(names) and self._have_shape(values):
            return (self._shape_text,)
        return [
            bytes(name) or self._record_text(value)
            for name, value in zip(names, values, strict=True)
        ]

    def _have_shape(self, values: Sequence[bytes]) -> bool:
        """Whether the keys of these records certainly have the same columns as the latest one."""
        if self._shape is None:
            return False
        keys = [
            value[VALUE_AT + size[0] : VALUE_AT + size[0] + size[1]]
            for value, size in zip(values, map(sizes, values), strict=True)
        ]
        try:
            deque(map(self._shape, keys), maxlen=0)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return False
        return True

    def _record_text(self, packed: bytes) -> bytes:
        """The names in a record's key as one text, whose shape is the first tried from now on."""
        key = record_key(packed)
        names = record_names(key)
        text = msgspec.json.encode(names)
        if text != self._shape_text:
            self._shape_text = text
            self._shape = _shape(names) if names and key and key.startswith(b"{") else None
        return text

    def images(self, value: bytes) -> Iterator[RowImage]:
        message = self.message_of(value)
        if message.type not in LETTERS:
            raise Refused(f"unknown type {message.type!r}")
        if message.data is None:
            raise Refused(f"a message of type {message.type} without data")
        op, was = LETTERS[message.type], message.old
        own = bytes(message.primary_key_columns)
        names = key_names(own or bytes(message.primaryKeyColumns) or b"[]")
        # The fast path does not read a member of another name: the record's key replaces it.
        text = own or self._record_text(value)
        if not (own or bytes(message.primaryKeyColumns)):
            names = record_names(record_key(value))
        keys = found_columns(names, {**(was or {}), **message.data})
        yield image_of(op, message.data, was if op == "U" else None, keys, text)

    def message_of(self, value: bytes) -> Message:
        """Read any packed record's message, opened where it is encrypted. Raises Refused."""
        text = body(value)
        message = _read(text)
        if message.encrypted is not None:
            if self._decryptor is None:
                raise Refused(NO_KEY)
            message = _read(self._decryptor.decrypted(text))
        return message


def moment(value: bytes) -> int | None:
    """When the change happened, in milliseconds; None where the message does not say."""
    return _moment(_times.decode(value).ts)


def source_ms(value: bytes) -> int | None:
    """When a change of the source's log happened; None of what is read from a table, and of what
    is none. Raises what msgspec raises."""
    times = _times.decode(value)
    is_change = times.type in TYPES or (times.type in LETTERS and times.type not in _READ)
    return _moment(times.ts) if is_change else None


def _moment(ts: Raw) -> int | None:
    try:
        number = Decimal(bytes(ts).decode())
    except InvalidOperation:
        return None
    if not number.is_finite() or not 0 < number < _FIRST_MILLISECONDS**2:
        return None
    return int(number if number >= _FIRST_MILLISECONDS else number * 1000)


def _read(value: bytes) -> Message:
    try:
        return _message.decode(value)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"not a Maxwell message: {why_not(value, error)}") from error
