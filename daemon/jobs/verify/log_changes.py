"""Which rows a stretch of the log may change: read again, decoded as the processor does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set

from changes.formats.base import Format
from changes.model import BadMessage, BadRecord, Changes
from changes.routing import RouteConflict, Router
from daemon.commands.detected_records import as_consumed, topics_format
from daemon.databases.port import Key
from daemon.jobs.verify.key_texts import NoText
from daemon.jobs.verify.looks import Ends
from daemon.letters.keys import AffectedTarget, affected_targets, decoder_of
from daemon.source.port import LogGone, LogRecord, Reader
from offsets.position import TopicPartition

TOGETHER = 500
"""Messages that are decoded at once: one by one costs ten times as much."""


class _Unreadable(Exception):
    """A message can't be read, or is a statement: any row may be changed by it."""


class LogChanges:
    """Of one target. One thread's."""

    def __init__(
        self,
        format_: Format,
        router: Router,
        reader: Reader,
        target: str,
        keys_of: Callable[[Changes], Set[Key]],
    ) -> None:
        """``keys_of``: the target's keys of decoded changes. Raises NoText."""
        self._format = format_
        self._router = router
        self._reader = reader
        self._target = target
        self._keys_of = keys_of

    def among(self, keys: Collection[Key], begins: Ends, ends: Ends) -> Collection[Key]:
        """Those of the keys that may have a change in the stretches; all of them where a message
        there can't be read, or is a statement about the table. Raises LogUnreadable."""
        wanted, found = frozenset(keys), set[Key]()
        try:
            for source, end in ends.items():
                if end > begins[source]:
                    found |= self._changed(source, begins[source], end - 1)
        except (_Unreadable, LogGone):
            return wanted
        return wanted & found

    def _changed(self, source: TopicPartition, first: int, last: int) -> set[Key]:
        found: set[Key] = set()
        waiting: list[tuple[int, AffectedTarget]] = []
        for record in self._reader.read(source, first, last):
            waiting += [(record.offset, part) for part in self._parts(source, record)]
            if len(waiting) >= TOGETHER:
                found |= self._decoded(source, waiting)
                waiting = []
        return found | self._decoded(source, waiting)

    def _parts(self, source: TopicPartition, record: LogRecord) -> list[AffectedTarget]:
        format_ = topics_format(self._format, source.topic)
        try:
            parts = affected_targets(
                format_, self._router, as_consumed(format_, source.topic, record)
            )
        except (BadMessage, RouteConflict) as error:
            raise _Unreadable(str(error)) from error
        own = [part for part in parts if part.target == self._target]
        if any(part.ddl for part in own):
            raise _Unreadable("a statement")
        return own

    def _decoded(
        self, source: TopicPartition, parts: Sequence[tuple[int, AffectedTarget]]
    ) -> set[Key]:
        if not parts:
            return set()
        format_ = topics_format(self._format, source.topic)
        decoder = decoder_of(format_, parts[0][1].route)
        offsets, values = [offset for offset, _ in parts], [part.value for _, part in parts]
        try:
            changes = decoder.decode(source.partition, offsets, values)
            return set() if changes is None else set(self._keys_of(changes))
        except (BadRecord, NoText) as error:
            raise _Unreadable(str(error)) from error
