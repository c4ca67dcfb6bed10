"""The files of dead letters: whole lines only, each durable before it counts."""

from __future__ import annotations

import base64
import errno
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from actors.contract.ports import LogAway, NotKept
from changes.formats.engine.format import pack
from daemon.state.dead_letters.files import add_mark, read_files, read_marks
from sources.base.letter import LetterId, Mark
from tests.daemon.state.dead_letters.letters import (
    RECORD,
    ROW,
    S0,
    WHEN,
    Log,
    SilentLog,
    dead,
    maker,
    store,
)


def offsets(folder: Path) -> list[int]:
    """The offsets of what is stored; nothing may be damaged."""
    damage: list[str] = []
    found = [letter.id.offset for letter in read_files(folder, "p", damage)]
    assert not damage
    return found


def test_a_letter_is_kept_whole(tmp_path: Path) -> None:
    """Bytes, key, headers and time of the log, its place and tables, the reason and the error."""
    kept = store(tmp_path)
    kept.keep(dead(error="db.t.id: 'x' is not an int"))
    members = json.loads(kept.path.read_text())
    del members["crc32"]
    assert members == {
        "pipeline": "p", "topic": "binlog", "partition": 0, "offset": 7, "timestamp": 1700,
        "tables": ["db.t"], "target": "lake.db.t", "reason": "unfit",
        "error": "db.t.id: 'x' is not an int", "when": "2026-01-02T00:00:00.000+00:00",
        "in_log": True, "key": base64.b64encode(b"k").decode(),
        "value": base64.b64encode(ROW).decode(),
        "headers": [["h", base64.b64encode(b"1").decode()], ["n", None]],
    }  # fmt: skip


def test_a_letter_is_read_back_as_it_was_made(tmp_path: Path) -> None:
    """With all its bytes; null and empty stay apart."""
    record = RECORD._replace(key=b"", value=None, headers=(("a", b""), ("a", None), ("b", b"\xff")))
    made_by = maker(Log(record))
    store(tmp_path, made_by).keep(dead(value=None))
    assert list(read_files(tmp_path, "p", [])) == [made_by.make(dead(value=None))]


def test_a_line_that_a_crash_cut_short_is_not_continued(tmp_path: Path) -> None:
    """It was never confirmed; glued to the next one both would be unreadable."""
    kept = store(tmp_path)
    kept.keep(dead(1))
    with kept.path.open("ab") as file:
        file.write(b'{"topic": "binl' + b"x" * 5000)
    assert offsets(tmp_path) == [1]
    store(tmp_path).keep(dead(2))
    assert offsets(tmp_path) == [1, 2]
    assert kept.path.read_bytes().endswith(b"}\n")


@pytest.mark.parametrize("step", ["pwrite", "fsync"])
def test_what_a_failed_append_left_is_not_taken_for_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """After a failed fsync nobody knows what is on disk: those bytes are written once more."""
    kept = store(tmp_path)
    kept.keep(dead(1))
    size = kept.path.stat().st_size

    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fails)
        with pytest.raises(NotKept, match="No space left on device"):
            kept.keep(dead(2))
    assert kept.path.stat().st_size == size
    kept.keep(dead(2))
    assert offsets(tmp_path) == [1, 2]


def test_a_damaged_line_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    """With file and line; a changed byte is found by the line's checksum."""
    kept = store(tmp_path)
    for offset in (1, 2, 3):
        kept.keep(dead(offset))
    lines = kept.path.read_bytes().splitlines(keepends=True)
    kept.path.write_bytes(lines[0] + lines[1].replace(b'"offset": 2', b'"offset": 9') + lines[2])
    damage: list[str] = []
    assert [letter.id.offset for letter in read_files(tmp_path, "p", damage)] == [1, 3]
    assert damage == [f"{kept.path}:2: is damaged"]


