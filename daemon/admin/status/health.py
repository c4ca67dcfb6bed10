"""What is not well, by a status document: the one truth of status, top, page, probes and events.

Pure. A condition is *ill* where somebody has to act, and *passing* where it
ends by itself or was requested: a start, a catch-up, a pause. All is well where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from actors.contract.figures import bare
from daemon.admin.status import document as doc
from daemon.admin.status.beside_health import of_programs, of_registry
from daemon.admin.status.collector_health import of_collectors
from daemon.admin.status.conditions import UNREADY, Condition, Level, way_out
from daemon.admin.status.process_health import of_process
from daemon.admin.status.stores_health import of_cuts, of_side_work, of_stores
from daemon.admin.status.words import duration, size, some
from daemon.operations.figures import JobFigures, failed_jobs
from settings.counted import counted
from settings.shell import quoted, quoted_pattern
from sources.base.log_figures import OPEN_S

BEHIND_S = 300.0
"""A lag of more than this is a condition. A calm target is behind for seconds."""

AWAY_S = 120.0
"""A broker or a JVM that is away for longer does not come back by itself in a moment."""

FAILING_S = 60.0
"""A write that is tried again for longer is ill."""

FORGOTTEN_S = 8 * 3600.0
"""A pause that outlasts a working day may be forgotten."""


def shown(status: doc.Status) -> list[Condition]:
    """The conditions that a status document has; of an older daemon's, those that it implies.
    Members that a newer one adds are left out."""
    if "conditions" not in status:
        return conditions(status)
    return msgspec.convert(status["conditions"], list[Condition])


def verdict(path: str, status: doc.Status) -> tuple[bool, list[str]]:
    """What ``/healthz`` and ``/readyz`` say: whether all is well, and lines about what is not."""
    kinds = {"stuck"} if path == "/healthz" else UNREADY
    found = [f"{one.who}: {one.line}" for one in shown(status) if one.kind in kinds]
    if not found:
        return True, ["ok"]
    return False, found if path == "/healthz" else [status["state"], *found]


def conditions(status: doc.Facts) -> list[Condition]:
    """What is not well now, what is ill first."""
    found = [*_process(status)]
    for pipeline in status["pipelines"]:
        name = pipeline["pipeline"]
        found += (replace(one, pipeline=name) for one in _pipeline(pipeline))
        found += (replace(one, pipeline=name) for one in _targets(pipeline, status))
    found += _pauses_elsewhere(status)
    found += _jobs(status["jobs"])
    found += of_collectors(status.get("collectors", []), AWAY_S)
    found += of_process(status)
    return sorted(found, key=lambda one: one.level != "ill")


# The whole process.


def _process(status: doc.Facts) -> Iterator[Condition]:
    for silent in status["silent"]:
        if silent["stuck"]:
            line = f"has not answered for {duration(silent['seconds'])}"
            yield Condition("stuck", line, subject=silent["actor"], seconds=silent["seconds"])
    if status["state"] != "running":
        yield Condition(status["state"], f"is {status['state']}", "passing")
    yield from of_programs(status, AWAY_S)


def _after(bound_s: float, seconds: float) -> Level:
    """Passing at first, ill once it has lasted."""
    return "ill" if seconds > bound_s else "passing"


def _jobs(jobs: Iterable[JobFigures]) -> Iterator[Condition]:
    for job in failed_jobs(jobs):
        line = job["message"] or f"the {job['kind']} has {job['state']}"
        of, targets = (job["pipeline"], job["job"]), tuple(job["targets"])
        if job["state"] == "refused":  # it is not recorded
            command = f"binlogd tables load {quoted_pattern(job['targets'][0])}"
            yield Condition("load_refused", line, "ill", *of, command, targets=targets)
        else:
            command = f"binlogd jobs show {quoted(job['job'])}"
            yield Condition("job_failed", line, "ill", *of, command, targets=targets)


def _pauses_elsewhere(status: doc.Facts) -> Iterator[Condition]:
    """Of targets that no pipeline shows."""
    shown_ = {t["target"] for p in status["pipelines"] for t in p["targets"]}
    for target, pause in status["paused_targets"].items():
        if target not in shown_:
            one = _pause("targets_paused", target, pause)
            yield replace(one, subject=target, targets=(target,))


def _pause(kind: str, name: str, pause: doc.Paused) -> Condition:
    said = f" ({pause['reason']})" if pause["reason"] else ""
    line = f"is paused for {duration(pause['seconds'])}{said}"
    level = _after(FORGOTTEN_S, pause["seconds"])
    command = f"binlogd resume {quoted(name)}"
    return Condition(kind, line, level, command=command, seconds=pause["seconds"])


# A pipeline.


def _pipeline(p: doc.Pipeline) -> Iterator[Condition]:
    if p["failure"]:
        command = f"binlogd resume {quoted(p['pipeline'])}"
        yield Condition("pipeline_failed", f"failed: {p['failure']}", command=command)
    elif p["stage"] != "running":
        yield Condition("not_running", f"is {p['stage']}", "passing")
    elif not p["assigned"]:
        yield Condition("unassigned", "no partitions are assigned yet", "passing")
    if (pause := p["paused_by_a_person"]) is not None:
        yield _pause("paused", p["pipeline"], pause)
    yield from _reading(p)
    yield from _flow(p, paused=pause is not None)
    yield from of_stores(p)
    yield from of_cuts(p, AWAY_S)
    yield from of_side_work(p, AWAY_S)
    for target, what in p["rows_may_differ"].items():
        command = f"binlogd tables verify {quoted_pattern(target)} --repair"
        line = f"stored rows may differ from the source's: {what}"
        yield Condition("rows_may_differ", line, subject=target, command=command, targets=(target,))


def _reading(p: doc.Pipeline) -> Iterator[Condition]:
    """What the broker does not give."""
    if (away_s := p["broker_unreachable_seconds"]) is not None:
        line = f"no broker is connected for {duration(away_s)}"
        yield Condition("broker_unreachable", line, _after(AWAY_S, away_s), seconds=away_s)
    if (unknown_s := p["log_ends_unknown_seconds"]) is not None:
        line = f"the logs' ends are unknown for {duration(unknown_s)}: {p['log_ends_error']}"
        yield Condition("log_ends_unknown", line, _after(AWAY_S, unknown_s), seconds=unknown_s)
    yield from of_registry(p, AWAY_S)
    for part in p["partitions"]:
        open_ = part["open_transaction"]
        if open_ is not None and open_["seconds"] >= OPEN_S:
            line = (
                f"a transaction is open at {open_['offset']} for {duration(open_['seconds'])}: "
                f"{counted(open_['messages'], 'record')} behind it can't be read before it ends"
            )
            seconds, source = open_["seconds"], part["source"]
            yield Condition("open_transaction", line, "passing", subject=source, seconds=seconds)
    for part in p["partitions"]:
        left, kept = part["retention_left_seconds"], part["retention_seconds"]
        if left is not None and kept and left < kept / 2:
            line = f"{part['source']}: the broker may remove what is not applied yet "
            line += f"in {duration(left)}" if left > 0 else "already"
            yield Condition("retention", line)
            return


def _flow(p: doc.Pipeline, *, paused: bool) -> Iterator[Condition]:
    """What stands still on its way, or does not fit."""
    for topic, waiting in p["formats_awaited"].items():
        waits = counted(waiting, "message waits", "messages wait")
        line = f"its format is not detected yet, {waits} for it"
        yield Condition("format_awaited", line, "passing", subject=topic)
    if gone := p["topics_gone"]:
        line = f"{some(gone, p['topics_gone_count'])}: not there any more; "
        line += "exclude_topics takes what is meant to be gone"
        yield Condition("topics_gone", line)
    if p["tables_left_out"]:
        messages, tables = p["messages_left_out"], counted(p["tables_left_out"], "table")
        line = f"{counted(messages, 'message')} of {tables} left out for their names"
        yield Condition("tables_left_out", line, command="binlogd tables list")
    if p["held"]:
        line = "the memory or disk budget is used up: nothing is read until there is room"
        yield Condition("held", line, "passing")
    elif p["paused"] and p["stage"] == "running" and not paused:
        yield Condition("full", "reading waits until a processor has room", "passing")
    if not paused and (p["lag_seconds"] or 0.0) > BEHIND_S:
        holders = sorted({part["held_by"]["target"] for part in p["partitions"] if part["held_by"]})
        open_ = [part["source"] for part in p["partitions"] if part["open_transaction"]]
        line = f"is {duration(p['lag_seconds'])} behind"
        line += f", held by {some(holders)}" if holders else ""
        line += f", behind an open transaction in {some(open_)}" if open_ else ""
        yield Condition("behind", line, "passing")


# Targets.


def _targets(p: doc.Pipeline, status: doc.Facts) -> Iterator[Condition]:
    """Those of each target, but for its own lag; what one sink does to many is one condition."""
    of_sinks: dict[tuple[str, str], list[Condition]] = {}
    for target in p["targets"]:
        pause = status["paused_targets"].get(target["target"])
        for one in of_target(p, target, pause):
            if one.kind in ("away", "targets_failing"):
                sink = target["target"].partition(".")[0]
                of_sinks.setdefault((one.kind, sink), []).append(one)
            elif one.kind not in ("target_behind", "rows_may_differ"):
                yield one
    for (_, sink), several in of_sinks.items():
        yield _together(sink, several)


def _together(sink: str, several: list[Condition]) -> Condition:
    first = min(several, key=lambda one: one.level != "ill")
    targets = tuple(name for one in several for name in one.targets)
    line = f"{some(targets)}: {first.line}"
    seconds = max((one.seconds for one in several if one.seconds is not None), default=None)
    again = (one.retry_seconds for one in several if one.retry_seconds is not None)
    first = replace(first, seconds=seconds, retry_seconds=min(again, default=None))
    return replace(first, subject=sink, line=line, targets=targets)


def of_target(p: doc.Pipeline, t: doc.Target, pause: doc.Paused | None) -> Iterator[Condition]:
    """What is not well with one target of a pipeline, the worst first. ``pause``: by a person."""
    name = t["target"]
    of: dict[str, Any] = {"pipeline": p["pipeline"], "subject": name, "targets": (name,)}
    for one in (*_kept(t, pause), *_writes(p, t), *_rows(t)):
        yield replace(one, **of)
    if pause is not None:
        yield replace(_pause("targets_paused", name, pause), **of)
    elif (t["lag_seconds"] or 0.0) > BEHIND_S:
        line = f"is {duration(t['lag_seconds'])} behind"
        yield Condition("target_behind", line, "passing", **of)


def _kept(t: doc.Target, pause: doc.Paused | None) -> Iterator[Condition]:
    """Its messages are spilled: in quarantine, or because its sink is away."""
    quarantine, away = t["quarantine"], t["away"]
    first, command = way_out(t["target"], "" if quarantine is None else quarantine["reason"])
    if quarantine is not None:
        why = bare(t["target"], quarantine["reason"])
        line = f"in quarantine: {why} ({_spilled(quarantine)}){first}"
        level: Level = "passing" if quarantine["releasing"] else "ill"
        yield Condition("quarantine", line, level, command=command)
    if away is not None and pause is None:
        then = "is catching up" if away["catching_up"] else "goes on once the sink answers"
        since = "" if away["seconds"] is None else f" for {duration(away['seconds'])}"
        line = f"away{since}: {bare(t['target'], away['reason'])} ({_spilled(away)}; it {then})"
        level = "passing" if away["catching_up"] else "ill"
        yield Condition("away", line, level, seconds=away["seconds"])
    if quarantine is not None and quarantine["full"]:
        line = "its spill is full, and its pipeline waits for it"
        yield Condition("spill_full", line, command=command)
    elif away is not None and away["full"]:
        line = "its spill is full, and its pipeline waits until its sink answers"
        yield Condition("spill_full", line)


def _spilled(kept: doc.Kept) -> str:
    said = f"{counted(kept['messages'], 'message')}, {size(kept['bytes'])} kept"
    said += ", no room for more" if kept["full"] else ""
    return said + (", being released" if kept.get("releasing") else "")


def _writes(p: doc.Pipeline, t: doc.Target) -> Iterator[Condition]:
    error, write = t["last_error"], t["write"]
    if t["quarantine"] is not None or t["away"] is not None or p["failure"]:
        return
    if error and error["lasting"]:
        seconds = write["age_seconds"] if write else 0.0
        why = bare(t["target"], error["reason"])
        again = write["retry_in_seconds"] if write else None
        level = _after(FAILING_S, seconds)
        yield Condition("targets_failing", why, level, seconds=seconds, retry_seconds=again)
    elif t["phase"] == "stopped":
        yield Condition("stopped", "has stopped")


def _rows(t: doc.Target) -> Iterator[Condition]:
    if t["rows_may_differ"]:
        line = f"stored rows may differ from the source's: {t['rows_may_differ']}"
        command = f"binlogd tables verify {quoted_pattern(t['target'])} --repair"
        yield Condition("rows_may_differ", line, command=command)
