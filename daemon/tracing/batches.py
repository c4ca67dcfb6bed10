"""The traces of batches: from the polls that brought their messages to the commit behind them.

A trace is one batch of one target: the span ``batch``, and below it ``poll`` for each poll that
brought messages of it, ``stage``, ``publish`` for each attempt, ``commit``. Most spans are written
once the batch is over: what was polled is noted without a span, since its batches are unknown then.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from actors.contract.effects import LaneMessages, Stage
from actors.contract.messages import Failed, Fetched, Published, Staged
from actors.contract.writes import StagedBatch
from offsets.position import TopicPartition

POLLS_REMEMBERED = 4096
"""Of a pipeline. Less: batches that waited long lack their polls. More only costs memory."""

POLLS_SHOWN = 4
"""Of a batch: the newest, and the oldest others. A large one comes from thousands, and each is a
span to be sent: with 32 they were nine tenths of all spans (measured)."""

MOST_OPEN = 10_000
"""Batches between their staging and their commit. Further ones are not traced."""


@dataclass(frozen=True, slots=True)
class _Poll:
    begun_ns: int
    ended_ns: int
    ranges: Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Batch:
    pipeline: str
    span: Span
    within: Context


@dataclass(slots=True)
class _Pipeline:
    polls: deque[_Poll] = field(default_factory=lambda: deque(maxlen=POLLS_REMEMBERED))
    uncommitted: deque[tuple[Context, Mapping[TopicPartition, int]]] = field(
        default_factory=lambda: deque(maxlen=MOST_OPEN)
    )


class BatchTraces:
    """What the effects of a daemon's actors tell of batches. Any thread."""

    def __init__(self, tracer: Tracer, redact: Callable[[str], str] = str) -> None:
        """``redact`` removes secrets from a sink's errors."""
        self._tracer = tracer
        self._redact = redact
        self._lock = threading.Lock()
        self._pipelines: dict[str, _Pipeline] = {}
        self._open: dict[str, _Batch] = {}

    def polled(
        self, pipeline: str, batches: Sequence[Fetched], begun_ns: int, ended_ns: int
    ) -> None:
        """A poll brought messages."""
        ranges = {each.source: (each.offsets[0], each.offsets[-1]) for each in batches}
        with self._lock:
            self._of(pipeline).polls.append(_Poll(begun_ns, ended_ns, ranges))

    def staged(
        self, pipeline: str, request: Stage, staged: Staged, begun_ns: int, ended_ns: int
    ) -> None:
        """Messages were decoded and staged, perhaps behind those of earlier files."""
        if staged.path is None:
            return
        with self._lock:
            if request.earlier_files:
                batch = self._earlier(request.earlier_files)
            elif len(self._open) < MOST_OPEN:
                batch = self._begin(pipeline, request, begun_ns)
            else:
                batch = None
            if batch is None:
                return
            self._open[staged.path] = batch
        counts = {"rows": staged.rows, "changes": staged.changes, "bytes": staged.size}
        counts["polls"] = self._polls(batch, request.lanes)
        self._child(batch.within, "stage", begun_ns, ended_ns, counts)

    def published(
        self, batch: StagedBatch, answer: Published | Failed, begun_ns: int, ended_ns: int
    ) -> None:
        """A sink has taken a batch, or has not."""
        with self._lock:
            found = self._open.get(batch.path or "")
            if found is None:
                return
            if isinstance(answer, Published):
                del self._open[batch.path or ""]
                through = {source: span.through for source, span in batch.lanes.items()}
                self._of(found.pipeline).uncommitted.append((found.within, through))
        if isinstance(answer, Failed):
            why = Status(StatusCode.ERROR, self._redact(f"{answer.kind.value}: {answer.reason}"))
            self._child(found.within, "publish", begun_ns, ended_ns, {}, why)
            return
        shown = {"version": answer.state.version or "", "covered": answer.state.covered}
        self._child(found.within, "publish", begun_ns, ended_ns, shown)
        self._end(found, "published", ended_ns)

    def given_up(self, paths: Sequence[str], now_ns: int) -> None:
        """Staged files will not be written: of a partition that went away, of a refused target."""
        with self._lock:
            found = [self._open.pop(path) for path in paths if path in self._open]
        for batch in found:
            self._end(batch, "given up", now_ns)

    def saved(
        self,
        pipeline: str,
        frontiers: Mapping[TopicPartition, int],
        begun_ns: int,
        ended_ns: int,
    ) -> None:
        """The stores have the frontiers: batches below them are committed."""
        with self._lock:
            of_pipeline = self._of(pipeline)
            done = [one for one in of_pipeline.uncommitted if _is_below(one[1], frontiers)]
            left = (one for one in of_pipeline.uncommitted if not _is_below(one[1], frontiers))
            of_pipeline.uncommitted = deque(left, MOST_OPEN)
        for within, _ in done:
            self._child(within, "commit", begun_ns, ended_ns, {})

    def close(self, now_ns: int) -> None:
        """The run is over; what is not written is read again by the next one."""
        self.given_up(tuple(self._open), now_ns)

    # --- helpers

    def _of(self, pipeline: str) -> _Pipeline:
        return self._pipelines.setdefault(pipeline, _Pipeline())

    def _earlier(self, files: Sequence[str]) -> _Batch | None:
        """The batch that earlier files began. It is traced if the first of them was."""
        found = [self._open.pop(path, None) for path in files]
        for joined in filter(None, found[1:]):
            self._end(joined, "joined to another", None)
        return found[0]

    def _begin(self, pipeline: str, request: Stage, begun_ns: int) -> _Batch | None:
        """A new trace, None where it is not among the sampled ones."""
        oldest = next(_polls_of(self._of(pipeline).polls, request.lanes), None)
        names = {"binlogd.pipeline": pipeline, "binlogd.target": str(request.route.name)}
        began = begun_ns if oldest is None else oldest[0].begun_ns
        span = self._tracer.start_span("batch", Context(), attributes=names, start_time=began)
        if not span.is_recording():
            return None
        return _Batch(pipeline, span, set_span_in_context(span, Context()))

    def _polls(self, batch: _Batch, lanes: Sequence[LaneMessages]) -> int:
        """Tell of the polls that brought these messages; returns their number."""
        with self._lock:
            found = list(_polls_of(self._of(batch.pipeline).polls, lanes))
        for poll, messages in [*found[: POLLS_SHOWN - 1], *found[POLLS_SHOWN - 1 :][-1:]]:
            told = {"messages": sum(messages.values()), "sources": sorted(map(str, messages))}
            began, ended = poll.begun_ns, poll.ended_ns
            self._child(batch.within, "poll", began, ended, told, kind=SpanKind.CONSUMER)
        return len(found)

    def _child(
        self,
        within: Context,
        name: str,
        begun_ns: int,
        ended_ns: int,
        told: Mapping[str, Any],
        status: Status | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        named = {f"binlogd.{key}": value for key, value in told.items()}
        span = self._tracer.start_span(name, within, kind, named, start_time=begun_ns)
        if status is not None:
            span.set_status(status)
        span.end(ended_ns)

    def _end(self, batch: _Batch, outcome: str, now_ns: int | None) -> None:
        batch.span.set_attribute("binlogd.outcome", outcome)
        batch.span.end(now_ns)


def _is_below(
    through: Mapping[TopicPartition, int], frontiers: Mapping[TopicPartition, int]
) -> bool:
    return all(frontiers.get(source, 0) > offset for source, offset in through.items())


def _polls_of(
    polls: Sequence[_Poll], lanes: Sequence[LaneMessages]
) -> Iterator[tuple[_Poll, Mapping[TopicPartition, int]]]:
    """The remembered polls that brought messages of these lanes, the oldest first, with how many.

    Read again after a revoke, an offset came by several: the newest counts.
    """
    wanted = {lane.source: lane.messages for lane in lanes if len(lane.messages)}
    found = []
    for poll in reversed(polls):
        if not wanted:
            break
        counts = {}
        for source, (first, last) in poll.ranges.items():
            if source not in wanted:
                continue
            offsets = wanted[source].offsets
            if many := bisect_right(offsets, last) - bisect_left(offsets, first):
                counts[source] = many
            if first <= offsets[0]:
                del wanted[source]
        if counts:
            found.append((poll, counts))
    return reversed(found)
