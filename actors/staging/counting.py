"""Counts decoded changes by the minute of their source's clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from actors.contract.effects import LaneMessages
from changes.formats.engine.assemble import Pieces
from changes.formats.engine.format import Format
from changes.model.model import Changes
from offsets.counts import Minutes, RowCounts, minute_of, of_all
from offsets.position import TopicPartition

_MINUTE_MS = 60_000
_LATEST_MS = 10**17
"""``Format.source_ms`` is below it."""


def counts_of(
    decoded: Iterable[tuple[LaneMessages, Changes]], format_: Format
) -> Mapping[TopicPartition, Minutes]:
    """By lane the row changes of its records, also of those that a route's filter leaves out."""
    return of_all({lane.source: _minutes(lane, changes, format_)} for lane, changes in decoded)


def _minutes(lane: LaneMessages, changes: Changes, format_: Format) -> Minutes:
    pieces = changes.read or changes.origins
    assert isinstance(pieces, Pieces), "decoders tell where each of their rows comes from"
    records, ops = pieces.records, pieces.ops
    if not records:
        return {}
    minutes = _by_record(pieces, records, lane.messages.values, format_)
    found: Counter[tuple[int, int]] = Counter()
    if minutes.count(minutes[0]) == len(minutes):
        found.update({(minutes[0], letter): ops.count(letter) for letter in b"IUD"})
    else:
        found.update(zip(map(minutes.__getitem__, records), ops, strict=True))
    for place in pieces.moved:  # both rows of a record that changes a key
        if records[place - 1] == records[place]:
            found[minutes[records[place]], ord("D")] -= 1
    return {
        minute: RowCounts(*(found[minute, ord(letter)] for letter in "IUD"))
        for minute in {minute for minute, _ in found}
    }


def _by_record(
    pieces: Pieces, records: Sequence[int], values: Sequence[bytes], format_: Format
) -> list[int]:
    """The minute of each record that has rows. Asking the format for one may cost as much as
    decoding it, so most blocks tell theirs."""
    times: list[int | None] = [None] * (max(records) + 1)
    for start, told in pieces.times:
        if set(map(type, told)) == {int}:
            numbers = cast("Sequence[int]", told)
            if min(numbers) > 0 and max(numbers) < _LATEST_MS:
                times[start : start + len(numbers)] = numbers
    if None in times:
        asked = sorted({record for record in records if times[record] is None})
        # Values stand in one piece of memory: to cut out one costs three times its share of all.
        some = list(values) if len(asked) == len(values) else [values[record] for record in asked]
        told = format_.times_of(some)
        for record, time in zip(asked, told, strict=True):
            times[record] = time
    known = [time for time in times if time is not None]
    if len(known) == len(times) and min(known) // _MINUTE_MS == max(known) // _MINUTE_MS:
        return [minute_of(known[0])] * len(known)
    return list(map(minute_of, times))
