"""What is not well, by a status document: one condition for each cause and what it is of. Pure.

Bounds are those of the alerts for Prometheus (``deploy/prometheus/``); ``LASTS_S`` are their waits
where the document knows no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from actors.contract.figures import bare


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
