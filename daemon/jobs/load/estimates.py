"""Estimates for the plan of a load: how much the log brings, how long the rows take."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from daemon.jobs.port import Look
from daemon.source.port import LogGone, LogUnreadable
from offsets.position import TopicPartition

SECOND_ROWS = 20_000
"""Rows a second by two connections: what ``make demo-load`` has on two cores, which database,
broker and changes share (docs/load.md). A larger machine is quicker than the estimate."""

OF_THE_LAST_S = 600
"""The stretch of the log whose messages are counted."""

SAMPLE = 200
"""Messages whose sizes are looked at, at the end of one partition."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What the log brings: of all tables."""

    messages_per_s: float
    bytes_each: int


def flow_of(look: Look, pipeline: str) -> Flow:
    """By the last minutes of the log. Raises NotAnswered."""
    source = look.source(pipeline)
    questions = source.questions()
    partitions = questions.partitions(sorted(source.topic_ids()))
    marks = questions.watermarks(partitions)
    then = questions.at_time(partitions, (time.time_ns() // 1_000_000) - OF_THE_LAST_S * 1000)
    came = {p: marks[p].high - then.get(p, marks[p].high) for p in partitions}
    busiest = max(came, key=lambda p: came[p], default=None)
    if busiest is None or not came[busiest]:
        return Flow(0.0, 0)
    sizes = list(_sizes(look, pipeline, busiest, marks[busiest].high))
    each = sum(sizes) // len(sizes) if sizes else 0
    return Flow(sum(came.values()) / OF_THE_LAST_S, each)


def _sizes(look: Look, pipeline: str, partition: TopicPartition, end: int) -> Iterable[int]:
    reader = look.source(pipeline).reader()
    try:
        for record in reader.read(partition, max(0, end - SAMPLE), end - 1):
            yield len(record.value or b"")
    except (LogGone, LogUnreadable):
        return


def shown_bytes(count: float) -> str:
    """``1.5 GB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def shown_time(seconds: float) -> str:
    """``2 h 5 min``."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
