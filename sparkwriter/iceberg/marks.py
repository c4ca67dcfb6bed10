"""The high-water marks of an Iceberg table: an entry in the summary of the snapshot they tell of.

Whoever reads main reads rows and marks of the same moment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from offsets.position import NO_OFFSET, Step, TopicPartition
from sparkwriter.iceberg.java import LakeTable

HWM = "binlogd.hwm"
"""Summary entry of a snapshot, all lanes of the table: ``{"topic:partition": [offset, group]}``.

The group is whose write moved the mark there, with its cluster; where nobody knows there is the
offset alone. A third place ``[offset, done, rows]`` is the step (``offsets.position.Step``) in the
message above the mark; then the mark may be -1. It is part of the text, so whatever restamps the
marks carries it.
"""


class Mark(NamedTuple):
    """A stamp and the snapshot that carries it. ``above``: main's snapshots since, the newest
    first, which are others'."""

    snapshot: int
    text: str
    above: tuple[int, ...] = ()


def nearest_mark(table: LakeTable, main: int) -> Mark | None:
    """The nearest stamp in main's history: others' maintenance adds snapshots without one.

    None when the history that is left carries none.
    """
    at: int | None = main
    above: list[int] = []
    while at is not None:
        if (text := table.summary(at, HWM)) is not None:
            return Mark(at, text, tuple(above))
        above.append(at)
        at = table.parent(at)
    return None


def marks_text(
    marks: Mapping[TopicPartition, int],
    groups: Mapping[TopicPartition, str] | None = None,
    steps: Mapping[TopicPartition, Step] | None = None,
) -> str:
    """The marks as the summary holds them: JSON, sorted, so that equal marks are equal text.

    ``groups`` says of lanes who moved their marks there, ``steps`` how far they are above.
    """
    by, amid = groups or {}, steps or {}
    entries: dict[str, object] = {}
    for lane in sorted(marks.keys() | amid.keys()):
        mark, group = marks.get(lane, NO_OFFSET), by.get(lane, "")
        if lane in amid:
            entries[str(lane)] = [mark, group, list(amid[lane])]
        else:
            entries[str(lane)] = [mark, group] if group else mark
    return json.dumps(entries, ensure_ascii=False)


def marks_of(text: str) -> dict[TopicPartition, int]:
    """The marks that a summary holds."""
    return {lane: mark for lane, mark, _, _ in _entries(text)}


def groups_of(text: str) -> dict[TopicPartition, str]:
    """Who moved the marks that a summary holds, where it says so."""
    return {lane: group for lane, _, group, _ in _entries(text) if group}


def steps_of(text: str) -> dict[TopicPartition, Step]:
    """How far the lanes are above their marks, where they are amid a message."""
    return {lane: step for lane, _, _, step in _entries(text) if step is not None}


def _entries(text: str) -> Iterator[tuple[TopicPartition, int, str, Step | None]]:
    for lane, entry in json.loads(text).items():
        mark, group, *step = entry if isinstance(entry, list) else (entry, "")
        at = Step(*map(int, step[0])) if step else None
        yield TopicPartition.parse(lane), int(mark), group, at
