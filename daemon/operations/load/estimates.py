"""Estimates for the plan of a load: how much the log brings, how long the rows take."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from daemon.config.pipeline_parts import LoadSection
from daemon.operations.engine.port import Look
from offsets.position import TopicPartition
from settings.counted import counted
from sources.base.port import LogGone, LogUnreadable

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


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a load of so many rows takes. ``why_margin``: why the margin is waited for; empty where
    positions tell when the rows may be read."""

    section: LoadSection
    rows: int
    bytes: int
    flow: Flow
    why_margin: str

    @property
    def rows_per_s(self) -> int:
        """While it reads."""
        return min(self.section.rows_per_s or SECOND_ROWS, SECOND_ROWS)

    @property
    def seconds(self) -> float:
        """From its beginning to the last row."""
        margin_s = self.section.margin_s if self.why_margin else 0.0
        return margin_s + self.rows / self.rows_per_s

    @property
    def spill_bytes(self) -> int:
        """Of what comes meanwhile."""
        return round(self.seconds * self.flow.messages_per_s * self.flow.bytes_each)

    def lines(self) -> Iterator[str]:
        """For people."""
        section, waits = self.section, "as soon as the database shows all that is in its log"
        if self.why_margin:
            waits = f"{section.margin_s:g} s until all that is in the log is visible"
        yield (
            f"{counted(self.rows, 'row takes', 'rows take')} about "
            f"{shown_time(self.seconds)} ({waits}, then {self.rows_per_s:,} rows/s)"
        )
        if self.why_margin:
            yield f"load.margin_s is waited for, no position: {self.why_margin}"
        yield (
            f"old and new tables are there until the end: up to {shown_bytes(self.bytes)} more in "
            "the sink"
        )
        yield (
            f"the log brings {self.flow.messages_per_s:,.0f} messages/s of "
            f"{self.flow.bytes_each:,} bytes: at most {shown_bytes(self.spill_bytes)} are kept in "
            f"state_dir meanwhile (load.spill_bytes: {shown_bytes(section.spill_bytes)} a table)"
        )
        if self.spill_bytes > section.spill_bytes:
            yield (
                "that may be too much for one table: raise load.spill_bytes, or load when it is "
                "quiet"
            )
