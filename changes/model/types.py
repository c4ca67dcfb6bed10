"""Column types: how a source's text is read, what the lake stores, and how a type may widen."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from changes.model.model import CHANGELOG_NAMES

TIMESTAMP = pa.timestamp("us")
"""MySQL's DATETIME: a local date and time without a zone."""

TIMESTAMP_UTC = pa.timestamp("us", tz="UTC")
"""MySQL's TIMESTAMP: a point in time."""

MAX_PRECISION = 38
"""Digits that the lakes' decimals hold; MySQL has up to 65, such a column stays text."""

CHANGELOG_TYPES = (pa.string(), pa.int32(), pa.int64(), pa.int32())

CHANGELOG_COLUMNS = tuple(zip(CHANGELOG_NAMES, CHANGELOG_TYPES, strict=True))
"""What each row of a changelog target carries before the source's columns, with its types."""


class TextForm(Enum):
    """How a value's text is to be read, where the Arrow type alone does not say."""

    PLAIN = "plain"
    WHOLE = "whole"
    """An integer."""
    UNSIGNED = "unsigned"
    """An integer of at most 64 bits, none of them a sign; a decimal where no integer is wide
    enough."""
    BYTES = "bytes"
    """Each character is the byte of its code (ISO-8859-1)."""
    UTF8 = "utf8"
    """The same, and those bytes are a text in UTF-8."""
    BASE64 = "base64"
    ENUM = "enum"
    """The number of a label, from 1; 0 is MySQL's value for what was invalid, the empty text."""
    SET = "set"
    """A mask of labels, the first being the lowest bit."""
    UUID = "uuid"
    INET4 = "inet4"
    INET6 = "inet6"
    """Texts of one form, all three: readers that don't know MariaDB's types send their bytes."""
    TIME = "time"
    """MySQL's TIME: up to 838 hours either way, so no time of day; kept as text of one form."""


@dataclass(frozen=True, slots=True)
class SourceType:
    """A source column's type. ``labels`` are those of an enumeration or set, in their order."""

    arrow: pa.DataType
    form: TextForm = TextForm.PLAIN
    labels: tuple[str, ...] = ()


TEXT = SourceType(pa.string())
"""Stored as the text that came."""


def widen(stored: pa.DataType, seen: pa.DataType) -> pa.DataType | None:
    """The type that holds both without loss, None where the lakes can't widen ``stored``.

    A narrower ``seen`` leaves ``stored``: its values are cast up. int32 widens to int64, float32 to
    float64, a decimal in precision at the same scale, as lakes allow for a stored column.
    """
    if _holds(stored, seen):
        return stored
    grows = (
        (pa.types.is_int32(stored) and pa.types.is_int64(seen))
        or (pa.types.is_float32(stored) and pa.types.is_float64(seen))
        or (
            pa.types.is_decimal(stored)
            and pa.types.is_decimal(seen)
            and stored.scale == seen.scale
            and stored.precision < seen.precision
        )
    )
    return seen if grows else None


def _holds(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Whether every value of ``narrow`` is one of ``wide``, in the same family."""
    if wide.equals(narrow):
        return True
    if pa.types.is_decimal(wide):
        if pa.types.is_int32(narrow):
            return bool(wide.precision - wide.scale >= 10)
        if pa.types.is_int64(narrow):
            return bool(wide.precision - wide.scale >= 19)
        return bool(
            pa.types.is_decimal(narrow)
            and narrow.scale <= wide.scale
            and narrow.precision - narrow.scale <= wide.precision - wide.scale
        )
    if pa.types.is_int64(wide):
        return bool(pa.types.is_int32(narrow))
    return bool(pa.types.is_float64(wide) and pa.types.is_float32(narrow))


# Decimals as text with all their digits: no exponent, nothing rounded. Pure.


def shortest(value: Decimal) -> str:
    """A value's text without zeros behind its last digit: one for equal values of any scale."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def texts(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The texts of a column of decimals, each with all digits of its scale."""
    found = pc.cast(column, pa.string())
    if not pc.any(pc.match_substring(found, "E")).as_py():
        return found
    plain = [None if value is None else f"{value:f}" for value in column.to_pylist()]
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([pa.array(plain, pa.string())])
    return pa.array(plain, pa.string())
