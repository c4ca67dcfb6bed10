"""Dead letters that were replayed go after a while; no other one ever does."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daemon.state.dead_letters.files import add_mark, letters_path, read_files
from sources.base.letter import LetterId, Mark
from tests.daemon.config.test_pipelines import BASE, PIPELINE, problems, read
from tests.daemon.state.dead_letters.letters import S0, TARGET, WHEN, dead, maker, store

YEAR_S = 365 * 86400.0


def replayed(folder: Path, *offsets: int) -> None:
    for offset in offsets:
        add_mark(folder, Mark.now(LetterId("p", S0, offset, str(TARGET)), "binlog:0:9"))


def left(folder: Path) -> list[int]:
    damage: list[str] = []
    return sorted(letter.id.offset for letter in read_files(folder, "p", damage))


def test_replayed_letters_go(tmp_path: Path) -> None:
    """From the file that is appended to and from full ones; what is left is for its owner alone."""
    letters = store(tmp_path, file_bytes=1500)
    for offset in range(8):
        letters.keep(dead(offset))
    replayed(tmp_path, 0, 1, 2, 3, 7)
    age_s = datetime.now(UTC).timestamp() - WHEN.timestamp()
    assert letters.remove_done(age_s + 60) == 0
    assert left(tmp_path) == list(range(8))
    assert letters.remove_done(age_s - 60) == 5
    assert left(tmp_path) == [4, 5, 6]
    for path in tmp_path.glob("p.dead-letters.0*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    letters.keep(dead(9))
    assert left(tmp_path) == [4, 5, 6, 9]
    assert not list(tmp_path.glob("*.kept"))


def test_what_nobody_replayed_stays(tmp_path: Path) -> None:
    """However old, and a line that is damaged, too."""
    letters = store(tmp_path, maker(when=datetime(2000, 1, 1, tzinfo=UTC)))
    letters.keep(dead(1))
    with letters_path(tmp_path, "p").open("ab") as file:
        file.write(b'{"offset": 2, "crc32": 1}\n')
    letters.keep(dead(3))
    replayed(tmp_path, 1)
    assert letters.remove_done(YEAR_S) == 1
    damage: list[str] = []
    assert [letter.id.offset for letter in read_files(tmp_path, "p", damage)] == [3]
    assert len(damage) == 1
    assert letters.remove_done(YEAR_S) == 0


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("retention_s = 7200", 'no dead letter is kept with on_bad_record = "stop"'),
        (
            'on_bad_record = "dead-letter"\ndead_letters = "topic:dead"\nretention_s = 7200',
            "letters in a topic expire by its retention.ms",
        ),
        ('on_bad_record = "dead-letter"\nretention_s = 60', "retention_s: "),
    ],
)
def test_what_would_remove_nothing_is_refused(tmp_path: Path, lines: str, said: str) -> None:
    """Or too soon for the count of bad records an hour."""
    (found,) = problems(tmp_path, BASE + PIPELINE + lines)
    assert "retention_s" in found
    assert said in found


def test_it_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    """And may be as long as one likes."""
    assert read(tmp_path, BASE + PIPELINE).pipeline["shop"].retention_s is None
    text = BASE + PIPELINE + 'on_bad_record = "dead-letter"\nretention_s = 86400'
    assert read(tmp_path, text).pipeline["shop"].retention_s == 86400
