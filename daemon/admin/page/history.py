"""Remembers the last hour of each pipeline and target, the last errors and events. In memory alone.

A sample is made from the status document at a fixed interval. Memory is bounded: a target that had
no change in this run has no ring, and beyond ``MOST_TARGETS`` further ones are not remembered.
"""

from __future__ import annotations

import threading
from array import array
from collections import deque
from dataclasses import dataclass

from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition, ConditionKey
from daemon.admin.status.health import shown

INTERVAL_S = 10.0
"""Between two samples. Shorter: more memory for points that no screen can show apart. Longer: the
rates lag behind what happens."""

POINTS = 360
"""An hour of samples. A target's ring takes 4 kB, 3,000 targets take 13 MB; a pipeline's 6 kB."""

MOST_TARGETS = 10_000
"""Rings that are kept, 43 MB."""

MOST_ERRORS = 50
"""Errors that are kept: more than a screen shows."""

MOST_EVENTS = 50
"""What began or ended to be not well, 15 kB."""

PACE_POINTS = 30
"""Five minutes: the pace of an estimate. Shorter: it jumps with each write. Longer: a catch-up that
has just begun looks slower than it is."""

UNKNOWN = float("nan")

Key = tuple[str, str]
"""Pipeline and target; of a pipeline itself the target is empty."""


@dataclass(frozen=True, slots=True)
class SeenError:
    """An error that samples showed. Unix milliseconds of its last time, as far as known."""

    time_ms: int
    pipeline: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class Course:
    """A target's points, the oldest first; NaN where nothing is known.

    ``rows`` are source rows a second, ``write`` the mean seconds of the writes that ended in the
    interval, ``lag`` seconds.
    """

    rows: tuple[float, ...]
    write: tuple[float, ...]
    lag: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PipelineCourse:
    """A pipeline's points: source rows a second, lag and freshness in seconds, messages behind."""

    rows: tuple[float, ...]
    lag: tuple[float, ...]
    freshness: tuple[float, ...]
    behind: tuple[float, ...]

    @property
    def left_s(self) -> float | None:
        """Seconds until it is caught up, at the pace of the last minutes; None where it gets no
        closer, or that is not known."""
        at = [(n, v) for n, v in enumerate(self.behind[-PACE_POINTS:]) if v == v]
        if len(at) < 2 or at[-1][0] < len(self.behind[-PACE_POINTS:]) - 1:
            return None
        (first, most), (last, left) = at[0], at[-1]
        pace = (most - left) / ((last - first) * INTERVAL_S)
        return left / pace if pace > 0 else None


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """What began to be not well, or ended. Unix milliseconds of the sample that showed it."""

    time_ms: int
    begun: bool
    condition: Condition


class _Ring:
    """The points of a target or pipeline, and the counts from which the next are computed."""

    __slots__ = ("_points", "counts")

    def __init__(self, lines: int = 3) -> None:
        self.counts = (0.0, 0.0, 0.0)
        self._points = tuple(array("f", [UNKNOWN] * POINTS) for _ in range(lines))

    def put(self, number: int, values: tuple[float, ...]) -> None:
        for points, value in zip(self._points, values, strict=True):
            points[number % POINTS] = value

    def lines(self, number: int) -> list[tuple[float, ...]]:
        """The oldest points first. ``number``: of the next sample."""
        at = number % POINTS
        return [tuple(points[at:] + points[:at]) for points in self._points]

    def rate(self, number: int) -> float | None:
        value = self._points[0][(number - 1) % POINTS]
        return None if value != value else value


