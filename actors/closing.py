"""Closing a batch: drop what the target has, decode the rest, plan what a DDL asks for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from actors.buffer import Chunk, TargetBuffer
from actors.ports import StagedBatch
from changes.fold import concat_changes
from changes.formats.base import Format
from changes.model import (
    AddColumn,
    BadMessage,
    BadRecord,
    Changes,
    Column,
    Ddl,
    Mode,
    TableSchema,
)
from changes.routing import RouteConflict, Router
from offsets.position import TopicPartition


class DataError(Exception):
    """The target can't go on with what the source sent: one line with the record's place."""


@dataclass(frozen=True, slots=True)
class Closed:
    """What came of some chunks. ``changes`` is None when there is no row to write.

    ``count`` is how many row changes of
    the source they are, ``problem`` what is wrong with the record after the last good one.
    """

    changes: pa.Table | None
    count: int
    schema: TableSchema | None
    replayed: int
    problem: str | None


def close_rows(buffer: TargetBuffer, chunks: list[Chunk]) -> Closed:
    """Decode chunks in lane order; the buffer notes what they cover. Raises DataError.

    Replays (at or below the target's mark) are dropped here, cheaply, before any decoding.
    """
    tables: list[pa.Table] = []
    replayed = count = 0
    problem = None
    for source, group in groupby(chunks, key=lambda chunk: chunk.source):
        lane = list(group)
        hwm = buffer.hwm(source)
        fresh = [part for chunk in lane if (part := chunk.above(hwm)) is not None]
        offsets = [offset for chunk in fresh for offset in chunk.offsets]
        values = [value for chunk in fresh for value in chunk.values]
        replayed += sum(len(chunk.offsets) for chunk in lane) - len(offsets)
        decoded, bad = _decode(buffer, source, offsets, values)
        if decoded is not None:
            tables.append(decoded.table)
            count += decoded.count
        if bad is None:
            buffer.cover(lane[-1], lane[-1].offsets[-1])
            continue
        if bad.index:
            buffer.cover(lane[-1], offsets[bad.index - 1])
        problem = f"{source} offset {offsets[bad.index]}: {bad.reason}"
        buffer.clear()
        break
    changes = concat_changes(tables) if tables else None
    return Closed(changes, count, buffer.decoder.schema, replayed, problem)


def _decode(
    buffer: TargetBuffer, source: TopicPartition, offsets: list[int], values: list[bytes]
) -> tuple[Changes | None, BadRecord | None]:
    """Decode as far as it goes: the good records' rows, and the first bad one."""
    if not offsets:
        return None, None
    bad: BadRecord | None = None
    changes = None
    good = len(offsets)
    while good:  # without the bad record the layout may be another: the good part may be shorter
        try:
            changes = buffer.decoder.decode(source.partition, offsets[:good], values[:good])
            break
        except BadRecord as error:
            bad, good = error, error.index
    if changes is None:
        return None, bad
    _check_lanes(buffer, source, changes.mode, offsets[0])
    buffer.mode = changes.mode
    return changes, bad


def _check_lanes(buffer: TargetBuffer, source: TopicPartition, mode: Mode, offset: int) -> None:
    """Rows with keys from two partitions have no order between them: refused, not guessed."""
    others = {*buffer.state.hwms, *buffer.through} - {source}
    if mode is Mode.UPSERT and others:
        raise DataError(
            f"{source} offset {offset}: {buffer.name} already holds changes of "
            f"{', '.join(map(str, sorted(others)))}: partitions have no order between them, so a "
            "table's changes must all be in one (route the second one to another target, or use "
            'mode = "append")'
        )


def plan_ddl(
    buffer: TargetBuffer, chunk: Chunk, format_: Format, router: Router, batch_id: str
) -> StagedBatch | None:
    """What a DDL message asks of this target, None when that is nothing. Raises DataError.

    The statement is a barrier: its caller has written all that came before it. Its offset is
    recorded by the write, so after a restart it is a replay like any other.
    """
    if chunk.above(buffer.hwm(chunk.source)) is None:
        return None
    place = f"{chunk.source} offset {chunk.offsets[0]}"
    try:
        statements = format_.ddl(chunk.values[0])
    except (BadMessage, RouteConflict) as error:
        raise DataError(f"{place}: {error}") from error
    adds: list[AddColumn] = []
    for statement in statements:
        if buffer.name not in {str(route.name) for route in router.targets(statement.table)}:
            continue
        if statement.refused is not None:
            raise DataError(f"{place}: {statement.table}: {_refusal(statement)}")
        adds += statement.adds
    stored = buffer.state.schema
    if not adds or stored is None:
        # A table that is not there yet is made from its first row, with all its columns.
        return None
    if buffer.state.mode is Mode.APPEND:
        # Events of the past did not have the column: a changelog shows none there.
        adds = [AddColumn(add.column) for add in adds]
    assert buffer.state.mode is not None
    return StagedBatch(
        batch_id=batch_id,
        target=buffer.route.name,
        mode=buffer.state.mode,
        schema=TableSchema((*stored.columns, *_new_columns(stored, adds)), stored.keys),
        lanes=buffer.spans(buffer.through),
        adds=tuple(adds),
    )


def _new_columns(stored: TableSchema, adds: list[AddColumn]) -> list[Column]:
    names = {column.name.lower() for column in stored.columns}
    return [add.column for add in adds if add.column.name.lower() not in names]


def _refusal(statement: Ddl) -> str:
    sql = " ".join(statement.sql.split())
    shown = sql if len(sql) <= 200 else f"{sql[:200]}…"
    return f"{statement.refused} is not followed: {shown}"
