"""Finds rows that changed after a dead letter, so that a replay undoes nothing.

A replayed record is appended, so it is applied after everything that its partition holds. That
gives the same result as in its own place if nothing in between affects its rows. Each record in
between is checked for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from changes.formats.engine.format import Format, TableDecoder
from changes.model.model import BadMessage, BadRecord
from changes.routes.routing import RouteConflict, Router
from changes.sql.mysql.tokens import on_one_line
from daemon.operations.replay.keys import (
    AffectedTarget,
    Key,
    affected_targets,
    decoder_of,
    keeps_rows,
    keys_of,
    moves_in_part,
    statements,
)
from offsets.position import TopicPartition
from sources.base.consumed import as_consumed
from sources.base.letter import parse_place
from sources.base.port import LogRecord

REPLAYED = "binlogd.replayed"
"""The header of a replayed record that names its first place, ``TOPIC:PARTITION:OFFSET``."""

TOGETHER = 500
"""Records decoded at once. One by one costs ten times as much. If a chunk has one of the keys, each
of its records is decoded once more."""


def standing(source: TopicPartition, record: LogRecord) -> int:
    """The offset that orders a record among others of its partition by age.

    It is the record's own offset; for a replayed record the first one. So of two letters of one row
    both may be replayed, the older one first, but not the older one after the younger.
    """
    if not record.headers:
        return record.offset
    offsets = [record.offset]
    for name, value in record.headers:
        if name == REPLAYED and value is not None:
            try:
                first, offset = parse_place(value.decode())
            except ValueError:  # a header of another program
                continue
            if first == source:
                offsets.append(offset)
    return min(offsets)


Letters = frozenset[tuple[TopicPartition, int, str | None]]
"""Records that became dead letters, by place and target (None: all targets).

One that still can't be read was never applied. One that can be read may have been applied, because
its partition may have been read again.
"""


@dataclass(slots=True)
class Candidate:
    """A record that may be replayed. ``keys``: by target; None for a changelog.

    ``problems`` make a replay impossible. ``doubts`` speak against it; --force overrules them.
    """

    source: TopicPartition
    record: LogRecord
    keys: dict[str, frozenset[Key] | None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    replayed_at: list[int] = field(default_factory=list)
    """The offsets at which the log has it again."""

    @property
    def standing(self) -> int:
        """See ``standing``."""
        return standing(self.source, self.record)

    @property
    def place(self) -> str:
        """``TOPIC:PARTITION:OFFSET``."""
        return f"{self.source}:{self.record.offset}"

    def doubt(self, reason: str) -> None:
        """Add a doubt. The first few are enough to decide."""
        if len(self.doubts) < 5:
            self.doubts.append(reason)


class _Message(NamedTuple):
    """One target's part of a later record."""

    offset: int
    standing: int
    value: bytes


@dataclass(slots=True)
class _Lane:
    """Messages of one target that wait to be decoded."""

    decoder: TableDecoder
    waiting: list[_Message] = field(default_factory=list)


