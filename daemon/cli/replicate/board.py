"""How far a replication is: each table's state, and the next request to the daemon. Pure.

All of it is derived from the daemon's status document and the earlier requests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from collector.figures import reads_log
from daemon.operations.load.plan import MOST_TARGETS
from settings.counted import counted
from settings.shell import quoted_pattern

State = Literal["waits", "loads", "loaded", "equal", "differs", "refused"]

FIRST_ROWS = 50_000
"""The first job has the smallest tables, of so many rows together: they are equal long before the
large ones are, and show that all of it works."""

ALONE_S = 60.0
"""So long the first job has the machine to itself: beside the reads of large tables each of its
small steps would wait for a core. One that waits for something else holds up the others no longer
than this."""

STEADY_S, STEADY_PART = 30.0, 0.05
"""So long, or for so much of all rows, a rate is seen before it says when the loads end: in the
first seconds connections are opened and files begun, and few rows come."""

AGAIN_S = 60.0
"""Between two tries of a table whose load was refused or has failed."""


class FollowedTable(NamedTuple):
    """A table that is followed. ``rows``: the estimate of the plan."""

    name: str
    target: str
    rows: int


@dataclass(slots=True)
class Known:
    """What is known of targets beyond the daemon's status; seconds are of one clock.

    ``equal``: when a comparison found it so, as Unix seconds. ``differs``: rows of the last
    comparison. ``refused``: why, and when it is tried again. ``later``: when it is compared again,
    as the last comparison decided nothing. ``alone``: is requested by itself, as one of a group was
    refused. ``failed``: the last job that did. ``alone_until``: when the others are requested,
    whatever the first job's outcome. ``rows_since``: since when the loads under way bring rows.
    """

    loaded: set[str] = field(default_factory=set)
    equal: dict[str, float] = field(default_factory=dict)
    later: dict[str, float] = field(default_factory=dict)
    differs: dict[str, int] = field(default_factory=dict)
    refused: dict[str, tuple[str, float]] = field(default_factory=dict)
    alone: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    alone_until: float | None = None
    rows_since: float | None = None


class Request(NamedTuple):
    """A request to the daemon."""

    words: Literal["tables load", "tables verify"]
    targets: tuple[str, ...]


def loads(status: Mapping[str, Any], pipeline: str) -> list[Mapping[str, Any]]:
    """The recorded loads, in the order in which they were."""
    found = (one for one in status["jobs"] if one["kind"] == "load" and one["pipeline"] == pipeline)
    return sorted(found, key=lambda one: one["created_ms"] or 0)


def learn(memory: Known, jobs: Iterable[Mapping[str, Any]], now_s: float) -> None:
    """Take in how loads have ended; the last one of a table decides."""
    ended: dict[str, Mapping[str, Any]] = {}
    for job in jobs:
        ended |= dict.fromkeys(job["targets"], job)
    for target, job in ended.items():
        if job["state"] == "done":
            memory.loaded.add(target)
            memory.refused.pop(target, None)
        elif job["state"] in ("failed", "cancelled") and target not in memory.loaded:
            memory.alone.add(target)
            if memory.failed.get(target) != job["job"]:
                memory.failed[target] = job["job"]
                why = f"{job['state']}: {job['message']}"
                memory.refused[target] = why, now_s + AGAIN_S


def refuse(memory: Known, asked: Request, said: Sequence[str], now_s: float) -> None:
    """The daemon did not record the request: each table is requested by itself then."""
    for target in asked.targets:
        if asked.words == "tables verify":
            memory.later[target] = now_s + AGAIN_S
        elif len(asked.targets) > 1:
            memory.alone.add(target)
        else:
            memory.refused[target] = "; ".join(said) or "not recorded", now_s + AGAIN_S


def compared(
    memory: Known, result: Iterable[Mapping[str, Any]], now_s: float, unix_s: float
) -> list[str]:
    """Take in the end of comparisons: what ``tables verify`` gives. The targets that are equal."""
    equal = []
    for one in (table for job in result for table in job.get("tables", ())):
        target = one["target"]
        memory.differs.pop(target, None)
        if one["equal"]:
            memory.equal[target] = unix_s
            equal.append(target)
            continue
        memory.later[target] = now_s + AGAIN_S  # what is only late is there by then
        if one["differing"]:
            memory.differs[target] = one["differing"]
    return equal


def under_way(jobs: Iterable[Mapping[str, Any]]) -> set[str]:
    """The targets that are being loaded."""
    open_ = ("planned", "running", "waiting", "paused")
    return {target for one in jobs if one["state"] in open_ for target in one["targets"]}


def next_request(
    memory: Known, tables: Sequence[FollowedTable], busy: Collection[str], now_s: float
) -> Request | None:
    """The next request; None: none now. ``busy``: targets that are being loaded."""
    none_yet = not memory.equal and not memory.later
    if none_yet and (first := _to_compare(memory, tables, now_s)):
        # One table alone, before the others are read: it shows that all of it works.
        return Request("tables verify", (first[0].target,))
    left = [
        one
        for one in sorted(tables, key=lambda one: (one.rows, one.name))
        if one.target not in memory.loaded and one.target not in busy
        and memory.refused.get(one.target, ("", 0.0))[1] <= now_s
    ]  # fmt: skip
    if left and not _is_alone(memory, busy, now_s):
        first_job = not busy and not memory.loaded
        return Request("tables load", tuple(_group(left, memory.alone, first=first_job)))
    found = tuple(one.target for one in _to_compare(memory, tables, now_s)[:MOST_TARGETS])
    return Request("tables verify", found) if found else None


def begun(memory: Known, request: Request, now_s: float) -> None:
    """Note that this request is sent."""
    if request.words == "tables load" and memory.alone_until is None:
        memory.alone_until = now_s + ALONE_S


def _is_alone(memory: Known, busy: Collection[str], now_s: float) -> bool:
    """Whether the first job goes on, and the others wait for it."""
    until = memory.alone_until
    return bool(busy) and not memory.loaded and until is not None and now_s < until


def _to_compare(
    memory: Known, tables: Iterable[FollowedTable], now_s: float
) -> list[FollowedTable]:
    """The tables whose comparison is due, the smallest first; those without rows come last."""
    found = (
        one for one in tables
        if one.target in memory.loaded and one.target not in memory.equal
        and memory.later.get(one.target, 0.0) <= now_s
    )  # fmt: skip
    return sorted(found, key=lambda one: (not one.rows, one.rows, one.name))


def _group(left: Sequence[FollowedTable], alone: Collection[str], *, first: bool) -> Iterator[str]:
    if left[0].target in alone:
        yield left[0].target
        return
    rows = 0
    together = [one for one in left if one.target not in alone][:MOST_TARGETS]
    for number, one in enumerate(together):
        rows += one.rows
        if first and number and rows > FIRST_ROWS:
            return
        yield one.target


class Row(NamedTuple):
    """A table as it is shown."""

    name: str
    state: State
    said: str


def rows_of(memory: Known, tables: Sequence[FollowedTable], busy: Collection[str]) -> list[Row]:
    """Each table's state."""
    return [Row(one.name, *_state(memory, one.target, busy)) for one in tables]


