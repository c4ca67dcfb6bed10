"""Records as they come packed, and which columns are a row's key: as its message names them, else
as its record's key does."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec import Raw

from changes.decoding.layout import Refused
from changes.formats.base import VALUE_AT, sizes

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
