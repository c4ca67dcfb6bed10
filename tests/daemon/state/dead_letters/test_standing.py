"""Where the records of letters stand: in the log again, a letter again, given up."""

from __future__ import annotations

from pathlib import Path

from daemon.state.dead_letters.files import read_files
from daemon.state.dead_letters.index import FILES, LetterIndex, Stored
from daemon.state.dead_letters.standing import Standing, Standings
from sources.base.letter import LetterId, Mark
from tests.daemon.state.dead_letters.letters import S0, TARGET, dead, store

NAME = str(TARGET)


def mark(offset: int, at: int | None, target: str | None = NAME) -> tuple[LetterId, Mark]:
    letter = LetterId("p", S0, offset, target)
    return letter, Mark.now(letter, None if at is None else f"{S0}:{at}")


def test_a_record_is_followed_to_its_last_letter(tmp_path: Path) -> None:
    """Also over letters that were removed since; an unreadable one may be any target's."""
    letters = store(tmp_path)
    letters.keep(dead(30))
    (open_,) = (Stored(each, FILES, None) for each in read_files(tmp_path, "p", []))
    marks = [mark(1, 20), mark(20, 30), mark(2, None), mark(3, 25, None), mark(4, 4), mark(5, 20)]
    found = Standings(LetterIndex((open_,), (), dict(marks)))
    assert found.at(S0, 1) == found.at(S0, 20) == {NAME: Standing("open", 30)}
    assert found.at(S0, 2) == {NAME: Standing("discarded", 2)}
    assert found.at(S0, 3) == {None: Standing("replayed", 25)}
    assert found.at(S0, 4) == {NAME: Standing("replayed", 4)}
    assert not found.at(S0, 9)
    assert [letter.offset for letter, _ in found.of("lake.db.other")] == [3]
    assert {letter.offset for letter, _ in found.of(NAME)} == {1, 2, 3, 4, 5, 20, 30}
