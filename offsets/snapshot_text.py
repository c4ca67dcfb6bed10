"""A snapshot's JSON text, as in the local offset file: versioned, checksummed, readable."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

import msgspec

from offsets.parts import Running
from offsets.position import LogEpoch, TopicPartition
from offsets.rebuild_text import Mark, MovesForm, RebuildForm, sources, texts
from offsets.snapshot import PartitionState, Snapshot, SpillMark, TargetMark

VERSION = 1
"""Version of the file's layout. A reader refuses what it does not know instead of guessing."""


class DamagedSnapshot(Exception):
    """The text is not a whole snapshot of ours: what is wrong with it, in one line."""


class NewerSnapshot(DamagedSnapshot):
    """It is whole, and of a version that this binlogd does not know."""


def encode(snapshot: Snapshot) -> str:
    """The file's text: indented JSON with a checksum over the body."""
    body = msgspec.Raw(msgspec.json.encode(_BodyForm.of(snapshot), order="sorted"))
    document = {"version": VERSION, "sha256": hashlib.sha256(body).hexdigest(), "body": body}
    # The standard library's encoder takes five times as long as the disk once it indents.
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def decode(text: str, edited: bool = False) -> Snapshot:
    """Read ``encode``'s text back, with the mark before it that some editors put there.

    Raises DamagedSnapshot: cut short, altered; NewerSnapshot: whole, but not to be read: what is
    not known may not be left out.

    ``edited``: a person may have changed it. The checksum is not looked at; a member that is
    unknown is a misspelt one.
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
        return msgspec.convert(body, _BodyForm).value()
    except ValueError as error:  # as msgspec's ValidationError is, which names the member's place
        kind = DamagedSnapshot if edited else NewerSnapshot
        raise kind(f"a member is missing, unknown or has the wrong type: {error}") from error


Offset = Annotated[int, msgspec.Meta(ge=0)]


class _LogForm(msgspec.Struct, forbid_unknown_fields=True):
    epoch: Offset
    below: Annotated[int, msgspec.Meta(ge=1)]


class _RunningForm(msgspec.Struct, forbid_unknown_fields=True):
    at: Offset
    numbers: dict[str, Offset]


class _PartitionForm(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    frontier: Offset
    confirmed: Offset | None
    leader_epoch: _LogForm | None = None
    reset: bool = False
    running: _RunningForm | None = None
    adopted: Offset | None = None
    reread: Offset | None = None
    begin: Offset | None = None
    withdraws: Offset | None = None

    @classmethod
    def of(cls, state: PartitionState) -> _PartitionForm:
        log, running = state.log, state.running
        return cls(
            state.frontier,
            state.confirmed,
            None if log is None else _LogForm(log.epoch, log.below),
            state.reset,
            None if running is None else _RunningForm(running.at, dict(running.numbers)),
            state.adopted,
            state.reread,
            state.begin,
            state.withdraws,
        )

    def value(self) -> PartitionState:
        log, running = self.leader_epoch, self.running
        return PartitionState(
            self.frontier,
            self.confirmed,
            None if log is None else LogEpoch(log.epoch, log.below),
            self.reset,
            None if running is None else Running(running.at, running.numbers),
            self.adopted,
            self.reread,
            self.begin,
            self.withdraws,
        )


class _MarkForm(msgspec.Struct, forbid_unknown_fields=True, gc=False, omit_defaults=True):
    version: str | None
    hwms: dict[str, Mark]
    moves: MovesForm | None = None
    rows_may_differ: str | None = None

    def value(self) -> TargetMark:
        moves = None if self.moves is None else self.moves.value()
        return TargetMark(self.version, sources(self.hwms), moves, self.rows_may_differ)


class _SpillForm(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    bytes: Offset
    lanes: dict[str, tuple[int, int]]
    away: bool = False


class _BodyForm(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    pipeline: str
    group: str
    topic_ids: dict[str, str]
    partitions: dict[str, _PartitionForm]
    targets: dict[str, _MarkForm]
    forced: str | None
    spills: dict[str, _SpillForm] = {}
    rebuilds: dict[str, RebuildForm] = {}
    formats: dict[str, str] = {}

    @classmethod
    def of(cls, snapshot: Snapshot) -> _BodyForm:
        names = _Names()
        return cls(
            snapshot.pipeline,
            snapshot.group,
            dict(snapshot.topic_ids),
            {names[s]: _PartitionForm.of(state) for s, state in snapshot.partitions.items()},
            {
                target: _MarkForm(
                    mark.version,
                    {names[source]: hwm for source, hwm in mark.hwms.items()},
                    None if mark.moves is None else MovesForm.of(mark.moves),
                    mark.rows_may_differ,
                )
                for target, mark in snapshot.targets.items()
            },
            snapshot.forced,
            {
                target: _SpillForm(mark.bytes, texts(mark.lanes), mark.away)
                for target, mark in snapshot.spills.items()
            },
            {name: RebuildForm.of(rebuild) for name, rebuild in snapshot.rebuilds.items()},
            dict(snapshot.formats),
        )

    def value(self) -> Snapshot:
        return Snapshot(
            self.pipeline,
            self.group,
            self.topic_ids,
            {TopicPartition.parse(s): state.value() for s, state in self.partitions.items()},
            {target: mark.value() for target, mark in self.targets.items()},
            self.forced,
            {
                target: SpillMark(mark.bytes, sources(mark.lanes), mark.away)
                for target, mark in self.spills.items()
            },
            {name: rebuild.value() for name, rebuild in self.rebuilds.items()},
            self.formats,
        )


class _Names(dict[TopicPartition, str]):
    """The text of each partition, made once: thousands of lanes share a few."""

    def __missing__(self, source: TopicPartition) -> str:
        name = self[source] = str(source)
        return name


def _checksum(body: dict[str, Any]) -> str:
    """Over the content, not the layout: a person may re-indent the file."""
    return hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()
