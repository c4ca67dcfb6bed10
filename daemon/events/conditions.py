"""What is not well, by a status document: one condition for a cause in a pipeline. Pure.

Bounds are those of the alerts for Prometheus (``deploy/prometheus/``), without their waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Condition = tuple[str, str]
"""Its kind, and the pipeline; empty where it is of the whole process."""

BEHIND_S = 600.0
AWAY_S = 120.0
FAILING_S = 60.0
"""A write that is retried is no news before."""

FORGOTTEN_S = 8 * 3600.0
"""A pause that outlasts a working day."""

NAMED = 3
"""Targets that a text names."""


def conditions(status: Mapping[str, Any]) -> dict[Condition, str]:
    """What is not well now, each with a line of text."""
    found = {(kind, ""): text for kind, text in _process(status)}
    paused = status["paused_targets"]
    for pipeline in status["pipelines"]:
        name = pipeline["pipeline"]
        found |= {(kind, name): text for kind, text in _pipeline(pipeline)}
        found |= {(kind, name): text for kind, text in _targets(pipeline, paused)}
    for job in status["jobs"]:
        if job["state"] == "failed":
            key = ("job_failed", job["pipeline"])
            found[key] = f"{found[key]}; {job['job']}" if key in found else f"{job['job']}"
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
        yield "behind", f"{p['lag_seconds']:.0f} s"
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


def _targets(p: Mapping[str, Any], paused: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """``paused``: those that a person has paused, which are no news before they are forgotten."""
    forgotten = [
        t["target"]
        for t in p["targets"]
        if t["target"] in paused and paused[t["target"]]["seconds"] > FORGOTTEN_S
    ]
    if forgotten:
        yield "targets_paused", _named(forgotten)
    shut = [t["target"] for t in p["targets"] if t["quarantine"]]
    if shut:
        yield "quarantine", _named(shut)
    away = [t["target"] for t in p["targets"] if t["away"] and t["target"] not in paused]
    if away:
        yield "away", _named(away)
    failing = [
        t["target"]
        for t in p["targets"]
        if not (t["quarantine"] or t["away"])
        and t["last_error"]
        and t["last_error"]["lasting"]
        and t["write"]
        and t["write"]["age_seconds"] > FAILING_S
    ]
    if failing:
        yield "targets_failing", _named(failing)
    if p["rows_may_differ"]:
        yield "rows_may_differ", _named([*p["rows_may_differ"]])


def _named(targets: Sequence[str]) -> str:
    more = f" and {len(targets) - NAMED:,} more" if len(targets) > NAMED else ""
    return ", ".join(targets[:NAMED]) + more
