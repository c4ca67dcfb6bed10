"""The file of dead letters: whole lines only, each durable before it counts."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from actors.messages import DeadLetter
from actors.ports import NotKept
from changes.formats.base import pack
from changes.model import TargetName
from daemon.dead_letters import FileDeadLetters
from daemon.log_reader import LogRecord, LogUnreadable
from offsets.position import TopicPartition

S0 = TopicPartition("binlog", 0)
LETTER = DeadLetter(S0, 1, 7, b"\xffbad", "no key", TargetName("lake", "db", "t"))


class Log:
    """A log with one record."""

    def __init__(self, record: LogRecord | None) -> None:
        self._record = record

    def record(self, source: TopicPartition, offset: int) -> LogRecord | None:
        return self._record


class SilentLog:
    """The broker is away."""

    def record(self, source: TopicPartition, offset: int) -> LogRecord | None:
        raise LogUnreadable("away")


RECORD = LogRecord(7, b"k", b"\xffbad", (("h", b"1"), ("n", None)), 1700)


def store(folder: Path, log: Log | SilentLog | None = None) -> FileDeadLetters:
    return FileDeadLetters(
        folder, "p", log or Log(RECORD), lambda: datetime(2026, 1, 2, tzinfo=UTC)
    )


def test_a_letter_is_kept_whole(tmp_path: Path) -> None:
    """Bytes, key, headers and time of the log, its place and the reason."""
    kept = store(tmp_path)
    kept.keep(LETTER)
    assert json.loads(kept.path.read_text()) == {
        "topic": "binlog", "partition": 0, "offset": 7, "timestamp": 1700,
        "key": base64.b64encode(b"k").decode(), "value": base64.b64encode(b"\xffbad").decode(),
        "headers": [["h", base64.b64encode(b"1").decode()], ["n", None]], "in_log": True,
        "target": "lake.db.t", "reason": "no key", "when": "2026-01-02T00:00:00.000+00:00",
    }  # fmt: skip


def test_a_line_that_a_crash_cut_short_is_not_continued(tmp_path: Path) -> None:
    """It was never confirmed; glued to the next one both would be unreadable."""
    kept = store(tmp_path)
    kept.keep(LETTER)
    with kept.path.open("ab") as file:
        file.write(b'{"topic": "binl')
    store(tmp_path).keep(LETTER)
    lines = kept.path.read_text().splitlines()
    assert [json.loads(line)["offset"] for line in lines] == [7, 7]


def test_a_letter_gone_from_the_log_is_kept_from_memory(tmp_path: Path) -> None:
    """Its value is at hand; that key and headers are not to be had is said."""
    kept = store(tmp_path, Log(None))
    kept.keep(LETTER)
    said = json.loads(kept.path.read_text())
    assert (said["in_log"], said["key"]) == (False, None)
    assert base64.b64decode(said["value"]) == LETTER.value


def test_a_silent_broker_is_no_reason_to_lose_the_headers(tmp_path: Path) -> None:
    """It is tried again later instead."""
    with pytest.raises(NotKept, match="away"):
        store(tmp_path, SilentLog()).keep(LETTER)


def test_a_folder_that_takes_nothing_is_named(tmp_path: Path) -> None:
    """The reason says which file."""
    with pytest.raises(NotKept, match=r"p\.dead-letters\.jsonl"):
        store(tmp_path / "missing").keep(LETTER)


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    """Rows of the source are in it."""
    kept = store(tmp_path)
    kept.keep(LETTER)
    assert kept.path.stat().st_mode & 0o777 == 0o600


def test_a_packed_record_is_kept_as_the_log_has_it(tmp_path: Path) -> None:
    """Where a format needs keys, records travel packed; the letter is the value alone."""
    kept = FileDeadLetters(tmp_path, "p", Log(RECORD), keyed=True)
    kept.keep(replace(LETTER, value=pack(b"k", b"\xffbad", [("h", b"1")])))
    said = json.loads(kept.path.read_text())
    assert base64.b64decode(said["value"]) == b"\xffbad"
    kept.keep(replace(LETTER, value=pack(b"k", None)))
    assert json.loads(kept.path.read_text().splitlines()[1])["value"] is None
