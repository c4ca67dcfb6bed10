"""What outlives a crash: the log, the broker's commit, the offset file, the sink, spills, letters.

It knows the stream, too: each frontier that is recorded is held against what is applied by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NoReturn, Protocol

from actors.contract.raw_messages import SpillRecord, SpillState
from changes.formats.engine.format import Packed, unpack
from changes.model.model import TargetName
from daemon.state.room import StateRoom
from daemon.state.spills.file import Found, SpillError
from offsets.position import NO_OFFSET, TopicPartition
from offsets.snapshot import Snapshot, SpillMark
from sources.base.port import LogRecord, LogUnreadable
from tests.simulation.schemas.registry import framed
from tests.simulation.shape import PLAIN, Shape
from tests.simulation.sink import FakeSink
from tests.simulation.source import CHANGELOG
from tests.simulation.stream import Due, Log, Stream

PIPELINE = "p"

Failing = Callable[[], bool]


class SpillFile(Protocol):
    """``daemon.state.spills.file.Spill`` as far as a processor uses it."""

    @property
    def state(self) -> SpillState: ...

    def append(
        self,
        target: TargetName,
        reason: str,
        records: Iterable[SpillRecord],
        away: bool,
    ) -> SpillState: ...

    def read(self, position: int, limit: int) -> tuple[list[SpillRecord], int]: ...

    def end(self) -> None: ...


class Folder(Protocol):
    """``daemon.state.spills.file.SpillFolder`` as far as a pipeline uses it."""

    def found(self, listed: Mapping[str, SpillMark]) -> tuple[Found, ...]: ...

    def of(self, target: TargetName) -> SpillFile: ...


@dataclass
class SpillDisk:
    """Spill files as they lie there after a crash, and the marks of those that were replayed."""

    files: dict[TargetName, tuple[str, list[SpillRecord]]] = field(default_factory=dict)
    away: dict[TargetName, bool] = field(default_factory=dict)
    done: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)

    def holds(self, target: str, source: TopicPartition, offset: int) -> bool:
        """Whether a target's spill has a message."""
        return any(
            (record.source, record.offset) == (source, offset)
            for name, (_, records) in self.files.items()
            if str(name) == target
            for record in records
        )


class MemorySpill:
    """One target's spill in one life: what it knows to be durable is the begin of what is there."""

    def __init__(self, disk: SpillDisk, target: TargetName, failing: Failing) -> None:
        self._disk = disk
        self._target = target
        self._failing = failing
        self._known = list(disk.files.get(target, ("", []))[1])

    @property
    def state(self) -> SpillState:
        lanes: dict[TopicPartition, tuple[int, int]] = {}
        for record in self._known:
            first = lanes.get(record.source, (record.offset, 0))[0]
            lanes[record.source] = (first, record.offset)
        size = sum(len(record.value) for record in self._known)
        return SpillState(size, len(self._known), lanes)

    def append(
        self,
        target: TargetName,
        reason: str,
        records: Iterable[SpillRecord],
        away: bool,
    ) -> SpillState:
        """A disk that fails has written some of it, which is no more than nothing, or all of it: a
        crash finds that, the next append not."""
        known, lanes = list(self._known), dict(self.state.lanes)
        if target not in self._disk.files:
            self._disk.away[target] = away
        reason = self._disk.files.get(target, (reason, []))[0]
        for record in records:
            if record.offset > lanes.get(record.source, (0, NO_OFFSET))[1]:
                lanes[record.source] = (0, record.offset)
                known.append(record)
        if self._failing():
            if self._failing():
                self._disk.files[target] = (reason, known)
            raise OSError("disk full")
        self._disk.files[target] = (reason, known)
        self._known = list(known)
        return self.state

    def read(self, position: int, limit: int) -> tuple[list[SpillRecord], int]:
        if self._failing():
            raise OSError("it can't be read")
        found: list[SpillRecord] = []
        begin = 0
        for record in self._known:
            if position <= begin < position + limit:
                found.append(record)
            begin += len(record.value)
        return found, position + sum(len(record.value) for record in found)

    def end(self) -> None:
        if self._failing():
            raise OSError("it can't be let go")
        self._disk.files.pop(self._target, None)
        lasts = self._disk.done.setdefault(str(self._target), {})
        for source, (_, last) in self.state.lanes.items():
            lasts[source] = max(last, lasts.get(source, last))
        self._known = []
        if self._failing():
            raise OSError("its folder can't be synced")