class ConflictFinder:
    """Examines one partition's records in their order, and adds doubts to its candidates."""

    def __init__(
        self,
        format_: Format,
        router: Router,
        source: TopicPartition,
        candidates: Iterable[Candidate],
        letters: Letters,
        lacking: Callable[[bytes | None], Sequence[str]] = lambda message: (),
    ) -> None:
        """``lacking``: has the schemas that a message needs, and says why they can't be had."""
        self._format = format_
        self._lacking = lacking
        self._router = router
        self._source = source
        self._candidates = list(candidates)
        self._places = {candidate.place: candidate for candidate in self._candidates}
        self._together = {c.record.offset for c in self._candidates if not c.problems}
        self._targets = {target for c in self._candidates for target in c.keys}
        self._letters = letters
        self._lanes: dict[str, _Lane] = {}

    def examine(self, record: LogRecord) -> None:
        """Examine the next record."""
        first = dict(record.headers).get(REPLAYED) if record.headers else None
        if first is not None:
            candidate = self._places.get(first.decode("utf-8", "replace"))
            if candidate is not None:
                candidate.replayed_at.append(record.offset)
        if record.offset in self._together:
            return  # it is replayed too, or ``doubt_peers`` sees that it is not
        value = as_consumed(self._format, self._source.topic, record)
        at = standing(self._source, record)
        if missing := self._lacking(value):
            return self._unread(record, at, "; ".join(missing))
        try:
            found = affected_targets(self._format, self._router, value)
        except (BadMessage, RouteConflict) as error:
            return self._unread(record, at, str(error))
        for affected in found:
            target = affected.target
            if target in self._targets:
                self._examine_target(target, _Message(record.offset, at, affected.value), affected)

    def _unread(self, record: LogRecord, at: int, why: str) -> None:
        if (self._source, record.offset, None) not in self._letters:
            self._doubt(at, f"offset {record.offset} can't be read: {why}")

    def finish(self) -> None:
        """Examine what is still waiting."""
        for target in self._lanes:
            self._decode(target)

    def _examine_target(self, target: str, message: _Message, affected: AffectedTarget) -> None:
        if not affected.ddl:
            if target not in self._lanes:
                self._lanes[target] = _Lane(decoder_of(self._format, affected.route))
            lane = self._lanes[target]
            lane.waiting.append(message)
            if len(lane.waiting) >= TOGETHER:
                self._decode(target)
            return
        for ddl in statements(self._format, self._router, affected):
            if not keeps_rows(ddl):
                sql = on_one_line(ddl.sql)
                reason = f"a statement came after it, offset {message.offset}: {sql}"
                self._doubt(message.standing, reason, target)
        self._decode(target)
        self._lanes.pop(target, None)  # the layout may differ from here on

    def _decode(self, target: str) -> None:
        lane = self._lanes.get(target)
        if lane is None or not lane.waiting:
            return
        waiting, lane.waiting = lane.waiting, []
        found: frozenset[Key] | None = None
        with suppress(BadRecord):  # the bad one is found below
            found = self._keys(lane, waiting)
        if found is None or any(found & _keys(c, target) for c in self._candidates):
            for message in waiting:
                self._one(target, lane, message)

    def _one(self, target: str, lane: _Lane, message: _Message) -> None:
        try:
            found = self._keys(lane, [message])
        except BadRecord as bad:
            if (self._source, message.offset, target) in self._letters:
                return  # it was never applied
            reason = f"offset {message.offset} can't be read, so it may be of the same row: {bad}"
            self._doubt(message.standing, reason, target)
            return
        for candidate in self._candidates:
            same = found & _keys(candidate, target)
            if same and candidate.standing < message.standing:
                row = ", ".join(min(same))
                candidate.doubt(f"{target}: its row {row} changed since, offset {message.offset}")

    def _keys(self, lane: _Lane, messages: list[_Message]) -> frozenset[Key]:
        changes = lane.decoder.decode(
            self._source.partition, [m.offset for m in messages], [m.value for m in messages]
        )
        return (None if changes is None else keys_of(changes)) or frozenset()

    def _doubt(self, at: int, reason: str, target: str | None = None) -> None:
        for candidate in self._candidates:
            if candidate.standing < at and (target is None or target in candidate.keys):
                candidate.doubt(reason if target is None else f"{target}: {reason}")


def _keys(candidate: Candidate, target: str) -> frozenset[Key]:
    return candidate.keys.get(target) or frozenset()


def doubt_peers(candidates: Iterable[Candidate]) -> None:
    """Doubt candidates that share a row with a younger one that is not replayed with them.

    The younger one may have been applied meanwhile, for example when its partition was read again.
    """
    order = sorted(candidates, key=lambda candidate: candidate.standing, reverse=True)
    for place, younger in enumerate(order):
        if not (younger.problems or younger.doubts):
            continue
        for older in order[place + 1 :]:
            shared = [t for t in older.keys if _keys(older, t) & _keys(younger, t)]
            if shared and older.source == younger.source:
                older.doubt(f"{shared[0]}: {younger.place} is of the same row, and is refused")


def read_now(
    format_: Format, router: Router, source: TopicPartition, record: LogRecord, value: bytes | None
) -> Candidate:
    """The candidate of a record, as if it arrived now. ``value`` is what the format gets."""
    candidate = Candidate(source, record)
    try:
        found = affected_targets(format_, router, value)
        if not found:
            candidate.problems.append("there is nothing in it that a route wants")
        for affected in found:
            if affected.ddl:
                candidate.keys[affected.target] = frozenset()
                candidate.doubt(f"{affected.target}: it is a statement, which belongs to its place")
                continue
            decoder = decoder_of(format_, affected.route)
            changes = decoder.decode(source.partition, [record.offset], [affected.value])
            keys = frozenset() if changes is None else keys_of(changes)
            known = candidate.keys.get(affected.target)  # of a message that statements divide
            candidate.keys[affected.target] = known | keys if known and keys else keys
            if changes is not None and moves_in_part(changes):
                candidate.doubt(_IN_PART.format(target=affected.target))
            if keys is None:
                candidate.doubt(_CHANGELOG.format(target=affected.target))
    except (BadMessage, RouteConflict, BadRecord) as error:
        candidate.problems.append(f"it can't be applied yet: {error}")
    return candidate


_CHANGELOG = (
    "{target} is a changelog: the change would be in it under another offset, behind later ones, "
    "and twice if it is there already"
)

_IN_PART = (
    "{target}: it changes a row's key and tells a part of the row only: a load or a repair may "
    "have moved the row since, and then this would empty it"
)


def by_source(candidates: Iterable[Candidate]) -> Mapping[TopicPartition, list[Candidate]]:
    """Candidates by partition, in the order of the log."""
    found: dict[TopicPartition, list[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda c: (c.source, c.record.offset)):
        found.setdefault(candidate.source, []).append(candidate)
    return found
