"""Dead letters in files of the state directory: ``PIPELINE.dead-letters.jsonl``.

A full file becomes ``PIPELINE.dead-letters.000001.jsonl`` and so on. They hold the only copy once
the log has expired: by itself binlogd removes only replayed letters, where ``retention_s`` says so.
``PIPELINE.dead-letters.replayed.jsonl`` holds the marks of replayed letters.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from actors.contract.messages import DeadLetter
from actors.contract.ports import NotKept
from actors.runtime.files import sync
from daemon.state.dead_letters.lines import (
    Line,
    append_line,
    has_done,
    line_of,
    read_lines,
    remove_done,
)
from daemon.state.room import DEAD_LETTERS, StateRoom
from sources.base.letter import Letter, LetterMaker, Mark, NotALetter, document, from_document

FILE_BYTES = 64 << 20
"""When a file is full. Smaller: many files. Larger: a start, which reads the letters of the last
hour, reads more."""


class FileLetters:
    """The store that the dead letters' actor writes. One per pipeline; only its thread calls it."""

    def __init__(
        self,
        state_dir: Path,
        pipeline: str,
        maker: LetterMaker,
        file_bytes: int = FILE_BYTES,
        room: StateRoom | None = None,
    ) -> None:
        """``room``: of the state directory; without one nothing bounds it."""
        self.path = letters_path(state_dir, pipeline)
        self._state_dir = state_dir
        self._pipeline = pipeline
        self._maker = maker
        self._file_bytes = file_bytes
        self._room = room or StateRoom(state_dir)

    def keep(self, letter: DeadLetter) -> None:
        """Append and fsync. Raises NotKept."""
        line = line_of(document(self._maker.make(letter)))
        try:
            self._room.require()
            held = append_line(self.path, line)
            self._room.note(DEAD_LETTERS, len(line))
            if held >= self._file_bytes:
                self._begin_another()
        except OSError as error:
            raise NotKept(f"{self.path}: {error.strerror or error}") from error

    def remove_done(self, older_than_s: float) -> int:
        """Remove letters that were replayed and are older. Gives how many. Raises NotKept."""
        before, damage = time.time() - older_than_s, list[str]()
        try:
            replayed = {mark.id for mark in read_marks(self._state_dir, self._pipeline, damage)}
            if self.path.exists() and has_done(self.path, replayed, before):
                self._begin_another()
            full = _full(self._state_dir, self._pipeline) if replayed else []
            return sum(
                remove_done(path, replayed, before)
                for path in full
                if has_done(path, replayed, before)
            )
        except OSError as error:
            raise NotKept(f"{error.filename}: {error.strerror or error}") from error

    def recent(self, within_s: float) -> list[float]:
        """The ages in seconds of the letters of the last ``within_s``. Raises NotKept."""
        now = time.time()
        since = now - within_s
        try:
            letters = {
                letter.id: letter.when.timestamp()
                for letter in self._read_since(since)
                if letter.when.timestamp() > since
            }
        except OSError as error:
            raise NotKept(f"{error.filename}: {error.strerror or error}") from error
        return [max(0.0, now - when) for when in letters.values()]

    def close(self) -> None:
        """Nothing is open between calls."""

    def _read_since(self, since: float) -> Iterator[Letter]:
        for path in letter_files(self._state_dir, self._pipeline):
            if path.stat().st_mtime < since:
                continue
            with path.open("rb") as file:
                yield from filter(None, map(_letter, read_lines(file)))

    def _begin_another(self) -> None:
        taken = [_number(path) for path in _full(self._state_dir, self._pipeline)]
        name = f"{self._pipeline}.dead-letters.{max(taken, default=0) + 1:06}.jsonl"
        os.rename(self.path, self._state_dir / name)
        sync(self._state_dir)


def letters_path(state_dir: Path, pipeline: str) -> Path:
    """The file that letters are appended to."""
    return state_dir / f"{pipeline}.dead-letters.jsonl"


def marks_path(state_dir: Path, pipeline: str) -> Path:
    """The file of the marks of replayed letters."""
    return state_dir / f"{pipeline}.dead-letters.replayed.jsonl"


def read_files(state_dir: Path, pipeline: str, damage: list[str]) -> Iterator[Letter]:
    """All letters in files, oldest first; unreadable lines are reported in ``damage``.

    Any process may call, also while a daemon writes: letters stored meanwhile may be included or
    not. Raises OSError.
    """
    with ExitStack() as stack:
        for path, file in _open_all(state_dir, pipeline, stack):
            for line in read_lines(file):
                try:
                    if line.members is None:
                        raise NotALetter("is damaged")
                    yield from_document(line.members)
                except NotALetter as error:
                    damage.append(f"{path}:{line.number}: {error}")


def read_marks(state_dir: Path, pipeline: str, damage: list[str]) -> Iterator[Mark]:
    """The marks of replayed letters in files. Raises OSError."""
    path = marks_path(state_dir, pipeline)
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in read_lines(file):
            try:
                if line.members is None:
                    raise NotALetter("is damaged")
                yield Mark.parse(line.members)
            except NotALetter as error:
                damage.append(f"{path}:{line.number}: {error}")


def add_mark(state_dir: Path, mark: Mark) -> None:
    """Record durably that a letter was replayed. Any process. Raises OSError."""
    add_marks(state_dir, mark.id.pipeline, [mark])


def add_marks(state_dir: Path, pipeline: str, marks: Iterable[Mark]) -> None:
    """Record them durably, in one append. Any process. Raises OSError."""
    if lines := b"".join(line_of(mark.document) for mark in marks):
        append_line(marks_path(state_dir, pipeline), lines)


def _open_all(state_dir: Path, pipeline: str, stack: ExitStack) -> list[tuple[Path, BinaryIO]]:
    """The files, all opened before any is read, so that one that becomes full is not read twice."""
    last = letters_path(state_dir, pipeline)
    found: dict[tuple[int, int], tuple[Path, BinaryIO]] = {}
    newest: list[tuple[Path, BinaryIO]] = []
    if last.exists():
        newest.append((last, stack.enter_context(last.open("rb"))))
        found[_identity(newest[0][1])] = newest[0]
    for path in _full(state_dir, pipeline):
        file = stack.enter_context(path.open("rb"))
        found.setdefault(_identity(file), (path, file))
    return [*(pair for pair in found.values() if pair not in newest), *newest]


def _letter(line: Line) -> Letter | None:
    """A line's letter, None if it holds none: ``dead-letters list`` reports that."""
    try:
        return None if line.members is None else from_document(line.members)
    except NotALetter:
        return None


def _identity(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def letter_files(state_dir: Path, pipeline: str) -> list[Path]:
    """The files that there are, oldest first."""
    last = letters_path(state_dir, pipeline)
    return [*_full(state_dir, pipeline), *([last] if last.exists() else [])]


def _full(state_dir: Path, pipeline: str) -> list[Path]:
    found = state_dir.glob(f"{pipeline}.dead-letters.*.jsonl")
    return sorted((path for path in found if _number(path)), key=_number)


def _number(path: Path) -> int:
    """A full file's number, 0 of any other."""
    number = path.name.removesuffix(".jsonl").rpartition(".")[2]
    return int(number) if number.isdigit() else 0
