"""Counts decoded changes by the minute of their source's clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from actors.contract.effects import LaneMessages
from changes.formats.engine.assemble import Pieces
from changes.formats.engine.format import Format
from changes.model.model import Changes
from offsets.counts import NO_MINUTE, Minutes, RowCounts, of_all
from offsets.position import TopicPartition

_MINUTE_MS = 60_000


def counts_of(
    decoded: Iterable[tuple[LaneMessages, Changes]], format_: Format
) -> Mapping[TopicPartition, Minutes]:
    """By lane the row changes of its records, also of those that a route's filter leaves out."""
    return of_all({lane.source: _minutes(lane, changes, format_)} for lane, changes in decoded)


def _minutes(lane: LaneMessages, changes: Changes, format_: Format) -> Minutes:
    pieces, values = changes.read or changes.origins, lane.messages.values
    assert isinstance(pieces, Pieces), "decoders tell where each of their rows comes from"
    records = pieces.records
    minutes = _by_record(values[: max(records) + 1], format_) if records else []
    found = Counter(zip(map(minutes.__getitem__, records), pieces.ops, strict=True))
    for place in pieces.moved:  # both rows of a record that changes a key
        if records[place - 1] == records[place]:
            found[minutes[records[place]], ord("D")] -= 1
    return {
        minute: RowCounts(*(found[minute, ord(letter)] for letter in "IUD"))
        for minute in {minute for minute, _ in found}
    }


def _by_record(values: Iterable[bytes], format_: Format) -> list[int]:
    times = map(format_.source_ms, values)
    return [NO_MINUTE if time is None else time // _MINUTE_MS for time in times]
