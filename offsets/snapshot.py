"""The local offset file as a value, and its JSON text: versioned, checksummed, readable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from offsets.log_epochs import LogEpoch
from offsets.moves import MarkMoves
from offsets.position import TopicPartition
from offsets.rebuild import Rebuild, rebuild_body, rebuild_of
from offsets.running import Running

VERSION = 1
"""Version of the file's layout. A reader refuses what it does not know instead of guessing."""


class DamagedSnapshot(Exception):
    """The text is not a whole snapshot of ours: what is wrong with it, in one line."""


class NewerSnapshot(DamagedSnapshot):
    """It is whole, and of a version that this binlogd does not know."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Where one partition stands.

    ``frontier``: every message below it is done. ``confirmed``: the last frontier of which the
    broker said that it has it, None before the first one. ``log``: the epoch of the log below it.
    ``reset``: an operator put the frontier here, and until the broker has confirmed one the group's
    commit is what it was before: it says nothing. ``running``: the producer's numbers there.
    """

    frontier: int
    confirmed: int | None = None
    log: LogEpoch | None = None
    reset: bool = False
    running: Running | None = None


@dataclass(frozen=True, slots=True)
class TargetMark:
    """What a target last published: the sink's own name of that state, and its marks.

    ``moves``: what a reset did to the marks, recorded with the new frontiers and still to be done
    in the target, before anything is read. ``rows_may_differ`` repeats what the target says of its
    stored rows (``offsets.doubts``), so that it is known before the target is opened.
    """

    version: str | None
    hwms: Mapping[TopicPartition, int]
    moves: MarkMoves | None = None
    rows_may_differ: str | None = None


