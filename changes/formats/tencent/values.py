"""Reads Tencent DTS's values as text, by their kind and their column's type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import UNSET, UnsetType

from changes.formats.engine.charsets import decode_text
from changes.formats.engine.layout import Refused
from changes.model.digits import is_digits
from changes.model.types import TIMESTAMP_UTC, TextForm
from changes.sql.mysql.types import from_mysql
from settings.counted import counted

Cell = str | UnsetType | None
"""A value as text; None is null, UNSET is one that the row does not hold."""

NIL, BYTES, _DECIMAL, STRING, NA = 0, 11, 12, 13, 14
NUMBERS = frozenset((*range(1, 11), _DECIMAL))
"""INT8 to FLOAT64, and DECIMAL: text in ``sv``."""

UTF8 = frozenset(("utf8mb4", "utf8", "utf8mb3", ""))

ZONE_UTC = " +00:00"
"""The end of a TIMESTAMP in all messages seen so far."""

_ZONED = re.compile(r"(.*\d) ?([+-])(\d\d):?(\d\d)", re.ASCII)
_ZERO = re.compile(r"\d{4}-(00-\d\d|\d\d-00)", re.ASCII)
_LOCAL_SHAPE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)


class TextRule(Enum):
    """How a column's values become text."""

    TEXT = "text"
    BYTES = "bytes"
    LABEL = "label"
    """Of an enumeration or set: the words themselves, never their number."""
    INSTANT = "instant"
    BIT = "bit"


def way_of(original: str) -> TextRule:
    """How the values of a column of this declared type become text."""
    kind = from_mysql(original)
    if kind.form is TextForm.BYTES:
        return TextRule.BYTES
    if kind.form in (TextForm.ENUM, TextForm.SET):
        return TextRule.LABEL
    if kind.arrow == TIMESTAMP_UTC:
        return TextRule.INSTANT
    return TextRule.BIT if original.lower().startswith("bit") else TextRule.TEXT


def declared(original: str) -> str:
    """The type in the words of ``from_mysql``; labels come as words, so they are text."""
    return "text" if way_of(original) is TextRule.LABEL else original


def cells_of(
    values: Sequence[Any], names: Sequence[str], ways: Sequence[TextRule], zone: str
) -> list[Cell]:
    """The values of one row as text; raises Refused."""
    if len(values) != len(names):
        raise Refused(f"{counted(len(values), 'value')} for {counted(len(names), 'column')}")
    cells: list[Cell] = []
    try:
        for value, way in zip(values, ways, strict=True):
            kind = value.dataType
            if kind == STRING and way is TextRule.TEXT and value.charset in UTF8:
                cells.append(value.bv.decode())
            elif kind in NUMBERS and way is TextRule.TEXT:
                cells.append(value.sv or _number(""))
            else:
                cells.append(cell_of(kind, value, way, zone))
    except UnicodeDecodeError as error:
        reason = f"{error.object[:30]!r} is not text in utf8"
        raise Refused(f"{names[len(cells)]}: {reason}") from error
    except Refused as refused:
        raise Refused(f"{names[len(cells)]}: {refused}") from refused
    return cells


def cell_of(kind: int, value: Any, way: TextRule, zone: str) -> Cell:
    """One value as text, None for null, UNSET for none at all; raises Refused."""
    if kind in (NIL, NA):
        if value.sv or value.bv:
            named = "NIL" if kind == NIL else "NA"
            raise Refused(f"a value {(value.sv or value.bv)[:30]!r} of type {named}")
        return None if kind == NIL else UNSET
    if kind in NUMBERS:
        if way is TextRule.LABEL:
            raise Refused(f"a number ({value.sv[:30]!r}) for a label; STRING is expected")
        if way is TextRule.BYTES:
            raise Refused(f"a number ({value.sv[:30]!r}) for bytes; BYTES is expected")
        text = _number(value.sv)
        return _bits(text) if way is TextRule.BIT else text
    if kind not in (STRING, BYTES):
        raise Refused(f"a value of unknown type {kind}")
    raw: bytes = value.bv
    if value.sv:
        raise Refused(f"a value {value.sv[:30]!r} in sv of a type whose values are in bv")
    if way is TextRule.BYTES:
        return raw.decode("latin-1")
    charset = value.charset.partition("_")[0]
    # A text may come as BYTES, without a character set.
    text = decode_text(raw, "" if charset.lower() == "binary" else charset)
    return _instant(text, zone) if way is TextRule.INSTANT else text


def _number(text: str) -> str:
    if not text:
        raise Refused("a number without digits")
    return text


def _bits(text: str) -> str:
    """BIT comes as a signed integer of 64 bits: negative where its first bit is set."""
    if text.startswith("-") and is_digits(text[1:]) and int(text) >= -(1 << 63):
        return str(int(text) + (1 << 64))
    return text


def _instant(text: str, zone: str) -> str:
    """A TIMESTAMP as UTC: it has its own zone, or is in the configured one."""
    if text.endswith(ZONE_UTC):
        return text[: -len(ZONE_UTC)]
    zoned = _ZONED.fullmatch(text)
    local = text if zoned is None or ":" not in zoned[1] else zoned[1]
    if _ZERO.match(local) or (local == text and zone == "UTC"):
        return local
    if not _LOCAL_SHAPE.fullmatch(local):
        raise Refused(f"{text[:40]!r} is not a timestamp")
    try:
        read = datetime.fromisoformat(local)
        if local == text or zoned is None:
            return _from_zone(read, zone)
        shift = timedelta(hours=int(zoned[3]), minutes=int(zoned[4]))
        return (read - shift if zoned[2] == "+" else read + shift).isoformat(" ")
    except (ValueError, OverflowError) as error:
        raise Refused(f"{text[:40]!r} is not a timestamp") from error


def _from_zone(read: datetime, zone: str) -> str:
    """A local time that the zone has twice is the first; one that it skips is refused."""
    when = read.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(UTC)
    if when.astimezone(ZoneInfo(zone)).replace(tzinfo=None) != read:
        raise Refused(f"{read} does not exist in {zone}")
    return when.replace(tzinfo=None).isoformat(" ")
