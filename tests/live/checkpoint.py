"""A checkpoint: all that the source has is applied, or said not to be; then table by table."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tests.live.comparison import Found, differences
from tests.live.daemon import Daemon
from tests.live.readers import Reader
from tests.live.schema import Name
from tests.live.sinks import Stored
from tests.live.sources import MARKER
from tests.live.told import Told
from tests.live.topic import Place, Topic

WITHIN_S = 240.0
"""For all of a stretch to be read and applied; seconds, but on a busy machine."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of one table: lines where it differs, and what was said of it."""

    name: Name
    lines: tuple[str, ...]
    told: str

    @property
    def silent(self) -> bool:
        """It differs, and nobody said so."""
        return bool(self.lines) and not self.told


def settle(daemon: Daemon, reader: Reader, pipeline: str, topic: Topic, number: int) -> str:
    """Wait until the marker's row is applied; why that won't be, if it won't.

    A pipeline that has stopped by name is one reason, a connector that has failed another; one that
    does not go on and says nothing is a third, and begins with STUCK.
    """
    deadline, pause = time.monotonic() + WITHIN_S, threading.Event()
    restarts, ends = RESTARTS, None
    while time.monotonic() < deadline:
        if ends is None:
            ends = topic.find(MARKER, number)
        if ends is not None and _is_applied(daemon.frontiers(pipeline), ends):
            return ""
        if stopped := daemon.told(pipeline).stopped:
            return f"{STOPPED}: {stopped}"
        daemon.check()
        if ends is None and (failure := reader.failure(pipeline)):
            if restarts == 0:
                return f"its reader has ended: {cause(failure)}"
            restarts -= 1
            reader.start_again(pipeline)
        pause.wait(0.2)
    where = "the marker is not in the topic" if ends is None else f"{dict(ends)} is not applied"
    there = dict(daemon.frontiers(pipeline))
    return f"{STUCK}: {where} after {WITHIN_S:.0f} s, the frontier is {there}"


def _is_applied(frontiers: Mapping[Place, int], ends: Mapping[Place, int]) -> bool:
    return all(frontiers.get(place, 0) >= end for place, end in ends.items())


BESIDE = ("__dropped_", "__binlogd_tombstones")
"""In the names of what is no copy: what a dropped table, made again, has left, and deleted keys."""
STUCK = "STUCK"
STOPPED = "the pipeline has stopped"
RESTARTS = 2
"""Of a connector, for a database that was away; what ends it again is no outage."""


def cause(trace: str) -> str:
    """The line of a Java trace that names the statement which was not read, else the innermost
    cause, else what was thrown."""
    causes = [line for line in trace.splitlines() if line.startswith("Caused by: ")]
    unread = [line for line in causes if "statement" in line]
    return (unread or causes or trace.splitlines()[:1])[-1][:900]


def verdicts(
    source: Mapping[Name, Found],
    there: Mapping[Name, Stored],
    told: Told,
    keeps: bool,
    own: Collection[Name] = (),
) -> list[Verdict]:
    """Compare every table that the source or the sink has. ``keeps``: see ``differences``.

    ``own``: targets that somebody else made, which may have columns of their own, and stay where
    they were never written.
    """
    found = []
    for name in sorted(source.keys() | there.keys()):
        if any(word in name[1] for word in BESIDE):
            continue
        stored = there.get(name)
        if name in own and name not in source and stored is not None and not stored.rows:
            continue
        if name not in source:
            lines = ["the source has no such table"]
        else:
            rows, columns = (None, ()) if stored is None else (stored.rows, stored.columns)
            lines = differences(source[name], rows, columns, keeps or name in own)
        found.append(Verdict(name, tuple(lines), told.about(name)))
    return found
