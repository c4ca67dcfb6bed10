"""A dead letter as a value: the record as it was, its place, and why it was not applied."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Protocol, get_args

from actors.contract.messages import DeadLetter
from actors.contract.ports import LogAway
from changes.formats.engine.format import Format, unpack
from offsets.position import TopicPartition
from sources.base.consumed import as_consumed, tables_of
from sources.base.port import LogRecord, LogUnreadable

Reason = Literal["unreadable", "no-key", "unfit"]
"""``unreadable``: the message can't be parsed, so its table is not known. ``no-key``: a row without
its key. ``unfit``: anything else in a row that can't be applied."""

REASONS: tuple[str, ...] = get_args(Reason)

_NO_KEY = re.compile(r"\bkey column .*\b(missing|null|unknown|not told)\b")

PREFIX = "binlogd."
"""Of the headers that a stored letter gets."""

MARK = PREFIX + "mark"
"""Header of a record without key and value: which letter was replayed, and where to, or discarded,
as JSON."""

Now = Callable[[], datetime]


class Records(Protocol):
    """The source of a record's key, headers and time, which do not travel with its value."""

    def record(self, source: TopicPartition, offset: int) -> LogRecord | None:
        """See ``Reader.record``."""
        ...


class LetterId(NamedTuple):
    """Identifies a letter. One record may have letters of several targets and pipelines."""

    pipeline: str
    source: TopicPartition
    offset: int
    target: str | None

    @property
    def place(self) -> str:
        """The record's place as people name it: ``TOPIC:PARTITION:OFFSET``."""
        return f"{self.source}:{self.offset}"


class NotALetter(Exception):
    """Not a letter, or a damaged one: one line."""


def parse_place(text: str) -> tuple[TopicPartition, int]:
    """Read ``TOPIC:PARTITION:OFFSET``. Raises ValueError."""
    source, _, offset = text.rpartition(":")
    if not offset.isdecimal():
        raise ValueError(f"TOPIC:PARTITION:OFFSET is required, not {text!r}")
    return TopicPartition.parse(source), int(offset)


@dataclass(frozen=True, slots=True)
class Letter:
    """A stored letter. ``time_ms`` is the record's own time, ``when`` that of the storing.

    ``part`` is what the target got if that differs from the value: one table's part of a message of
    many, or a message reassembled from several records. ``in_log`` false: the log had lost the
    record already, so key, headers and time are not known.
    """

    id: LetterId
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    time_ms: int | None
    in_log: bool
    tables: tuple[str, ...]
    reason: str
    error: str
    when: datetime
    part: bytes | None = None

    @property
    def record(self) -> LogRecord:
        """The record as the log had it."""
        return LogRecord(self.id.offset, self.key, self.value, self.headers, self.time_ms)

    def message(self, format_: Format, *, whole: bool = False) -> bytes | None:
        """The message for the format, packed if the format needs that: the target's part, or the
        ``whole`` record."""
        value = self.value if whole or self.part is None else self.part
        return as_consumed(format_, self.id.source.topic, self.record._replace(value=value))


def reason_of(target: str | None, error: str) -> Reason:
    """The kind of fault."""
    if target is None:
        return "unreadable"
    return "no-key" if _NO_KEY.search(error) else "unfit"


class LetterMaker:
    """Makes letters from the actors' messages. Only the dead letters' thread calls it."""

    def __init__(
        self, pipeline: str, format_: Format, records: Records, now: Now | None = None
    ) -> None:
        self._pipeline = pipeline
        self._format = format_
        self._records = records
        self._now = now or (lambda: datetime.now(UTC))

    def make(self, letter: DeadLetter) -> Letter:
        """Read the record again, for its key and headers. Raises LogAway."""
        try:
            found = self._records.record(letter.source, letter.offset)
        except LogUnreadable as error:
            raise LogAway(f"its key and headers can't be read again: {error}") from error
        as_consumed = letter.value
        if self._format.keyed and as_consumed is not None:
            as_consumed = unpack(as_consumed).value
        target = None if letter.target is None else str(letter.target)
        _, tables = (None, ()) if letter.value is None else tables_of(self._format, letter.value)
        original = found or LogRecord(letter.offset, None, as_consumed, (), None)
        return Letter(
            id=LetterId(self._pipeline, letter.source, letter.offset, target),
            key=original.key,
            value=original.value,
            headers=original.headers,
            time_ms=original.time_ms,
            in_log=found is not None,
            tables=tuple(sorted({str(table) for table in tables})),
            reason=reason_of(target, letter.reason),
            error=letter.reason,
            when=self._now(),
            part=None if as_consumed == original.value else as_consumed,
        )


