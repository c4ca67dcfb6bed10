"""Which rows a stretch of the log may change: read again, decoded as the processor does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence, Set

from changes.formats.engine.format import Format, TableDecoder
from changes.model.model import BadMessage, BadRecord, Changes
from changes.routes.routing import RouteConflict, Router
from daemon.operations.replay.keys import AffectedTarget, affected_targets, decoder_of
from daemon.operations.verify.in_flight import Ends
from daemon.operations.verify.key_texts import Move, MovesUnknown, NoText
from databases.base.port import Key
from offsets.position import TopicPartition
from sources.base.consumed import as_consumed, topics_format
from sources.base.port import LogGone, LogRecord, Reader

TOGETHER = 500
"""Messages that are decoded at once: one by one costs ten times as much."""

Part = tuple[int, AffectedTarget]
"""What a message has for the target, and the message's offset."""


class _Unreadable(Exception):
    """A message can't be read: any row may be changed by it."""


class _Statement(Exception):
    """A message is a statement about the table: any row may be changed by it."""


class LogChanges:
    """Of one target. One thread's."""

    def __init__(
        self,
        format_: Format,
        router: Router,
        reader: Reader,
        target: str,
        keys_of: Callable[[Changes], Set[Key]],
        moves_of: Callable[[Changes], Sequence[Move]],
    ) -> None:
        """``keys_of``: the target's keys of decoded changes; ``moves_of``: of those whose rows
        came in part from another key. Both raise NoText."""
        self._format = format_
        self._router = router
        self._reader = reader
        self._target = target
        self._keys_of = keys_of
        self._moves_of = moves_of

    def among(self, keys: Collection[Key], begins: Ends, ends: Ends) -> Collection[Key]:
        """Those of the keys that may have a change in the stretches; all of them where a message
        there can't be read, or is a statement about the table. Raises LogUnreadable."""
        wanted, found = frozenset(keys), self.keys(begins, ends)
        return wanted if found is None else wanted & found

    def keys(self, begins: Ends, ends: Ends) -> Set[Key] | None:
        """The keys of all changes in the stretches; None where these can't be told: a message there
        can't be read, or is a statement about the table. Raises LogUnreadable."""
        found = set[Key]()
        try:
            for changes in self._changes(begins, ends, statements=False):
                found |= self._keys_of(changes)
        except (_Unreadable, _Statement, LogGone, NoText):
            return None
        return found

    def moves(self, begins: Ends, ends: Ends) -> Sequence[Move]:
        """The rows that went to another key in the stretches and took values along that their
        message does not have. A statement moves none. Raises MovesUnknown, LogUnreadable."""
        try:
            found = self._changes(begins, ends, statements=True)
            return [move for changes in found for move in self._moves_of(changes)]
        except (_Unreadable, LogGone, NoText) as error:
            raise MovesUnknown(str(error)) from error

    def _changes(self, begins: Ends, ends: Ends, *, statements: bool) -> Iterator[Changes]:
        """All changes of the target there. ``statements``: whether they are passed over."""
        for source, end in ends.items():
            first = begins.get(source, 0)
            if end > first:
                yield from self._changed(source, first, end - 1, statements)

    def _changed(
        self, source: TopicPartition, first: int, last: int, statements: bool
    ) -> Iterator[Changes]:
        decoding = _Decoding(topics_format(self._format, source.topic), source)
        waiting: list[Part] = []
        for record in self._reader.read(source, first, last):
            waiting += self._parts(source, record, statements)
            if len(waiting) >= TOGETHER:
                yield from decoding.of(waiting)
                waiting = []
        yield from decoding.of(waiting)

    def _parts(self, source: TopicPartition, record: LogRecord, statements: bool) -> list[Part]:
        format_ = topics_format(self._format, source.topic)
        try:
            parts = affected_targets(
                format_, self._router, as_consumed(format_, source.topic, record)
            )
        except (BadMessage, RouteConflict) as error:
            raise _Unreadable(f"{source}:{record.offset}: {error}") from error
        own = [part for part in parts if part.target == self._target]
        if not statements and any(part.ddl for part in own):
            raise _Statement
        return [(record.offset, part) for part in own if not part.ddl]


class _Decoding:
    """Decodes one partition's messages in their order. A row that changes its key in two messages
    does so over calls, too, so the decoder is kept as long as it reads them."""

    def __init__(self, format_: Format, source: TopicPartition) -> None:
        self._format = format_
        self._source = source
        self._decoder: TableDecoder | None = None

    def of(self, parts: Sequence[Part]) -> Iterator[Changes]:
        """Raises _Unreadable."""
        while parts:
            try:
                yield from self._decoded(parts)
                return
            except BadRecord as error:
                good = error.index
                if not error.of_table or (good == 0 and self._decoder is None):
                    raise _Unreadable(f"{self._source}:{parts[good][0]}: {error}") from error
                # The table's columns changed: what comes before is read as before.
                yield from self.of(parts[:good])
                self._decoder, parts = None, parts[good:]

    def _decoded(self, parts: Sequence[Part]) -> Iterator[Changes]:
        decoder = self._decoder or decoder_of(self._format, parts[0][1].route)
        offsets, values = [offset for offset, _ in parts], [part.value for _, part in parts]
        changes = decoder.decode(self._source.partition, offsets, values)
        self._decoder = decoder
        if changes is not None:
            yield changes
