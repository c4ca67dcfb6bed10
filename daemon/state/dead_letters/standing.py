"""Where the records of dead letters stand by now: one that was replayed is in the log again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from daemon.state.dead_letters.index import LetterIndex
from offsets.position import TopicPartition
from sources.base.letter import LetterId, parse_place


class Standing(NamedTuple):
    """``state``: one of ``index.STATES``; of a record that became a letter again that of the last
    one. ``offset``: where the record is last in its partition."""

    state: str
    offset: int

    @property
    def replayed(self) -> bool:
        """Whether the record is in the log again, and no letter there."""
        return self.state == "replayed"


class Standings:
    """Of all letters of a pipeline, also of those that were removed since. Read once."""

    def __init__(self, index: LetterIndex) -> None:
        stored = {each.letter.id: each.mark for each in index.stored}
        self._marks = {**index.marks, **stored}
        self._by_place: dict[tuple[TopicPartition, int], list[LetterId]] = {}
        for letter in self._marks:
            self._by_place.setdefault((letter.source, letter.offset), []).append(letter)

    def at(self, source: TopicPartition, offset: int) -> Mapping[str | None, Standing]:
        """By target of the letters of a record."""
        letters = self._by_place.get((source, offset), ())
        return {letter.target: self._of(letter) for letter in letters}

    def of(self, target: str) -> Iterator[tuple[LetterId, Standing]]:
        """Those of a target, and those of no single one."""
        for letter in self._marks:
            if letter.target in (None, target):
                yield letter, self._of(letter)

    def _of(self, letter: LetterId) -> Standing:
        """A record is appended behind its letter, so each step leads on."""
        while True:
            mark = self._marks[letter]
            if mark is None:
                return Standing("open", letter.offset)
            if mark.at is None:
                return Standing(mark.state, letter.offset)
            source, offset = parse_place(mark.at)
            again = self._by_place.get((source, offset), []) if offset > letter.offset else []
            mine = [each for each in again if letter.target in (None, each.target)]
            if not mine:
                return Standing(mark.state, offset)
            letter = next((each for each in mine if self._marks[each] is None), mine[0])
