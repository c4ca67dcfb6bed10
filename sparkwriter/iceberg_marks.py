"""The high-water marks of an Iceberg table: an entry in the summary of the snapshot they tell of.

Whoever reads main reads rows and marks of the same moment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from offsets.position import TopicPartition
from sparkwriter.iceberg_java import LakeTable

HWM = "binlogd.hwm"
"""Summary entry of a snapshot: ``{"topic:partition": offset}``, all lanes of the table."""


class Mark(NamedTuple):
    """A stamp and the snapshot that carries it."""

    snapshot: int
    text: str


def nearest_mark(table: LakeTable, main: int) -> Mark | None:
    """The nearest stamp in main's history: others' maintenance adds snapshots without one.

    None when the history that is left carries none.
    """
    at: int | None = main
    while at is not None:
        if (text := table.summary(at, HWM)) is not None:
            return Mark(at, text)
        at = table.parent(at)
    return None


def marks_text(marks: Mapping[TopicPartition, int]) -> str:
    """The marks as the summary holds them: JSON, sorted, so that equal marks are equal text."""
    return json.dumps({str(lane): marks[lane] for lane in sorted(marks)}, ensure_ascii=False)


def marks_of(text: str) -> dict[TopicPartition, int]:
    """The marks that a summary holds."""
    return {TopicPartition.parse(lane): int(mark) for lane, mark in json.loads(text).items()}
