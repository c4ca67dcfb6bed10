"""Reads the parts of Avro's bytes: what the functions call that are made of a schema."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from typing import Any

from changes.formats.engine.explain import shortest
from changes.formats.wire.connect import instant, not_finite


class Damaged(ValueError):
    """Bytes that no writer with this schema writes."""


_MOST_BITS = 64


def _further(d: bytes, at: int, first: int, bits: int = _MOST_BITS) -> tuple[int, int]:
    """The rest of a number of several bytes, whose first one is known."""
    number, shift = first & 127, 7
    while True:
        byte = d[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            if number >> bits or not byte:
                raise Damaged("a number of too many digits")
            return number, at
        shift += 7
        if shift > bits:
            raise Damaged("a number of too many digits")


def _further_of_int(d: bytes, at: int, first: int) -> tuple[int, int]:
    return _further(d, at, first, 32)


def _uuid_text(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))


HELPERS: Mapping[str, Any] = {
    "BOOLEANS": (False, True),
    "Damaged": Damaged,
    "DOUBLE": struct.Struct("<d").unpack_from,
    "FLOAT": struct.Struct("<f").unpack_from,
    "further": _further,
    "further_of_int": _further_of_int,
    "instant": instant,
    "not_finite": not_finite,
    "shortest": shortest,
    "uuid_text": _uuid_text,
}
"""By the names that the functions know."""

ERRORS = (ValueError, IndexError, OverflowError, MemoryError, RecursionError, struct.error)
"""What a reader raises for bytes that do not hold a value of its schema."""
