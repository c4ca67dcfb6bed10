"""Reads the signals' topic, each record once, and remembers where it is.

The first start begins at the topic's end: earlier signals were meant for somebody else. From then
on none is skipped, not even those that came while no daemon ran.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import structlog

from actors.runtime.files import make_private_folder, write_durably
from actors.runtime.periodic import Periodic
from changes.model.printable import reason_of
from daemon.state.signals import SignalsPlace, place_file, stored_place
from offsets.position import TopicPartition
from sources.base.port import (
    LogGone,
    LogRecord,
    LogUnreadable,
    NotAnswered,
    Questions,
    TopicMissing,
)
from sources.base.topics import TopicLog

EVERY_S = 2.0
"""Between two looks at the topic's end: an operator waits no longer, and a look is two requests."""

AWAY = (TopicMissing, NotAnswered, LogUnreadable, LogGone)


Carry = Callable[[TopicPartition, LogRecord, str], bool]
"""Carries a signal out: partition, record, the topic's id. False: not now, it is read again. Raises
nothing. On the reader's thread."""


class SignalReader:
    """A thread that looks at the topic until it is closed."""

    def __init__(self, log: TopicLog, state_dir: Path, carry_out: Carry) -> None:
        self._source = log
        self._state_dir, self._file = state_dir, place_file(state_dir)
        self._carry_out = carry_out
        self._place: SignalsPlace | None = None
        self._questions: Questions | None = None
        self._said = ""
        self._rounds = Periodic("signals", self._round, EVERY_S, "jobs", "signals_not_read")
        self._log: Any = structlog.get_logger().bind(actor="jobs", topic=log.topic)

    def start(self) -> None:
        """Begin to read. Main thread."""
        self._place = self._load()
        self._rounds.start()

    def close(self, within_s: float = 2.0) -> None:
        """Read no further record. A look that is under way is bounded in time."""
        self._rounds.close(within_s)

    def _round(self) -> None:
        try:
            self.look()
            self._said = ""
        except AWAY as error:
            self._questions = None
            self._tell("signals_not_read", reason_of(error))
        except OSError as error:
            # What was carried out is known in this process; after a crash it is repeated.
            self._tell("signals_place_not_stored", reason_of(error))

    def _tell(self, event: str, reason: str) -> None:
        """Once, while the reason stays."""
        if reason != self._said:
            self._said = reason
            self._log.warning(event, reason=reason)

    def look(self) -> None:
        """Carry out what is new. Raises those of ``AWAY``, OSError."""
        topic_id, sources = self._described()
        if self._questions is None:
            self._questions = self._source.questions()
        ends = self._questions.committed_ends(sources)
        place = self._place
        if place is None or place.topic != self._source.topic:
            offsets = {source.partition: end for source, end in ends.items()}
            self._place = SignalsPlace(self._source.topic, topic_id, offsets)
            self._log.info("signals_from", offsets=offsets)
            self._save(self._place)
            return
        if place.topic_id != topic_id:
            if place.topic_id:
                self._log.warning("signals_topic_made_again", before=place.topic_id, now=topic_id)
            self._place = place = SignalsPlace(self._source.topic, topic_id, {})
        if all(place.offsets.get(s.partition) == ends[s] for s in sources):
            return
        begins = self._questions.begins(sources)
        for source in sources:
            self._read(place, source, begins[source], ends[source])

    def _described(self) -> tuple[str, list[TopicPartition]]:
        try:
            return self._source.describe()
        except TopicMissing:
            if self._place is None:
                # Whatever comes once it is there is new.
                self._place = SignalsPlace(self._source.topic, "", {})
                self._save(self._place)
            raise

    def _read(self, place: SignalsPlace, source: TopicPartition, begin: int, end: int) -> None:
        at = place.offsets.get(source.partition, begin)
        if at < begin:
            fields = {"partition": source.partition, "first": at, "last": begin - 1}
            self._log.error("signals_lost", reason="the topic holds them no more", **fields)
            at = begin
        if at > end:
            fields = {"partition": source.partition, "first": end, "last": at - 1}
            self._log.warning("signals_log_shorter", reason="the broker lost its end", **fields)
            at = end
        if at < end:
            for record in self._source.reader().read(source, at, end - 1):
                if self._rounds.closed or not self._carry_out(source, record, place.topic_id):
                    return
                place.offsets[source.partition] = record.offset + 1
                self._save(place)
        if place.offsets.get(source.partition) != end:  # behind marks of transactions
            place.offsets[source.partition] = end
            self._save(place)

    def _save(self, place: SignalsPlace) -> None:
        make_private_folder(self._file.parent)
        write_durably(self._file, msgspec.json.encode(place).decode() + "\n")

    def _load(self) -> SignalsPlace | None:
        try:
            return stored_place(self._state_dir)
        except (OSError, msgspec.DecodeError) as error:
            self._log.error("signals_place_lost", file=str(self._file), reason=str(error))
            return None
