"""Writes of a job, in a lane of their own: loaded rows come once, and before all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from actors.contract.writes import StagedBatch
from offsets.fence import Fenced, Span
from offsets.position import NO_OFFSET, job_lane, repair_lane
from sparkwriter.kit.writer import TargetWriter
from tests.sparkwriter.conftest import LANE

JOB = job_lane("l1")


@pytest.fixture
def writer(sink) -> TargetWriter[Any]:
    """One member."""
    return TargetWriter(sink.store())


@pytest.fixture
def chunk(staging, orders) -> Any:
    """Makes the job's write of a number with rows of these ids."""

    def made(number: int, *ids: int, note: str = "loaded") -> StagedBatch:
        rows = orders(*(("U", id_, note, id_) for id_ in ids))
        return staging.batch(rows, number, after=number - 1, lane=JOB)

    return made


@pytest.fixture
def end(staging) -> Any:
    """Makes the job's last write after so many chunks: from 4 on the stream goes on."""

    def made(chunks: int) -> StagedBatch:
        batch = staging.batch(None, chunks, after=chunks - 1, lane=JOB)
        lanes = {JOB: Span(chunks - 1, chunks), LANE: Span(NO_OFFSET, 3)}
        return replace(batch, lanes=lanes, ends_lane=True)

    return made


def test_chunks_come_once_and_the_lane_is_shown_to_nobody(writer, chunk, rows, target) -> None:
    """A write that lost its reply is covered, also by those behind it: what belongs to a number was
    settled before it was written."""
    assert writer.write(chunk(0, 1, 2)).hwms == {}
    first = chunk(1, 3)
    writer.write(first)
    assert writer.write(first).covered
    assert writer.write(chunk(0, 1, 2, note="again")).covered
    assert writer.open(target).hwms == {}
    assert rows(target) == [(1, "loaded", 1), (2, "loaded", 2), (3, "loaded", 3)]


def test_a_chunk_is_not_left_out(writer, chunk) -> None:
    """The one before it is not there."""
    writer.write(chunk(0, 1))
    with pytest.raises(Fenced, match="load/l1:0 stands at 0, expected 1"):
        writer.write(chunk(2, 3))


def test_the_last_write_says_from_where_the_stream_goes_on(writer, chunk, end, target) -> None:
    """Repeating it changes nothing."""
    writer.write(chunk(0, 1))
    state = writer.write(end(1))
    assert state.hwms == {LANE: 3}
    assert writer.write(end(1)).covered
    assert writer.open(target) == state


def test_a_table_without_rows_is_made_by_the_last_write(writer, end, rows, target) -> None:
    """So an empty table of the source is an empty table."""
    assert writer.write(end(0)).schema is not None
    assert rows(target) == []


def test_the_last_write_does_not_come_before_a_chunk_is_there(writer, chunk, end) -> None:
    """Nor in a table that is gone."""
    writer.write(chunk(0, 1))
    with pytest.raises(Fenced):
        writer.write(end(2))


def test_a_loaded_row_never_overwrites(writer, staging, orders, chunk, end, rows, target) -> None:
    """Whatever of the job comes after the stream's first change is refused, however late it is: the
    next chunk, the first one once more, the end."""
    writer.write(chunk(0, 1, 2))
    writer.write(end(1))
    writer.write(staging.batch(orders(("U", 1, "stream", 9), ("D", 2, None, None)), 5, after=3))
    for late in (chunk(0, 1, 2), chunk(1, 2), chunk(2, 1)):
        with pytest.raises(Fenced, match="a loaded row never overwrites"):
            writer.write(late)
    assert rows(target) == [(1, "stream", 9)]


def test_no_chunk_comes_beside_a_stream_that_began_too_early(
    writer, staging, orders, chunk, rows, target
) -> None:
    """The first change of the stream ends the job, whoever let it come."""
    writer.write(chunk(0, 1))
    state = writer.write(staging.batch(orders(("U", 2, "stream", 2)), 5, after=NO_OFFSET))
    assert state.hwms == {LANE: 5}
    with pytest.raises(Fenced):
        writer.write(chunk(1, 2))
    assert rows(target) == [(1, "loaded", 1), (2, "stream", 2)]


@pytest.fixture
def repair(staging, orders) -> Any:
    """Makes the repair of the row 1, for a stream that stands at a mark."""

    def made(mark: int, job: str = "r1") -> StagedBatch:
        batch = staging.batch(orders(("U", 1, "repaired", 9)), 0, after=NO_OFFSET)
        lanes = {repair_lane(job): Span(NO_OFFSET, 0), LANE: Span(mark, mark)}
        return replace(batch, lanes=lanes)

    return made


def test_a_repair_overwrites_a_row_of_the_stream_once(
    writer, staging, orders, repair, rows, target
) -> None:
    """Beside the stream's marks, which stay. The stream then goes on over it."""
    writer.write(staging.batch(orders(("U", 1, "stream", 1)), 3, after=NO_OFFSET))
    assert writer.write(repair(3)).hwms == {LANE: 3}
    assert writer.write(repair(3)).covered
    assert rows(target) == [(1, "repaired", 9)]
    state = writer.write(staging.batch(orders(("U", 1, "later", 2)), 5, after=3))
    assert state.hwms == {LANE: 5}
    assert rows(target) == [(1, "later", 2)]


def test_a_repair_is_refused_where_the_stream_has_gone_on(
    writer, staging, orders, repair, rows, target
) -> None:
    """The row that it brings may be older than what came meanwhile."""
    writer.write(staging.batch(orders(("U", 1, "stream", 1)), 3, after=NO_OFFSET))
    writer.write(staging.batch(orders(("U", 1, "newer", 2)), 4, after=3))
    with pytest.raises(Fenced):
        writer.write(repair(3))
    assert rows(target) == [(1, "newer", 2)]