def test_a_full_file_gets_a_number_and_another_begins(tmp_path: Path) -> None:
    """Letters keep their order over files, also after a restart."""
    for offset in range(4):
        store(tmp_path, file_bytes=10).keep(dead(offset))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"p.dead-letters.{number:06}.jsonl" for number in range(1, 5)
    ]
    assert offsets(tmp_path) == [0, 1, 2, 3]


def test_a_file_that_gets_full_while_it_is_read_is_met_once(tmp_path: Path) -> None:
    """It is open already when it gets its number."""
    kept = store(tmp_path)
    kept.keep(dead(1))
    kept.keep(dead(2))
    reading = read_files(tmp_path, "p", [])
    assert next(reading).id.offset == 1
    store(tmp_path, file_bytes=10).keep(dead(3))
    assert [letter.id.offset for letter in reading] in ([2], [2, 3])
    assert offsets(tmp_path) == [1, 2, 3]


def test_pipelines_have_files_of_their_own(tmp_path: Path) -> None:
    """Even where one's name begins like another's."""
    store(tmp_path).keep(dead(1))
    assert list(read_files(tmp_path, "p-2", [])) == []


def test_a_letter_gone_from_the_log_is_kept_from_memory(tmp_path: Path) -> None:
    """Its value is at hand; that key and headers are not to be had is said."""
    store(tmp_path, maker(Log(None))).keep(dead())
    (letter,) = read_files(tmp_path, "p", [])
    assert (letter.in_log, letter.key, letter.value) == (False, None, ROW)


def test_a_silent_broker_is_no_reason_to_lose_the_headers(tmp_path: Path) -> None:
    """It is tried again later instead; the store was not at fault."""
    with pytest.raises(LogAway, match="away"):
        store(tmp_path, maker(SilentLog())).keep(dead())


def test_a_folder_that_takes_nothing_is_named(tmp_path: Path) -> None:
    """The reason says which file."""
    with pytest.raises(NotKept, match=r"p\.dead-letters\.jsonl"):
        store(tmp_path / "missing").keep(dead())


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    """Rows of the source are in it."""
    kept = store(tmp_path)
    kept.keep(dead())
    assert kept.path.stat().st_mode & 0o777 == 0o600


def test_a_packed_record_is_kept_as_the_log_has_it(tmp_path: Path) -> None:
    """Where a format needs keys, records travel packed; the letter is the record itself."""
    made_by = maker(Log(RECORD._replace(value=b"\xffbad")), format_="debezium-json")
    store(tmp_path, made_by).keep(dead(value=pack(b"k", b"\xffbad", [("h", b"1")])))
    (letter,) = read_files(tmp_path, "p", [])
    assert (letter.value, letter.part) == (b"\xffbad", None)


def test_a_part_is_kept_beside_the_record_that_it_was_taken_from(tmp_path: Path) -> None:
    """Of a message of many tables the target got its own; the log has the whole."""
    store(tmp_path).keep(dead(value=b"{}"))
    (letter,) = read_files(tmp_path, "p", [])
    assert (letter.value, letter.part) == (ROW, b"{}")


def test_the_ages_of_the_last_hour_are_known_after_a_restart(tmp_path: Path) -> None:
    """By them the bound counts on; one that was stored twice counts once."""
    now = datetime.now(UTC)
    for offset, minutes in ((1, 90), (2, 30), (3, 10), (3, 5)):
        made_by = maker(when=now - timedelta(minutes=minutes))
        store(tmp_path, made_by, file_bytes=10).keep(dead(offset))
    ages = sorted(store(tmp_path).recent(3600.0))
    assert [round(age / 60) for age in ages] == [5, 30]


def test_marks_are_read_back(tmp_path: Path) -> None:
    """Of one letter several: the record may be replayed again on purpose."""
    letter = LetterId("p", S0, 7, "lake.db.t")
    marks = [Mark(letter, "binlog:0:9", WHEN), Mark(letter, "binlog:0:12", WHEN)]
    for mark in marks:
        add_mark(tmp_path, mark)
    assert list(read_marks(tmp_path, "p", [])) == marks
    assert list(read_files(tmp_path, "p", [])) == []