class History:
    """Any thread may read; one thread samples."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rings: dict[Key, _Ring] = {}
        self._pipelines: dict[str, _Ring] = {}
        self._open: dict[ConditionKey, Condition] = {}
        self._events: deque[SeenEvent] = deque(maxlen=MOST_EVENTS)
        self._read: dict[str, tuple[int, float | None]] = {}
        self._errors: dict[tuple[str, str, str], int] = {}
        self._number = 0
        self._before_s: float | None = None

    def sample(self, status: doc.Status) -> None:
        """Take a status document as the next point; one of the same moment is no other point."""
        with self._lock:
            now_s = status["uptime_seconds"]
            passed_s = None if self._before_s is None else now_s - self._before_s
            if passed_s == 0:
                return
            for pipeline in status["pipelines"]:
                name = pipeline["pipeline"]
                before, _ = self._read.get(name, (0, None))
                count = pipeline["messages_read"]
                rate = _grown(count, before) / passed_s if passed_s else None
                self._read[name] = (count, rate)
                self._pipeline_point(name, pipeline, passed_s)
                for target in pipeline["targets"]:
                    self._point((name, target["target"]), target, passed_s)
                    self._error((name, target["target"]), target, status["time_ms"])
            gone = self._pipelines.keys() - {p["pipeline"] for p in status["pipelines"]}
            for name in gone:
                del self._pipelines[name]
            self._news(status)
            self._before_s = now_s
            self._number += 1

    def course(self, pipeline: str, target: str) -> Course | None:
        """A target's last hour; None of one that is not known."""
        with self._lock:
            ring = self._rings.get((pipeline, target))
            return None if ring is None else Course(*ring.lines(self._number))

    def pipeline_course(self, pipeline: str) -> PipelineCourse | None:
        """A pipeline's last hour; None of one that is not known."""
        with self._lock:
            ring = self._pipelines.get(pipeline)
            return None if ring is None else PipelineCourse(*ring.lines(self._number))

    def events(self) -> list[SeenEvent]:
        """What began and ended, the newest first."""
        with self._lock:
            return [*reversed(self._events)]

    def rows_rate(self, pipeline: str, target: str) -> float | None:
        """Source rows a second that a target got, over the last interval."""
        with self._lock:
            ring = self._rings.get((pipeline, target))
            return None if ring is None else ring.rate(self._number)

    def messages_rate(self, pipeline: str) -> float | None:
        """Messages a second that a pipeline read, over the last interval."""
        with self._lock:
            return self._read.get(pipeline, (0, None))[1]

    def errors(self) -> list[SeenError]:
        """The last errors, the newest first."""
        with self._lock:
            seen = [SeenError(time_ms, *what) for what, time_ms in self._errors.items()]
        return sorted(seen, key=lambda error: -error.time_ms)

    def _news(self, status: doc.Status) -> None:
        now = {one.key: one for one in shown(status) if one.is_news}
        for known, other, begun in ((now, self._open, True), (self._open, now, False)):
            news = [one for key, one in known.items() if key not in other]
            self._events.extend(SeenEvent(status["time_ms"], begun, one) for one in news)
        self._open = now

    def _pipeline_point(self, name: str, p: doc.Pipeline, passed_s: float | None) -> None:
        ring = self._pipelines.setdefault(name, _Ring(4))
        rows = _grown(p["rows_written"], ring.counts[0])
        ring.counts = (p["rows_written"], 0.0, 0.0)
        known = (p["lag_seconds"], p["freshness_seconds"], p["lag_messages"])
        values = (UNKNOWN if value is None else value for value in known)
        ring.put(self._number, (rows / passed_s if passed_s else UNKNOWN, *values))

    def _point(self, key: Key, target: doc.Target, passed_s: float | None) -> None:
        ring = self._rings.get(key)
        if ring is None:
            if len(self._rings) >= MOST_TARGETS or not target["messages_read"]:
                return
            # Its counts began at 0, with the process or after the last sample.
            ring = self._rings[key] = _Ring()
        counts = (target["rows_written"], target["writes"], target["write_seconds"])
        rows, writes, seconds = map(_grown, counts, ring.counts)
        ring.counts = counts
        lag = target["lag_seconds"]
        ring.put(
            self._number,
            (
                rows / passed_s if passed_s else UNKNOWN,
                seconds / writes if writes else UNKNOWN,
                UNKNOWN if lag is None else lag,
            ),
        )

    def _error(self, key: Key, target: doc.Target, now_ms: int) -> None:
        """The same error again only gets a new time: a write is retried every few seconds."""
        error = target["last_error"]
        if error is None:
            return
        ago_s = error["seconds_ago"]
        if ago_s is None:  # of an earlier run: when, nobody knows
            ago_s = self._before_s or 0.0
        what = (*key, error["reason"])
        self._errors.pop(what, None)
        self._errors[what] = now_ms - int(ago_s * 1000)
        if len(self._errors) > MOST_ERRORS:
            self._errors.pop(min(self._errors, key=lambda known: self._errors[known]))


def _grown(now: float, before: float) -> float:
    """A pipeline that was started again counts from 0."""
    return now - before if now >= before else now
