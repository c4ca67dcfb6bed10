"""Where dead letters are kept: a file in the state directory, or a topic.

Each is stored whole: key, value, headers and time as the log has them, its place, and the reason.
After a crash one may be there twice; topic, partition and offset tell.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from actors.messages import DeadLetter
from actors.ports import DeadLetterStore, NotKept
from changes.formats.base import unpack
from daemon.kafka_settings import connection_settings
from daemon.log_reader import LogReader, LogRecord, LogUnreadable
from offsets.position import TopicPartition

SEND_TIMEOUT_S = 30.0
"""For the broker to take one letter; then it is tried again."""

Now = Callable[[], datetime]


class Records(Protocol):
    """Where a record's key, headers and time are had from: they are not carried along."""

    def record(self, source: TopicPartition, offset: int) -> LogRecord | None:
        """See ``LogReader.record``."""
        ...


def _now() -> datetime:
    return datetime.now(UTC)


class FileDeadLetters:
    """``<state>/<pipeline>.dead-letters.jsonl``: one JSON line a letter, fsynced one by one."""

    def __init__(
        self,
        state_dir: Path,
        pipeline: str,
        records: Records,
        now: Now = _now,
        *,
        keyed: bool = False,
    ) -> None:
        self._keyed = keyed
        self.path = state_dir / f"{pipeline}.dead-letters.jsonl"
        self._records = records
        self._now = now
        self._checked = False

    def keep(self, letter: DeadLetter) -> None:
        """Append and fsync. What a crash or a full disk left of a line is cut off."""
        letter = _opened(letter, self._keyed)
        line = json.dumps(document(letter, _original(self._records, letter), self._now()))
        try:
            self._append(line.encode() + b"\n")
        except OSError as error:
            raise NotKept(f"{self.path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Nothing is held open."""

    def _append(self, line: bytes) -> None:
        made = not self.path.exists()
        with self.path.open("ab") as file:
            os.fchmod(file.fileno(), 0o600)  # rows of the source are in it
            end = file.tell() if self._checked else _whole_lines(self.path)
            file.truncate(end)
            self._checked = True
            try:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                self._checked = False
                raise
        if made:
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


class TopicDeadLetters:
    """A Kafka topic: the record as it was, with headers ``binlogd.*`` beside its own."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        records: Records,
        now: Now = _now,
        *,
        keyed: bool = False,
    ) -> None:
        self._keyed = keyed
        self._topic = topic
        self._records = records
        self._now = now
        self._producer = Producer(
            {
                **connection_settings(settings),
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "message.timeout.ms": int(SEND_TIMEOUT_S * 1000),
            }
        )

    def keep(self, letter: DeadLetter) -> None:
        """Send, and wait until all replicas in sync have it."""
        letter = _opened(letter, self._keyed)
        original = _original(self._records, letter)
        errors: list[KafkaError] = []
        told: list[Message] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            told.append(message)
            if error is not None:
                errors.append(error)

        try:
            self._producer.produce(
                self._topic,
                value=letter.value,
                key=None if original is None else original.key,
                headers=_headers(letter, original, self._now()),
                on_delivery=delivered,
            )
            self._producer.flush(SEND_TIMEOUT_S + 5.0)
        except (KafkaException, BufferError) as error:
            raise NotKept(f"topic {self._topic}: {error}") from error
        if errors or not told:
            reason = errors[0].str() if errors else "no answer"
            raise NotKept(f"topic {self._topic}: {reason}")

    def close(self) -> None:
        """Every letter that was taken is there already."""
        self._producer.flush(0)


def make_dead_letters(
    where: str, state_dir: Path, pipeline: str, settings: Mapping[str, Any], *, keyed: bool = False
) -> DeadLetterStore:
    """The store that a configuration names: ``file`` or ``topic:NAME``.

    ``keyed``: the letters' values are whole records, packed (``Format.keyed``).
    """
    records = LogReader(settings)
    if where == "file":
        return FileDeadLetters(state_dir, pipeline, records, keyed=keyed)
    return TopicDeadLetters(settings, where.removeprefix("topic:"), records, keyed=keyed)


def document(letter: DeadLetter, original: LogRecord | None, when: datetime) -> dict[str, Any]:
    """A letter as the file has it. Bytes are base64; ``original`` None: gone from the log."""
    return {
        "topic": letter.source.topic,
        "partition": letter.source.partition,
        "offset": letter.offset,
        "timestamp": None if original is None else original.time_ms,
        "key": None if original is None else _base64(original.key),
        "value": _base64(letter.value),
        "headers": [] if original is None else [[n, _base64(v)] for n, v in original.headers],
        "in_log": original is not None,
        "target": None if letter.target is None else str(letter.target),
        "reason": letter.reason,
        "when": when.isoformat(timespec="milliseconds"),
    }


def _headers(
    letter: DeadLetter, original: LogRecord | None, when: datetime
) -> list[tuple[str, str | bytes | None]]:
    said = document(letter, original, when)
    names = ("topic", "partition", "offset", "timestamp", "target", "reason", "when")
    ours = [(f"binlogd.{name}", str(said[name])) for name in names if said[name] is not None]
    return [*(original.headers if original is not None else ()), *ours]


def _opened(letter: DeadLetter, keyed: bool) -> DeadLetter:
    """The letter with the value as the log has it."""
    if not keyed or letter.value is None:
        return letter
    return replace(letter, value=unpack(letter.value).value)


def _original(records: Records, letter: DeadLetter) -> LogRecord | None:
    try:
        return records.record(letter.source, letter.offset)
    except LogUnreadable as error:
        raise NotKept(f"its key and headers can't be read again: {error}") from error


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


def _whole_lines(path: Path) -> int:
    """The size of a file up to its last newline."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            begin = max(0, end - 65536)
            file.seek(begin)
            cut = file.read(end - begin).rfind(b"\n")
            if cut >= 0:
                return begin + cut + 1
            end = begin
    return 0
