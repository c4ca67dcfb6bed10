"""One read beside its job."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from daemon.operations.load.ports import Chunk
from daemon.operations.load.prefetch import Ahead, ReadRanges
from databases.base.errors import DatabaseAway
from databases.base.port import KeyRange

FIRST = ReadRanges("a", (KeyRange(None, ("5",)),))
CHUNKS = [Chunk("file", 5)]


def ahead() -> tuple[Ahead, list[str]]:
    removed: list[str] = []
    return Ahead(lambda chunks: removed.extend(chunk.path for chunk in chunks)), removed


def test_what_was_read_ahead_is_taken_once() -> None:
    """By the call that is for it, which waits for it."""
    reads, removed = ahead()
    go = threading.Event()

    def read() -> Sequence[Chunk]:
        assert go.wait(10)
        return CHUNKS

    reads.begin(FIRST, read)
    go.set()
    assert reads.take(FIRST) == CHUNKS
    assert reads.take(FIRST) is None
    assert removed == []


@pytest.mark.parametrize(
    "other", [ReadRanges("b", FIRST.parts), ReadRanges("a", (KeyRange(("5",), None),))]
)
def test_what_is_for_another_attempt_or_range_is_removed(other: ReadRanges) -> None:
    """Rows that an earlier attempt has read may be older than the present one's beginning."""
    reads, removed = ahead()
    reads.begin(FIRST, lambda: CHUNKS)
    assert reads.take(other) is None
    assert removed == ["file"]
    assert reads.take(FIRST) is None


def test_a_failure_is_raised_where_the_chunks_are_taken() -> None:
    """And the next call reads for itself."""
    reads, _ = ahead()

    def read() -> Sequence[Chunk]:
        raise DatabaseAway("gone")

    reads.begin(FIRST, read)
    with pytest.raises(DatabaseAway):
        reads.take(FIRST)
    assert reads.take(FIRST) is None


def test_the_end_waits_and_removes() -> None:
    """No file is left behind, whatever became of the read."""
    reads, removed = ahead()
    reads.begin(FIRST, lambda: CHUNKS)
    reads.close()
    assert removed == ["file"]
    reads.close()