class MemoryFolder:
    """All spills in one life."""

    def __init__(self, disk: SpillDisk, failing: Failing) -> None:
        self.room = StateRoom(Path())
        self._disk = disk
        self._failing = failing
        self._spills: dict[TargetName, MemorySpill] = {}

    def found(self, listed: Mapping[str, SpillMark]) -> tuple[Found, ...]:
        """What a start finds; a spill that is listed must be there."""
        found = []
        for target, (reason, records) in self._disk.files.items():
            if records:
                state = self.of(target).state
                away, each = self._disk.away[target], partial(iter, records)
                found.append(Found(target, reason, state, records[0], each, away))
        held = {str(spill.target): spill.state.lanes for spill in found}
        for target_name, mark in listed.items():
            for source, (_, last) in mark.lanes.items():
                lane = held.get(target_name, {}).get(source, (0, NO_OFFSET))
                done = self._disk.done.get(target_name, {}).get(source, NO_OFFSET)
                if max(lane[1], done) < last:
                    raise SpillError(f"{target_name} should hold {source} through {last}")
        for target_name in self._disk.done.keys() - set(listed):
            del self._disk.done[target_name]
        return tuple(found)

    def of(self, target: TargetName) -> SpillFile:
        if target not in self._spills:
            self._spills[target] = MemorySpill(self._disk, target, self._failing)
        return self._spills[target]


@dataclass(frozen=True, slots=True)
class FakeLog:
    """Stretches of the log, read beside the group (``sources.kafka.log_reader``)."""

    messages: Log
    failing: Failing
    packed: bool = False
    """The messages are whole records."""
    in_frames: bool = False
    """Each gets its frame (``tests.simulation.schemas.registry``)."""

    def read(self, source: TopicPartition, first: int, last: int) -> Iterator[LogRecord]:
        if self.failing():
            raise LogUnreadable("the broker is away")
        for offset, value in self.messages[source]:
            if first <= offset <= last:
                value = framed(source, offset, value) if self.in_frames else value
                record = unpack(value) if self.packed else Packed(None, value)
                yield LogRecord(offset, record.key, record.value, tuple(record.headers), None)


@dataclass
class Durable:
    """What outlives a crash."""

    log: Log
    end: dict[TopicPartition, int]
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    snapshot: Snapshot = field(default_factory=lambda: Snapshot(PIPELINE, "g"))
    sink: FakeSink = field(default_factory=FakeSink)
    shape: Shape = PLAIN
    messages: Log = field(default_factory=dict)
    due: Mapping[TopicPartition, Sequence[Due]] = field(default_factory=dict)
    spills: SpillDisk = field(default_factory=SpillDisk)
    letters: list[tuple[TopicPartition, int, str | None]] = field(default_factory=list)
    _checked: dict[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def of(cls, stream: Stream) -> Durable:
        """Before the first life, over a stream."""
        return cls(
            stream.log, stream.end, shape=stream.shape, messages=stream.messages, due=stream.due
        )

    def folder(self, failing: Failing) -> Folder:
        """The spills, as a new life finds them."""
        return MemoryFolder(self.spills, failing)

    def save(self, snapshot: Snapshot) -> None:
        """The offset file. Every message below a frontier is where it belongs by then."""
        self.snapshot = snapshot
        for source, state in snapshot.partitions.items():
            self._check(source, state.frontier)

    def commit(self, frontiers: Mapping[TopicPartition, int]) -> None:
        """The broker's. Never above the file's."""
        for source, offset in frontiers.items():
            assert offset <= self.snapshot.partitions[source].frontier
        self.committed.update(frontiers)

    def _check(self, source: TopicPartition, frontier: int) -> None:
        due = self.due.get(source, ())
        place = self._checked.get(source, 0)
        while place < len(due) and due[place].offset < frontier:
            self._check_one(source, due[place])
            place += 1
        self._checked[source] = place

    def _check_one(self, source: TopicPartition, message: Due) -> None:
        offset = message.offset
        for target in message.targets:
            mark = self.sink.marks(target).get(source, NO_OFFSET)
            if mark < offset and not self.holds_spilled(target, source, offset):
                _passed(f"{target} is at {mark}", source, offset)
        for target in message.bad:
            there = (source, offset, target) in self.letters
            if not there and not (target and self.holds_spilled(target, source, offset)):
                _passed(f"no dead letter for {target or CHANGELOG}", source, offset)

    def holds_spilled(self, target: str, source: TopicPartition, offset: int) -> bool:
        """Whether a message waits in the spill of a target in quarantine, and the file lists it:
        were that spill gone, the next start must know."""
        mark = self.snapshot.spills.get(target)
        listed = mark is not None and source in mark.lanes and mark.lanes[source][1] >= offset
        return listed and self.spills.holds(target, source, offset)


def _passed(what: str, source: TopicPartition, offset: int) -> NoReturn:
    raise AssertionError(f"the frontier of {source} passed {offset}: {what}")
