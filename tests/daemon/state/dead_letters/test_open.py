"""The count of open letters: of all runs, and it reads only what is new."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daemon.state.dead_letters import open as counting
from daemon.state.dead_letters.files import add_mark, letter_files, letters_path, marks_path
from daemon.state.dead_letters.lines import members_of, remove_done
from daemon.state.dead_letters.open import FileTail
from sources.base.letter import LetterId, Mark
from tests.daemon.state.dead_letters.letters import S0, TARGET, WHEN, dead, store


def letter(offset: int) -> LetterId:
    return LetterId("p", S0, offset, str(TARGET))


def mark(folder: Path, offset: int, at: str | None = "binlog:0:9") -> None:
    add_mark(folder, Mark.now(letter(offset), at))


def opened(tail: FileTail) -> list[int]:
    tail.look()
    return sorted(each.offset for each in tail.letters - tail.marked)


def test_letters_of_earlier_runs_count_until_each_is_replayed_or_discarded(tmp_path: Path) -> None:
    """In files that are full, too; a letter that is stored twice is one."""
    kept = store(tmp_path, file_bytes=900)
    for offset in (1, 2, 3, 3):
        kept.keep(dead(offset))
    assert len(letter_files(tmp_path, "p")) > 1
    mark(tmp_path, 1)
    tail = FileTail(tmp_path, "p")
    assert opened(tail) == [2, 3]
    mark(tmp_path, 2, at=None)
    assert opened(tail) == [3]
    kept.keep(dead(4))
    mark(tmp_path, 3)
    assert opened(tail) == opened(FileTail(tmp_path, "p")) == [4]


def test_a_count_reads_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also over a file that becomes full: it has another name then."""
    parsed: list[bytes] = []
    monkeypatch.setattr(
        counting, "members_of", lambda line: parsed.append(line) or members_of(line)
    )
    kept, tail = store(tmp_path, file_bytes=900), FileTail(tmp_path, "p")
    for offset in range(6):
        kept.keep(dead(offset))
        assert opened(tail) == list(range(offset + 1))
        assert len(parsed) == offset + 1
    opened(tail)
    assert len(parsed) == 6


def test_what_is_pruned_counts_no_more(tmp_path: Path) -> None:
    """A file without some of its letters, without all of them, and moved elsewhere."""
    kept, tail = store(tmp_path, file_bytes=1), FileTail(tmp_path, "p")
    for offset in (1, 2, 3):
        kept.keep(dead(offset))
    assert opened(tail) == [1, 2, 3]
    first, second, _ = letter_files(tmp_path, "p")
    remove_done(first, {letter(1)}, WHEN.timestamp() + 1)
    assert opened(tail) == [2, 3]
    second.rename(tmp_path / "elsewhere")
    assert opened(tail) == [3]


def test_another_file_in_the_place_of_one_is_read_whole(tmp_path: Path) -> None:
    """A restored backup that is larger, with the inode of what it replaces."""
    kept, tail = store(tmp_path), FileTail(tmp_path, "p")
    kept.keep(dead(1))
    assert opened(tail) == [1]
    other = tmp_path / "other"
    other.mkdir()
    for offset in (5, 6):
        store(other).keep(dead(offset))
    path = letters_path(tmp_path, "p")
    with path.open("r+b") as file:
        file.truncate()
        file.write(letters_path(other, "p").read_bytes())
    assert opened(tail) == [5, 6]


def test_a_line_that_is_not_whole_waits_and_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    """A crash left the one; dead-letters list names the other."""
    kept, tail = store(tmp_path), FileTail(tmp_path, "p")
    kept.keep(dead(1))
    whole = kept.path.read_bytes()
    os.truncate(kept.path, len(whole) - 1)
    assert opened(tail) == []
    kept.path.write_bytes(whole + b"{}\n")
    marks_path(tmp_path, "p").write_bytes(b"x\n")
    assert opened(tail) == [1]