@dataclass(frozen=True, slots=True)
class SpillMark:
    """What a target's spill holds: its bytes, and each lane's first and last offset.

    Those messages count as done: the spill is the only place where they are.
    """

    bytes: int
    lanes: Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a pipeline must remember between two runs.

    ``forced`` is the configuration's force text that was carried out last: it works once.
    ``formats``: by topic the format that was told from its messages (``format = "auto"``).
    """

    pipeline: str
    group: str
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    targets: Mapping[str, TargetMark] = field(default_factory=dict)
    forced: str | None = None
    spills: Mapping[str, SpillMark] = field(default_factory=dict)
    rebuilds: Mapping[str, Rebuild] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)


def encode(snapshot: Snapshot) -> str:
    """The file's text: indented JSON with a checksum over the body."""
    body = _body(snapshot)
    document = {"version": VERSION, "sha256": _checksum(body), "body": body}
    # The standard library's encoder takes five times as long as the disk once it indents.
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def decode(text: str, edited: bool = False) -> Snapshot:
    """Read ``encode``'s text back, with the mark before it that some editors put there.

    Raises DamagedSnapshot: cut short, altered; NewerSnapshot.

    ``edited``: a person may have changed it. The checksum is not looked at, the members are the
    more: none may be unknown, so that a misspelt one is not lost in silence.
    """
    try:
        document = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise DamagedSnapshot(f"not JSON: {error}") from error
    if not isinstance(document, dict) or "version" not in document:
        raise DamagedSnapshot("not an offset file")
    version = document["version"]
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        kind = NewerSnapshot if newer else DamagedSnapshot
        raise kind(f"version {version!r}, this binlogd reads {VERSION}")
    body = document.get("body")
    if not isinstance(body, dict):
        raise DamagedSnapshot("it has no body")
    if not edited and document.get("sha256") != _checksum(body):
        raise DamagedSnapshot("the checksum does not match the content")
    try:
        if edited:
            msgspec.convert(body, _Body)
        return _from_body(body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # msgspec's ValidationError, which names the member's place, is a ValueError.
        raise DamagedSnapshot(f"a member is missing or has the wrong type: {error}") from error


class _LeaderEpoch(msgspec.Struct, forbid_unknown_fields=True):
    epoch: Annotated[int, msgspec.Meta(ge=0)]
    below: Annotated[int, msgspec.Meta(ge=1)]


class _Running(msgspec.Struct, forbid_unknown_fields=True):
    at: Annotated[int, msgspec.Meta(ge=0)]
    numbers: dict[str, Annotated[int, msgspec.Meta(ge=0)]]


class _Partition(msgspec.Struct, forbid_unknown_fields=True):
    frontier: Annotated[int, msgspec.Meta(ge=0)]
    confirmed: Annotated[int, msgspec.Meta(ge=0)] | None
    leader_epoch: _LeaderEpoch | None = None
    reset: bool = False
    running: _Running | None = None


class _Moves(msgspec.Struct, forbid_unknown_fields=True):
    lower: dict[str, Annotated[int, msgspec.Meta(ge=-1)]]
    lift: dict[str, Annotated[int, msgspec.Meta(ge=-1)]]


class _Mark(msgspec.Struct, forbid_unknown_fields=True, gc=False, omit_defaults=True):
    version: str | None
    hwms: dict[str, Annotated[int, msgspec.Meta(ge=-1)]]
    moves: _Moves | None = None
    rows_may_differ: str | None = None


class _Spill(msgspec.Struct, forbid_unknown_fields=True):
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    lanes: dict[str, tuple[int, int]]


class _Rebuild(msgspec.Struct, forbid_unknown_fields=True):
    into: str
    until: dict[str, Annotated[int, msgspec.Meta(ge=-1)]]
    keep_old: bool = False
    cancelled: bool = False


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    """The body's form, for what a person may have mistyped."""

    pipeline: str
    group: str
    topic_ids: dict[str, str]
    partitions: dict[str, _Partition]
    targets: dict[str, _Mark]
    forced: str | None
    spills: dict[str, _Spill] = {}
    rebuilds: dict[str, _Rebuild] = {}
    formats: dict[str, str] = {}


class _Names(dict[TopicPartition, str]):
    """The text of each partition, made once: thousands of lanes share a few."""

    def __missing__(self, source: TopicPartition) -> str:
        name = self[source] = str(source)
        return name


def _body(snapshot: Snapshot) -> dict[str, Any]:
    names = _Names()
    spills = {
        target: {"bytes": mark.bytes, "lanes": {names[s]: list(mark.lanes[s]) for s in mark.lanes}}
        for target, mark in sorted(snapshot.spills.items())
    }
    quarantined = {"spills": spills} if spills else {}  # as it is read by versions without them
    rebuilds = {name: rebuild_body(snapshot.rebuilds[name]) for name in sorted(snapshot.rebuilds)}
    formats = {"formats": dict(sorted(snapshot.formats.items()))} if snapshot.formats else {}
    seldom = quarantined | ({"rebuilds": rebuilds} if rebuilds else {}) | formats
    return seldom | {
        "pipeline": snapshot.pipeline,
        "group": snapshot.group,
        "topic_ids": dict(sorted(snapshot.topic_ids.items())),
        "partitions": {
            names[source]: _partition(state)
            for source, state in sorted(snapshot.partitions.items())
        },
        "targets": _targets(snapshot, names),
        "forced": snapshot.forced,
    }


def moves_body(moves: MarkMoves) -> dict[str, dict[str, int]]:
    """Moves as JSON's members."""
    return {
        "lower": {str(source): moves.lower[source] for source in sorted(moves.lower)},
        "lift": {str(source): moves.lift[source] for source in sorted(moves.lift)},
    }


def moves_of(body: Mapping[str, Mapping[str, int]]) -> MarkMoves:
    """``moves_body`` read back."""
    lower, lift = (
        {TopicPartition.parse(source): mark for source, mark in body[way].items()}
        for way in ("lower", "lift")
    )
    return MarkMoves(lower, lift)


def _targets(snapshot: Snapshot, names: _Names) -> msgspec.Raw:
    """By far the longest member, as text: the file and its checksum are both made from it."""
    marks = {
        target: _Mark(
            mark.version,
            {names[source]: hwm for source, hwm in mark.hwms.items()},
            None if mark.moves is None else _Moves(**moves_body(mark.moves)),
            mark.rows_may_differ,
        )
        for target, mark in snapshot.targets.items()
    }
    return msgspec.Raw(msgspec.json.encode(marks, order="sorted"))


def _partition(state: PartitionState) -> dict[str, Any]:
    said: dict[str, Any] = {"frontier": state.frontier, "confirmed": state.confirmed}
    if state.log is not None:
        said["leader_epoch"] = {"epoch": state.log.epoch, "below": state.log.below}
    if state.reset:
        said["reset"] = True
    if state.running is not None:
        numbers = dict(sorted(state.running.numbers.items()))
        said["running"] = {"at": state.running.at, "numbers": numbers}
    return said


def _running(said: dict[str, Any] | None) -> Running | None:
    return None if said is None else Running(said["at"], said["numbers"])


def _log_epoch(said: dict[str, int] | None) -> LogEpoch | None:
    return None if said is None else LogEpoch(said["epoch"], said["below"])


def _from_body(body: dict[str, Any]) -> Snapshot:
    return Snapshot(
        pipeline=body["pipeline"],
        group=body["group"],
        topic_ids=body["topic_ids"],
        partitions={
            TopicPartition.parse(source): PartitionState(
                state["frontier"],
                state["confirmed"],
                _log_epoch(state.get("leader_epoch")),
                state.get("reset", False),
                _running(state.get("running")),
            )
            for source, state in body["partitions"].items()
        },
        targets={
            target: TargetMark(
                mark["version"],
                {TopicPartition.parse(source): hwm for source, hwm in mark["hwms"].items()},
                None if mark.get("moves") is None else moves_of(mark["moves"]),
                mark.get("rows_may_differ"),
            )
            for target, mark in body["targets"].items()
        },
        forced=body["forced"],
        spills={
            target: SpillMark(
                mark["bytes"],
                {TopicPartition.parse(s): (first, last) for s, (first, last) in lanes.items()},
            )
            for target, mark in body.get("spills", {}).items()
            for lanes in (mark["lanes"],)
        },
        rebuilds={name: rebuild_of(found) for name, found in body.get("rebuilds", {}).items()},
        formats=dict(body.get("formats", {})),
    )


def _checksum(body: dict[str, Any]) -> str:
    """Over the content, not the layout: a person may re-indent the file."""
    canonical = msgspec.json.encode(body, order="sorted")
    return hashlib.sha256(canonical).hexdigest()
