"""Records of the compacted topic: one per partition, one per target, and one for the rest.

A key is a JSON list, ``["shop", "g", "partition", "binlog:0"]``: pipelines and groups may share a
topic, and compaction keeps the newest record of each key. A tombstone removes an entry.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec

from offsets.parts import Running
from offsets.position import LogEpoch, TopicPartition
from offsets.rebuild_text import MovesForm, RebuildForm
from offsets.snapshot import PartitionState, Snapshot, TargetMark
from offsets.store import Loaded

VERSION = 1
"""Version of a record's layout. An unknown one is reported, never guessed at."""


_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class _Versioned(msgspec.Struct):
    version: int


class _Partition(msgspec.Struct, omit_defaults=True):
    version: int
    frontier: int
    confirmed: int | None
    leader_epoch: LogEpoch | None = None
    reset: bool = False
    running: Running | None = None
    format: str | None = None
    """The topic's format, here so that no frontier exists without it."""
    adopted: int | None = None
    reread: int | None = None
    begin: int | None = None
    withdraws: int | None = None

    @classmethod
    def of(cls, state: PartitionState, format_: str | None) -> _Partition:
        return cls(
            VERSION,
            state.frontier,
            state.confirmed,
            state.log,
            state.reset,
            state.running,
            format_,
            state.adopted,
            state.reread,
            state.begin,
            state.withdraws,
        )

    def state(self) -> PartitionState:
        return PartitionState(
            self.frontier,
            self.confirmed,
            self.leader_epoch,
            self.reset,
            self.running,
            self.adopted,
            self.reread,
            self.begin,
            self.withdraws,
        )


class _Target(msgspec.Struct, omit_defaults=True):
    version: int
    published: str | None
    hwms: dict[str, int]
    moves: MovesForm | None = None
    rows_may_differ: str | None = None

    @classmethod
    def of(cls, mark: TargetMark) -> _Target:
        hwms = {str(source): hwm for source, hwm in mark.hwms.items()}
        moves = None if mark.moves is None else MovesForm.of(mark.moves)
        return cls(VERSION, mark.version, hwms, moves, mark.rows_may_differ)

    def mark(self) -> TargetMark:
        hwms = {TopicPartition.parse(source): hwm for source, hwm in self.hwms.items()}
        moves = None if self.moves is None else self.moves.value()
        return TargetMark(self.published, hwms, moves, self.rows_may_differ)


class _Pipeline(msgspec.Struct, omit_defaults=True):
    version: int
    topic_ids: dict[str, str]
    forced: str | None
    rebuilds: dict[str, RebuildForm] = {}


class TopicRecord(NamedTuple):
    """A record as it is written."""

    key: bytes
    value: bytes


class Records(NamedTuple):
    """A batch as records. ``pipeline`` is written after the others: it says that a force was
    carried out, which is true only once the frontiers are stored."""

    partitions: list[TopicRecord]
    targets: list[TopicRecord]
    pipeline: TopicRecord


def records(batch: Snapshot) -> Records:
    """Encode a batch."""
    place = (batch.pipeline, batch.group)
    return Records(
        [
            _record(
                (*place, "partition", str(source)),
                _Partition.of(state, batch.formats.get(source.topic)),
            )
            for source, state in sorted(batch.partitions.items())
        ],
        [
            _record((*place, "target", name), _Target.of(mark))
            for name, mark in sorted(batch.targets.items())
        ],
        _record(
            (*place, "pipeline"),
            _Pipeline(
                VERSION,
                dict(batch.topic_ids),
                batch.forced,
                {name: RebuildForm.of(rebuild) for name, rebuild in batch.rebuilds.items()},
            ),
        ),
    )


def _record(key: tuple[str, ...], value: msgspec.Struct) -> TopicRecord:
    return TopicRecord(msgspec.json.encode(key), msgspec.json.encode(value, order="sorted"))


class Entries:
    """The newest value of each key of one pipeline and group. Has no lock; the tail has one."""

    def __init__(self, pipeline: str, group: str) -> None:
        self._pipeline = pipeline
        self._group = group
        self._values: dict[bytes, bytes] = {}
        self._places: dict[bytes, str] = {}

    def apply(self, key: bytes | None, value: bytes | None, place: str) -> None:
        """Add a record. ``place`` names it in reports of damage."""
        if key is None:
            return
        try:
            parts = msgspec.json.decode(key, type=list[str])
        except msgspec.MsgspecError:
            return  # of another application, or typed by hand: not an entry
        if parts[:2] != [self._pipeline, self._group]:
            return
        if value is None:
            self._values.pop(key, None)
            self._places.pop(key, None)
        else:
            self._values[key] = value
            self._places[key] = place

    def value(self, key: bytes) -> bytes | None:
        """The value of a key."""
        return self._values.get(key)

    def loaded(self) -> Loaded:
        """The entries as a snapshot, None without any. Damaged ones are left out and reported."""
        partitions: dict[TopicPartition, PartitionState] = {}
        targets: dict[str, TargetMark] = {}
        formats: dict[str, str] = {}
        rest = _Pipeline(VERSION, {}, None)
        damage: list[str] = []
        begun = False
        for key, value in self._values.items():
            try:
                match msgspec.json.decode(key)[2:]:
                    case ["partition", name]:
                        state = _read(value, _Partition)
                        source = TopicPartition.parse(name)
                        partitions[source] = state.state()
                        if state.format is not None:
                            formats[source.topic] = state.format
                    case ["target", name]:
                        targets[name] = _read(value, _Target).mark()
                    case ["pipeline"]:
                        rest, begun = _read(value, _Pipeline), True
                    case _:
                        raise ValueError("no key of ours")
            except (ValueError, msgspec.MsgspecError) as error:
                damage.append(f"{self._places[key]}: {key.decode()}: {error}")
        if not (partitions or targets or begun):
            return Loaded(None, tuple(damage))
        return Loaded(
            Snapshot(
                self._pipeline,
                self._group,
                rest.topic_ids,
                partitions,
                targets,
                rest.forced,
                rebuilds={name: form.value() for name, form in rest.rebuilds.items()},
                formats=formats,
            ),
            tuple(damage),
        )


def _read(value: bytes, kind: type[_Struct]) -> _Struct:
    version = msgspec.json.decode(value, type=_Versioned).version
    if version != VERSION:
        raise ValueError(f"version {version}, this binlogd reads {VERSION}")
    return msgspec.json.decode(value, type=kind)
