"""Parts of files are read once each, and only so many are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkwriter.iceberg import ranges
from sparkwriter.iceberg.ranges import RangeFile, Ranges


class Counting(Ranges):
    """Over bytes in memory; notes what is asked of the storage."""

    def __init__(self, content: bytes) -> None:
        super().__init__(None)
        self.content = content
        self.asked: list[tuple[int, int]] = []

    def _range(self, io: Any, location: str, size: int, start: int, length: int) -> bytes:
        return super()._range(self, location, size, start, length)

    def newInputFile(self, location: str, size: int) -> str:
        return location

    def _read(self, file: str, start: int, length: int) -> bytes:  # type: ignore[override]
        self.asked.append((start, length))
        return self.content[start : start + length]


def test_a_small_file_is_read_whole_once() -> None:
    """However it is read after that: a seek, a tail, all of it."""
    counting = Counting(b"0123456789")
    for _ in range(2):
        file = RangeFile(counting, None, "s3://b/small", 10)
        assert file.read(3) == b"012"
        assert file.seek(-2, 2) == 8
        assert file.read() == b"89"
        assert file.read(4) == b""
    assert counting.asked == [(0, 10)]


def test_of_a_large_file_only_what_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part by one request, and once."""
    monkeypatch.setattr(ranges, "WHOLE_BYTES", 4)
    counting = Counting(b"0123456789")
    for _ in range(2):
        file = RangeFile(counting, None, "s3://b/large", 10)
        file.seek(7)
        assert file.read(9) == b"789"
        file.seek(1)
        assert file.read(2) == b"12"
    assert counting.asked == [(7, 3), (1, 2)]


def test_what_was_put_is_not_read(tmp_path: Path) -> None:
    """A small file of ours is known from its local copy."""
    (tmp_path / "local").write_bytes(b"rows")
    counting = Counting(b"????")
    counting.put("s3://b/ours", tmp_path / "local")
    assert RangeFile(counting, None, "s3://b/ours", 4).read() == b"rows"
    assert counting.asked == []


def test_no_more_is_kept_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not used for longest goes first; what is too large is not kept at all."""
    monkeypatch.setattr(ranges, "WHOLE_BYTES", 0)
    monkeypatch.setattr(ranges, "KEPT_BYTES", 8)
    counting = Counting(bytes(100))

    def read(start: int, length: int) -> None:
        counting.read(None, "s3://b/f", 100, start, length)

    for start in (0, 2, 4, 6, 0, 8):  # the last takes the place of (2, 2)
        read(start, 2)
    read(0, 2)
    read(2, 2)
    read(50, 3)
    read(50, 3)
    assert counting.asked == [(0, 2), (2, 2), (4, 2), (6, 2), (8, 2), (2, 2), (50, 3), (50, 3)]
