"""Reads the times of many of Tencent DTS's messages at once (flat_rows.py)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from google.protobuf.message import DecodeError

from changes.formats.engine.flat_rows import (
    MARK,
    MARK_NUMBER,
    joined,
    least_of,
    single,
    split_by_mark,
)
from changes.formats.engine.format import packed_values
from changes.formats.engine.proto_files import messages
from changes.formats.tencent.message import DDL, DML, VERSION

_FLAT = messages("tencent/flat.proto")
_envelopes = _FLAT["EnvelopeTimes"].FromString
_headers = _FLAT["Headers"].FromString
_HEADER_MARK: bytes = _FLAT["Headers"](
    messageType=[MARK_NUMBER], timestamp=[MARK_NUMBER]
).SerializeToString()
_CHANGES = (DML, DDL)


def _mark() -> bytes:
    entries = _FLAT["EntriesTimes"](items=_FLAT["EntryTimes"](header=[MARK]))
    envelope: bytes = _FLAT["EnvelopeTimes"](data=entries).SerializeToString()
    return envelope


_ENVELOPE_MARK = _mark()


def times_of_many(packed: Sequence[bytes]) -> Sequence[int] | None:
    """The earliest time of each message's changes, 0 where it has none; None where an entry has no
    time of its own."""
    count = len(packed)
    try:
        envelopes = joined(_envelopes, packed_values(packed), _ENVELOPE_MARK)
        if envelopes.version != [VERSION] * count or envelopes.total != [1] * count:
            return None
        return None if any(envelopes.index) else _times_of(list(envelopes.data.items.header), count)
    except (DecodeError, ValueError, LookupError, struct.error):
        return None


def _times_of(marked: list[bytes], count: int) -> Sequence[int] | None:
    """``marked``: the headers of all entries, a mark behind each message's. Raises ValueError,
    DecodeError."""
    step = marked.index(MARK)
    alike = marked[step :: step + 1] == [MARK] * count == [MARK] * marked.count(MARK)
    alike = alike and len(marked) == (step + 1) * count
    if step and alike:
        # In most blocks each message has as many entries, of the same types.
        headers, numbers = marked, None
        del headers[step :: step + 1]
    else:
        apart = split_by_mark(marked, count)
        if apart is None:
            return None
        headers, numbers = apart
    flat = joined(_headers, headers, _HEADER_MARK)
    types = list(flat.messageType)
    seconds = single(list(flat.timestamp), MARK_NUMBER, len(headers))
    if seconds is None:
        return None
    if numbers is None:
        pattern = types[: len(types) // count]
        if pattern.count(MARK_NUMBER) == step and types == pattern * count:
            places = _changes_in(pattern, step)
            if len(places) == 1:
                return [second * 1000 for second in seconds[places[0] :: step]]
        numbers = [number for number in range(count) for _ in range(step)]
    changes = _changes_in(types, len(headers))
    times = [seconds[place] * 1000 for place in changes]
    return least_of(times, [numbers[place] for place in changes], count)


def _changes_in(types: Sequence[int], count: int) -> list[int]:
    """Which of ``count`` entries are of rows or a statement. Raises ValueError where marks are
    missing."""
    found, place, kind = [], 0, 0
    for each in types:
        if each != MARK_NUMBER:
            kind = each
            continue
        if kind in _CHANGES:
            found.append(place)
        place, kind = place + 1, 0
    if place != count:
        raise ValueError("marks are missing")
    return found
