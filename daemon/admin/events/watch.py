"""Watches the status document, and reports what begins and ends: to a file, to a webhook."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from actors.contract.figures import bare
from actors.runtime.periodic import Periodic
from changes.model.printable import reason_of
from daemon.admin.events.delivery import Delivery
from daemon.config.sections import EventsSection

# What is not well, by a status document: one condition for each cause and what it is of. Pure.


class Condition(NamedTuple):
    """``pipeline`` is empty where it is of the whole process, ``subject`` (a target, a job) where
    it is of the whole pipeline."""

    kind: str
    pipeline: str = ""
    subject: str = ""


BEHIND_S = 600.0
AWAY_S = 120.0
FAILING_S = 60.0
"""A write that is retried is no news before."""

FORGOTTEN_S = 8 * 3600.0
"""A pause that outlasts a working day."""

LASTS_S = {"held": 120.0}
"""How long a condition is there before it is news: room that is used up for a moment is not."""


def conditions(status: Mapping[str, Any]) -> dict[Condition, str]:
    """What is not well now, each with a line of text."""
    found = {Condition(kind): text for kind, text in _process(status)}
    paused = status["paused_targets"]
    for pipeline in status["pipelines"]:
        name = pipeline["pipeline"]
        found |= {Condition(kind, name): text for kind, text in _pipeline(pipeline)}
        for target in pipeline["targets"]:
            subject = target["target"]
            pause = paused.get(subject)
            found |= {Condition(kind, name, subject): t for kind, t in _target(target, pause)}
        for subject, text in pipeline["rows_may_differ"].items():
            found[Condition("rows_may_differ", name, subject)] = text
    for job in status["jobs"]:
        if job["state"] == "failed":
            key = Condition("job_failed", job["pipeline"], job["job"])
            found[key] = job["message"] or "it has failed"
    return found


def _process(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    stuck = [silent["actor"] for silent in status["silent"] if silent["stuck"]]
    if stuck:
        yield "stuck", f"no answer from {', '.join(stuck)}"
    session = status["spark"]
    if session and (session["down_seconds"] or 0) > AWAY_S:
        yield "jvm_down", f"no JVM for {session['down_seconds']:.0f} s"


def _pipeline(p: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if p["failure"]:
        yield "pipeline_failed", p["failure"]
    if (p["broker_unreachable_seconds"] or 0) > AWAY_S:
        yield "broker_unreachable", f"for {p['broker_unreachable_seconds']:.0f} s"
    pause = p["paused_by_a_person"]
    if pause is not None and pause["seconds"] > FORGOTTEN_S:
        yield "paused", f"for {pause['seconds'] / 3600:.0f} h: binlogd resume {p['pipeline']}"
    if pause is None and (p["lag_seconds"] or 0) > BEHIND_S:
        holders = {q["held_by"]["target"] for q in p["partitions"] if q["held_by"]}
        held = f", held by {', '.join(sorted(holders))}" if holders else ""
        open_ = [q["source"] for q in p["partitions"] if q["open_transaction"]]
        waits = f", behind an open transaction in {', '.join(open_)}" if open_ else ""
        yield "behind", f"{p['lag_seconds']:.0f} s{held}{waits}"
    if p["held"]:
        yield "held", "the memory or disk budget is used up: it reads nothing until there is room"
    if p["offset_file"]["error"]:
        yield "offset_store_failing", p["offset_file"]["error"]
    if p["dead_letters"]["error"]:
        yield "dead_letter_store_failing", p["dead_letters"]["error"]
    if p["dead_letters"]["stored"]:
        yield "dead_letters", "since the start; binlogd dead-letters list"
    for part in p["partitions"]:
        left, kept = part["retention_left_seconds"], part["retention_seconds"]
        if left is not None and kept and left < kept / 2:
            yield "retention", f"{part['source']}: {left:.0f} s are left of {kept:.0f}"
            return


def _target(t: Mapping[str, Any], pause: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """``pause``: by a person, which is no news before it is forgotten."""
    if pause is not None and pause["seconds"] > FORGOTTEN_S:
        hours = pause["seconds"] / 3600
        yield "targets_paused", f"for {hours:.0f} h: binlogd resume {t['target']}"
    quarantine, away, error = t["quarantine"], t["away"], t["last_error"]
    if quarantine:
        yield "quarantine", bare(t["target"], quarantine["reason"])
    if away and pause is None:
        yield "away", bare(t["target"], away["reason"])
    if (quarantine and quarantine["full"]) or (away and away["full"]):
        yield "spill_full", "its spill is full, and its pipeline waits for it"
    late = t["write"] and t["write"]["age_seconds"] > FAILING_S
    if not (quarantine or away) and error and error["lasting"] and late:
        yield "targets_failing", bare(t["target"], error["reason"])


EVERY_S = 10.0
"""Between two looks."""

MOST_BYTES = 16 << 20
"""Of the file: a longer one becomes ``FILE.1`` in place of the one before it."""


class EventWatch:
    """A thread that runs with the daemon. What is not well at its end stays begun: the next run
    reports it again."""

    def __init__(
        self,
        section: EventsSection,
        run: str,
        status: Callable[[], Mapping[str, Any]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = Path(section.file) if section.file else None
        self.delivery = Delivery(section.webhook) if section.webhook else None
        self._run = run
        self._status = status
        self._clock = clock
        self._open: dict[Condition, str] = {}
        self._since: dict[Condition, float] = {}
        self._rounds = Periodic("events", self.look, EVERY_S, "events", "events_not_looked_for")
        self._log = structlog.get_logger().bind(actor="events")

    def start(self) -> None:
        """Start, if events go anywhere."""
        if self.delivery is not None:
            self.delivery.start()
        if self._file is not None or self.delivery is not None:
            self._rounds.start()

    def close(self) -> None:
        """Stop. What waits for a webhook is not awaited."""
        self._rounds.close()
        if self.delivery is not None:
            self.delivery.close()

    def look(self) -> None:
        """Look once, and report. On the thread."""
        now = self._lasting(conditions(self._status()))
        for key, text in now.items():
            if key not in self._open:
                self._tell("begun", key, text)
        for key, text in self._open.items():
            if key not in now:
                self._tell("ended", key, text)
        self._open = now

    def _lasting(self, found: Mapping[Condition, str]) -> dict[Condition, str]:
        """Those that are there for as long as makes them news."""
        at = self._clock()
        self._since = {key: self._since.get(key, at) for key in found}
        return {
            key: text
            for key, text in found.items()
            if at - self._since[key] >= LASTS_S.get(key.kind, 0.0)
        }

    def _tell(self, event: str, key: Condition, text: str) -> None:
        made = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            "kind": key.kind,
            "pipeline": key.pipeline or None,
            "subject": key.subject or None,
            "text": text,
            "run": self._run,
        }
        if self._file is not None:
            try:
                _append(self._file, json.dumps(made).encode() + b"\n")
            except OSError as error:
                fields = {"kind": key.kind, "pipeline": key.pipeline, "text": text}
                self._log.error("event_not_written", reason=reason_of(error), **fields)
        if self.delivery is not None:
            self.delivery.add(made)


def _append(path: Path, line: bytes) -> None:
    """Write a whole line. Raises OSError, at once where a pipe has no reader, or one that does not
    read: the webhook does not wait for it."""
    _make_room(path)
    way = os.O_RDWR if path.is_file() else os.O_WRONLY  # read: whether a full disk cut a line short
    with os.fdopen(
        os.open(path, way | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666),
        "wb", buffering=0,
    ) as file:  # fmt: skip
        if way == os.O_RDWR and (size := os.fstat(file.fileno()).st_size):
            line = (b"" if os.pread(file.fileno(), 1, size - 1) == b"\n" else b"\n") + line
        written = file.write(line)
        if written != len(line):
            raise OSError(f"{written or 0} of {len(line)} bytes are written")


def _make_room(path: Path) -> None:
    """Raises OSError. A pipe or a device has no size to bound."""
    if path.is_file() and path.stat().st_size >= MOST_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