def _state(memory: Known, target: str, busy: Collection[str]) -> tuple[State, str]:
    if target in memory.equal:
        at = datetime.fromtimestamp(memory.equal[target], UTC)
        return "equal", f"compared at {at:%Y-%m-%d %H:%M:%S} UTC"
    if target in memory.differs:
        way = f"`binlogd tables verify {quoted_pattern(target)}`"
        return "differs", f"in {counted(memory.differs[target], 'row')}: {way}"
    if target in memory.loaded:
        return "loaded", "is compared"
    if target in busy:
        return "loads", ""
    if target in memory.refused:
        return "refused", memory.refused[target][0]
    return "waits", ""


class Flow(NamedTuple):
    """Rows of all loads: those that are there, those that are expected; None: not known, or (of
    ``left_s``) not yet."""

    done: int
    total: int
    per_s: float | None
    left_s: float | None


def flow_of(
    jobs: Iterable[Mapping[str, Any]],
    memory: Known,
    tables: Sequence[FollowedTable],
    now_s: float,
) -> Flow:
    """Of loads that are done the estimates count, of those that go on what they say."""
    done = sum(one.rows for one in tables if one.target in memory.loaded)
    total, coming, per_s = sum(one.rows for one in tables), 0, 0.0
    for job in jobs:
        if job["state"] in ("running", "waiting") and not memory.loaded >= set(job["targets"]):
            coming += job["progress"]["done"]
            per_s += job["progress"]["per_second"] or 0.0
    if not per_s:
        memory.rows_since = None
        return Flow(done + coming, max(total, done + coming), None, None)
    if memory.rows_since is None:
        memory.rows_since = now_s
    steady = now_s - memory.rows_since >= STEADY_S or coming >= STEADY_PART * total
    left = max(total - done - coming, 0)
    return Flow(done + coming, max(total, done + coming), per_s, left / per_s if steady else None)


class Board(NamedTuple):
    """All that is shown. ``notes``: what is not well, each with the command that leads out."""

    rows: Sequence[Row]
    flow: Flow
    notes: Sequence[str]
    following: str
    seconds: float

    @property
    def equal(self) -> int:
        """How many tables are equal so far."""
        return sum(row.state == "equal" for row in self.rows)


def following(status: Mapping[str, Any]) -> str:
    """How far the stream is behind, in words."""
    found = []
    for one in status["pipelines"]:
        behind = one["lag_messages"]
        fresh = one["freshness_seconds"]
        if behind is not None:
            said = f"{counted(behind, 'message')} behind"
            found.append(said if fresh is None else f"{said}, freshness {fresh:.1f} s")
    return "; ".join(found)


def notes(status: Mapping[str, Any]) -> list[str]:
    """What is not well."""
    return [
        f"{one['subject'] or one['pipeline'] or 'binlogd'}: {one['line']}"
        + (f": {one['command']}" if one["command"] else "")
        for one in status["conditions"]
        if one["level"] == "ill"
    ]


def streams(status: Mapping[str, Any]) -> bool:
    """Whether each collector reads its source's log from a position that is written down.

    Until then a collector that is replaced begins at another one.
    """
    found = status.get("collectors", ())
    return bool(found) and all(
        one["state"] == "running" and reads_log(one["position"]) for one in found
    )
