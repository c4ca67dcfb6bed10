"""Counts a pipeline's open letters: those that were neither replayed nor discarded.

A count reads only what the stores got since the one before, so it may follow each question for
figures. Whatever removes letters (``prune``, ``retention_s``, a hand) is seen by the files it
changes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

from actors.contract.ports import NotKept
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.dead_letters.files import letter_files, marks_path
from daemon.state.dead_letters.lines import members_of
from sources.base.letter import LetterId, Mark, NotALetter, id_of

EVERY_FILE_S, EVERY_TOPIC_S = 0.5, 30.0
"""The least time between two counts. Files are asked for their ends; a topic takes a few questions
to the broker, and no letter is stored meanwhile."""

END_BYTES = 64
"""What is compared to tell a file that grew from another one in its place. A line ends with its
checksum, so no two lines end alike."""


class FileTail:
    """The letters and marks in a pipeline's files, as far as they were read."""

    def __init__(self, state_dir: Path, pipeline: str) -> None:
        self._state_dir = state_dir
        self._pipeline = pipeline
        self._read: dict[tuple[int, int], _Place] = {}
        self.letters: set[LetterId] = set()
        self.marked: set[LetterId] = set()

    def look(self) -> None:
        """Read what is new; all, if something that was read is not there any more. Raises
        OSError."""
        if not self._follow():
            self._read, self.letters, self.marked = {}, set(), set()
            self._follow()

    def _follow(self) -> bool:
        """False: a file is gone or is another one, so what is known of it may be, too."""
        files = [(path, False) for path in letter_files(self._state_dir, self._pipeline)]
        marks, seen = marks_path(self._state_dir, self._pipeline), set[tuple[int, int]]()
        for path, is_marks in [*files, (marks, True)]:
            try:
                file = path.open("rb")
            except FileNotFoundError:
                continue
            with file:
                status = os.fstat(file.fileno())
                identity = status.st_dev, status.st_ino
                if identity in seen:
                    continue  # it became full between two looks at the folder
                seen.add(identity)
                place = self._read.get(identity, _Place(0, b""))
                if not _is_there(file, place):
                    return False
                self._read[identity] = self._read_on(file, place, is_marks)
        return self._read.keys() <= seen

    def _read_on(self, file: BinaryIO, place: _Place, is_marks: bool) -> _Place:
        offset, end = place
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                break
            offset, end = offset + len(line), line[-END_BYTES:]
            members = members_of(line)
            try:
                if members is not None and is_marks:
                    self.marked.add(Mark.parse(members).id)
                elif members is not None:
                    self.letters.add(id_of(members))
            except NotALetter:
                continue  # `dead-letters list` names damaged lines
        return _Place(offset, end)


class _Place(NamedTuple):
    """How far a file was read, and the bytes before that."""

    offset: int
    end: bytes


def _is_there(file: BinaryIO, place: _Place) -> bool:
    file.seek(place.offset - len(place.end))
    return file.read(len(place.end)) == place.end


class OpenLetters:
    """Counts open letters. One thread's."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        """Files are always read, because the configuration may have named them before."""
        self._pipeline = pipeline.name
        self._files = FileTail(pipeline.state_dir, pipeline.name)
        topic = pipeline.section.dead_letter_topic
        self.every_s = EVERY_FILE_S if topic is None else EVERY_TOPIC_S
        self._topic = None if topic is None else pipeline.topics().letters(topic).tail()

    def __call__(self) -> int:
        """How many there are. Raises NotKept."""
        try:
            self._files.look()
        except OSError as error:
            raise NotKept(f"{error.filename}: {error.strerror or error}") from error
        letters, marked = self._files.letters, self._files.marked
        if self._topic is not None:
            self._topic.look()
            letters, marked = letters | self._topic.letters, marked | self._topic.marked
        return sum(each.pipeline == self._pipeline for each in letters - marked)
