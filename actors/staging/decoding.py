"""Decodes the lanes of a batch, as far as they can be decoded."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from actors.contract.effects import LaneMessages
from actors.contract.messages import BadMessageAt
from changes.formats.engine.format import TableDecoder
from changes.formats.wire.decoder import SchemaLost
from changes.model.model import CHANGELOG_NAMES, BadRecord, Changes


def decode_all(
    decoder: TableDecoder, lanes: tuple[LaneMessages, ...]
) -> tuple[list[tuple[LaneMessages, Changes]], BadMessageAt | None]:
    """Decode as far as possible: the good messages' rows, and the first bad one."""
    decoded: list[tuple[LaneMessages, Changes]] = []
    for place, lane in enumerate(lanes):
        if lane.messages:
            decoder.resume(lane.source.partition, lane.held, lane.messages.first)
        changes, bad = _decode(decoder, lane)
        if changes is not None:
            decoded.append((lane, _counted_on(changes, lane.rows_before)))
        if bad is not None:
            why = bad.reason, bad.of_table, bad.of_keys
            # What only does not go with the columns before it, a new decoder reads.
            if not bad.of_table or decoder.schema is None:
                at = lane.messages.offsets[bad.index]
                decoder.resume(lane.source.partition, at, at + 1)
            return decoded, BadMessageAt(place, bad.index, *why)
    return decoded, None


def _counted_on(changes: Changes, rows: int) -> Changes:
    """Add ``rows`` to a changelog's row numbers: the message's first ``rows`` were staged
    before."""
    marks = list(CHANGELOG_NAMES)
    if not rows or changes.table.column_names[: len(marks)] != marks:
        return changes
    place = marks.index("_index")
    numbers = pc.add(changes.table.column(place), pa.scalar(rows, pa.int32()))
    return replace(changes, table=changes.table.set_column(place, "_index", numbers))


def _decode(decoder: TableDecoder, lane: LaneMessages) -> tuple[Changes | None, BadRecord | None]:
    bad: BadRecord | None = None
    offsets, values = lane.messages.offsets, lane.messages.values
    while offsets:
        try:
            return decoder.decode(lane.source.partition, offsets, values), bad
        except SchemaLost:
            raise
        except BadRecord as error:
            # Without the bad one the layout may differ: the good part may be shorter.
            bad, offsets, values = error, offsets[: error.index], values[: error.index]
    return None, bad
