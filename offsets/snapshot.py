"""The local offset file as a value, and its JSON text: versioned, checksummed, readable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from offsets.position import TopicPartition

VERSION = 1
"""Version of the file's layout. A reader refuses what it does not know instead of guessing."""


class DamagedSnapshot(Exception):
    """The text is not a whole snapshot of ours: what is wrong with it, in one line."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Where one partition stands.

    ``frontier``: every message below it is done. ``confirmed``: the last frontier of which the
    broker said that it has it, None before the first one.
    """

    frontier: int
    confirmed: int | None = None


@dataclass(frozen=True, slots=True)
class TargetMark:
    """What a target last published: the sink's own name of that state, and its marks."""

    version: str | None
    hwms: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a pipeline must remember between two runs.

    ``forced`` is the configuration's force text that was carried out last: it works once.
    """

    pipeline: str
    group: str
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    targets: Mapping[str, TargetMark] = field(default_factory=dict)
    forced: str | None = None


def encode(snapshot: Snapshot) -> str:
    """The file's text: indented JSON with a checksum over the body."""
    body: dict[str, Any] = {
        "pipeline": snapshot.pipeline,
        "group": snapshot.group,
        "topic_ids": dict(sorted(snapshot.topic_ids.items())),
        "partitions": {
            str(source): {"frontier": state.frontier, "confirmed": state.confirmed}
            for source, state in sorted(snapshot.partitions.items())
        },
        "targets": {
            target: {
                "version": mark.version,
                "hwms": {str(source): hwm for source, hwm in sorted(mark.hwms.items())},
            }
            for target, mark in sorted(snapshot.targets.items())
        },
        "forced": snapshot.forced,
    }
    document = {"version": VERSION, "sha256": _checksum(body), "body": body}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def decode(text: str) -> Snapshot:
    """Read ``encode``'s text back. Raises DamagedSnapshot: cut short, altered, another version."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DamagedSnapshot(f"not JSON: {error}") from error
    if not isinstance(document, dict) or "version" not in document:
        raise DamagedSnapshot("not an offset file")
    if document["version"] != VERSION:
        raise DamagedSnapshot(f"version {document['version']!r}, this binlogd reads {VERSION}")
    body = document.get("body")
    if not isinstance(body, dict) or document.get("sha256") != _checksum(body):
        raise DamagedSnapshot("the checksum does not match the content")
    try:
        return _from_body(body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedSnapshot(f"a member is missing or has the wrong type: {error}") from error


def _from_body(body: dict[str, Any]) -> Snapshot:
    return Snapshot(
        pipeline=body["pipeline"],
        group=body["group"],
        topic_ids=body["topic_ids"],
        partitions={
            TopicPartition.parse(source): PartitionState(state["frontier"], state["confirmed"])
            for source, state in body["partitions"].items()
        },
        targets={
            target: TargetMark(
                mark["version"],
                {TopicPartition.parse(source): hwm for source, hwm in mark["hwms"].items()},
            )
            for target, mark in body["targets"].items()
        },
        forced=body["forced"],
    )


def _checksum(body: dict[str, Any]) -> str:
    """Over the content, not the layout: a person may re-indent the file."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
