"""Reads the times of many of Canal's packets at once (flat_rows.py)."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import DecodeError

from changes.formats.canal.packet import DELETE, INSERT, MARKS, MESSAGES, PLAIN, ROWDATA, UPDATE
from changes.formats.engine.flat_rows import MARK_NUMBER, joined, least_of
from changes.formats.engine.proto_files import messages

_FLAT = messages("canal/flat.proto")
_packets = _FLAT["PacketTimes"].FromString
_ROWS = frozenset((INSERT, UPDATE, DELETE))


def _mark() -> bytes:
    entry = _FLAT["EntryTimes"](entryType=[MARK_NUMBER])
    entry.header.executeTime.append(MARK_NUMBER)
    body = _FLAT["BodyTimes"](messages=entry)
    packet: bytes = _FLAT["PacketTimes"](body=body).SerializeToString()
    return packet


_MARK = _mark()


def times_of_many(values: Sequence[bytes]) -> Sequence[int] | None:
    """The earliest time of each packet's rows, 0 where it has none; None where an entry has no time
    of its own, or is neither rows nor a mark of what is between them."""
    count = len(values)
    try:
        packets = joined(_packets, values, _MARK)
    except DecodeError:
        return None
    if packets.type != [MESSAGES] * count or not PLAIN.issuperset(packets.compression):
        return None
    entry = packets.body.messages
    kinds, times = list(entry.entryType), list(entry.header.executeTime)
    # As many times as entries, and as many types of events as entries of rows: each has its own.
    if len(times) != len(kinds) or kinds.count(MARK_NUMBER) != count:
        return None
    events = entry.header.eventType
    if len(events) != kinds.count(ROWDATA) or not _ROWS.issuperset(events):
        return None
    return _times_of(kinds, times, count)


def _times_of(kinds: list[int], times: list[int], count: int) -> Sequence[int] | None:
    step = kinds.index(MARK_NUMBER) + 1
    pattern = kinds[:step]
    if not MARKS.issuperset(set(kinds) - {ROWDATA, MARK_NUMBER}):
        return None
    if kinds == pattern * count and pattern.count(ROWDATA) == 1:
        marks = [MARK_NUMBER] * count
        ends = times[step - 1 :: step] == marks and times.count(MARK_NUMBER) == count
        return times[pattern.index(ROWDATA) :: step] if ends else None
    found, numbers, number = [], [], 0
    for kind, time in zip(kinds, times, strict=True):
        if (kind == MARK_NUMBER) != (time == MARK_NUMBER):
            return None
        if kind == MARK_NUMBER:
            number += 1
        elif kind == ROWDATA:
            found.append(time)
            numbers.append(number)
    return least_of(found, numbers, count)
