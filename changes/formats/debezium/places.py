"""Reads the time of a change, and its position in the source's log, from its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from changes.decoding.layout import Refused
from changes.positions import position_text

_members = msgspec.json.Decoder(dict[str, Raw])


class Place(Struct, gc=False):
    """Where in PostgreSQL's log a record's change is, in its ``source``."""

    lsn: int | None = None


def place_texts(places: Sequence[Place | None]) -> list[str] | None:
    """The positions of records, None where any of them has none."""
    numbers = [place.lsn for place in places if place is not None and place.lsn is not None]
    if len(numbers) < len(places) or min(numbers) < 0:
        return None
    return list(map(position_text, numbers))


def position_of(found: Mapping[str, Raw]) -> str:
    """The position of a change in PostgreSQL's log: each change of a key has its own LSN.

    Raises Refused where the record has none.
    """
    try:
        inner: Mapping[str, Raw] = _members.decode(found["source"]) if "source" in found else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        inner = {}
    for where, name in ((inner, "lsn"), (found, "__source_lsn"), (found, "__lsn")):
        text = bytes(where[name]) if name in where else b""
        if text.isdigit() and len(text) < 21:
            return position_text(int(text))
    raise Refused("the record has no source.lsn, which the configured positions are")


def moment(found: Mapping[str, Raw] | None) -> int | None:
    """When the change happened (``source.ts_ms``), else when the record was written, in ms.

    Zero is what old connectors write for "unknown".
    """
    if found is None:
        return None
    try:
        inner: Any = _members.decode(found["source"]) if "source" in found else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        inner = {}
    for where, name in ((inner, "ts_ms"), (found, "__source_ts_ms"), (found, "ts_ms")):
        text = bytes(where[name]).strip(b'"') if name in where else b""
        if text.isdigit() and 0 < len(text) < 18 and int(text) > 0:
            return int(text)
    return None
