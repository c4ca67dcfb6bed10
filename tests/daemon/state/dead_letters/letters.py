"""What the tests of dead letters share: a log with one record, letters, stores."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from actors.contract.messages import DeadLetter
from changes.formats import FORMATS
from changes.formats.engine.format import Format
from changes.model.model import FormatOptions, TargetName
from daemon.state.dead_letters.files import FILE_BYTES, FileLetters
from offsets.position import TopicPartition
from sources.base.letter import LetterMaker
from sources.base.port import LogRecord, LogUnreadable

S0 = TopicPartition("binlog", 0)
TARGET = TargetName("lake", "db", "t")
ROW = (
    b'{"database":"db","table":"t","type":"INSERT","isDdl":false,"pkNames":["id"],'
    b'"mysqlType":{"id":"int"},"data":[{"id":"x"}],"old":null,"es":1,"ts":1}'
)
RECORD = LogRecord(7, b"k", ROW, (("h", b"1"), ("n", None)), 1700)
WHEN = datetime(2026, 1, 2, tzinfo=UTC)


class Log:
    """A log with one record, or without it."""

    def __init__(self, record: LogRecord | None = RECORD) -> None:
        self._record = record

    def record(self, source: TopicPartition, offset: int) -> LogRecord | None:
        return None if self._record is None else self._record._replace(offset=offset)


class SilentLog:
    """The broker is away."""

    def record(self, source: TopicPartition, offset: int) -> LogRecord | None:
        raise LogUnreadable("away")


def format_of(name: str = "canal-json") -> Format:
    return FORMATS[name](FormatOptions())


def maker(
    log: Log | SilentLog | None = None, when: datetime = WHEN, format_: str = "canal-json"
) -> LetterMaker:
    return LetterMaker("p", format_of(format_), log or Log(), lambda: when)


def store(
    folder: Path, made_by: LetterMaker | None = None, file_bytes: int = FILE_BYTES
) -> FileLetters:
    return FileLetters(folder, "p", made_by or maker(), file_bytes)


def dead(
    offset: int = 7,
    value: bytes | None = ROW,
    error: str = "bad",
    target: TargetName | None = TARGET,
) -> DeadLetter:
    return DeadLetter(S0, 1, offset, value, error, target)