def summary(letter: Letter) -> dict[str, Any]:
    """A letter without its bytes, for JSON. Times are ISO 8601 or Unix milliseconds."""
    return {
        "pipeline": letter.id.pipeline,
        "topic": letter.id.source.topic,
        "partition": letter.id.source.partition,
        "offset": letter.id.offset,
        "timestamp": letter.time_ms,
        "tables": list(letter.tables),
        "target": letter.id.target,
        "reason": letter.reason,
        "error": letter.error,
        "when": letter.when.isoformat(timespec="milliseconds"),
        "in_log": letter.in_log,
    }


def document(letter: Letter) -> dict[str, Any]:
    """A letter as a file holds it; bytes are base64."""
    members = summary(letter) | {
        "key": _base64(letter.key),
        "value": _base64(letter.value),
        "headers": [[name, _base64(value)] for name, value in letter.headers],
    }
    return members if letter.part is None else members | {"part": _base64(letter.part)}


def from_document(members: Mapping[str, Any]) -> Letter:
    """Parse what ``document`` made. Raises NotALetter."""
    try:
        return Letter(
            id=id_of(members),
            key=_bytes(members["key"]),
            value=_bytes(members["value"]),
            headers=tuple((name, _bytes(value)) for name, value in members["headers"]),
            time_ms=members["timestamp"],
            in_log=bool(members["in_log"]),
            tables=tuple(members["tables"]),
            reason=members["reason"],
            error=members["error"],
            when=datetime.fromisoformat(members["when"]),
            part=_bytes(members.get("part")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NotALetter(f"not a dead letter: {error!r}") from error


def id_of(members: Mapping[str, Any]) -> LetterId:
    """Whose letter it is that ``document`` or ``summary`` made. Raises NotALetter."""
    try:
        source = TopicPartition(members["topic"], int(members["partition"]))
        return LetterId(members["pipeline"], source, int(members["offset"]), members["target"])
    except (KeyError, TypeError, ValueError) as error:
        raise NotALetter(f"not a dead letter: {error!r}") from error


def from_text(text: str | bytes) -> Any:
    """Parse JSON. Raises NotALetter."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotALetter(f"not JSON: {error}") from error


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


def _bytes(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error


# Marks of letters that are done with: which ones, and where their records stand in the log since.


@dataclass(frozen=True, slots=True)
class Mark:
    """Marks a letter as done with. ``at``: where its record was appended to the log again; None: it
    was discarded."""

    id: LetterId
    at: str | None
    when: datetime

    @property
    def state(self) -> str:
        """What it makes of its letter."""
        return "discarded" if self.at is None else "replayed"

    @classmethod
    def now(cls, letter: LetterId, at: str | None) -> Mark:
        """A mark with the current time."""
        return cls(letter, at, datetime.now(UTC))

    @classmethod
    def parse(cls, members: Mapping[str, Any]) -> Mark:
        """Parse what ``document`` made. Raises NotALetter."""
        try:
            source, offset = parse_place(members["letter"])
            letter = LetterId(members["pipeline"], source, offset, members["target"])
            at = members["at"]
            return cls(
                letter, None if at is None else str(at), datetime.fromisoformat(members["when"])
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise NotALetter(f"not a mark: {error!r}") from error

    @property
    def document(self) -> dict[str, Any]:
        """The mark as files and topics hold it."""
        return {
            "pipeline": self.id.pipeline,
            "letter": self.id.place,
            "target": self.id.target,
            "at": self.at,
            "when": self.when.isoformat(timespec="milliseconds"),
        }
