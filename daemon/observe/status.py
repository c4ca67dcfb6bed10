"""Builds the status document from the actors' answers. Pure; times are arguments.

Its members are described in ``docs/operations.md``. ``/metrics`` shows the same document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pykka

from actors.contract.addresses import Address
from actors.contract.figures import (
    CommitterFigures,
    DeadLetterFigures,
    ErrorFigures,
    FetcherFigures,
    LaneFigures,
    ProcessorFigures,
    QuarantineFigures,
    TargetFigures,
)
from daemon.kafka.log_ends import LogEndFigures
from daemon.observe.observer import SUPERVISOR, Answers
from daemon.observe.status_partitions import age, lag_of, partitions_of
from sparkwriter.session.keeper import SessionFigures

SCHEMA = 1
"""Version of the document: new members may be added, existing ones keep their meaning."""


@dataclass(frozen=True, slots=True)
class LifeFigures:
    """The supervisor's answer: each pipeline's stage, and why it failed."""

    stages: Mapping[str, str]
    failures: Mapping[str, str]
    stopping: bool


@dataclass(frozen=True, slots=True)
class AskLife:
    """A query to the supervisor, which is no actor: it sets the answer, a ``LifeFigures``."""

    answer: pykka.Future[object]


@dataclass(frozen=True, slots=True)
class About:
    """What does not change while the process runs."""

    run: str
    pid: int
    groups: Mapping[str, str]
    processors: int
    stuck_after_s: float


def document(
    about: About,
    answers: Answers,
    now_ms: int,
    uptime_s: float,
    session: SessionFigures | None = None,
    log_ends: Mapping[str, LogEndFigures] | None = None,
) -> dict[str, Any]:
    """The whole status. ``now_ms`` is Unix time in milliseconds. ``session`` None: no sink needs
    one. A pipeline without ``log_ends`` has unknown ends."""
    life = answers.replies.get(SUPERVISOR)
    life = life if isinstance(life, LifeFigures) else None
    pipelines = [
        _pipeline(name, about, answers, life, (log_ends or {}).get(name, LogEndFigures()), now_ms)
        for name in sorted(about.groups)
    ]
    state = "starting" if life is None else "stopping" if life.stopping else "running"
    ready = (
        state == "running"
        and all(
            pipeline["stage"] == "running"
            and pipeline["assigned"]
            and pipeline["log_ends_unknown_seconds"] is None
            for pipeline in pipelines
        )
        and (session is None or session.pid is not None)
    )
    stuck = {a: s for a, s in answers.silent.items() if s >= about.stuck_after_s}
    return {
        "schema": SCHEMA,
        "state": state,
        "ready": ready,
        "healthy": not stuck,
        "run": about.run,
        "pid": about.pid,
        "uptime_seconds": round(uptime_s, 3),
        "time_ms": now_ms,
        "silent": [
            {"actor": str(address), "seconds": round(seconds, 3), "stuck": address in stuck}
            for address, seconds in sorted(answers.silent.items())
            if seconds > 0
        ],
        "spark": None if session is None else _session(session),
        "pipelines": pipelines,
    }


def _session(session: SessionFigures) -> dict[str, Any]:
    return {
        "pid": session.pid,
        "age_seconds": None if session.age_s is None else round(session.age_s, 3),
        "down_seconds": None if session.down_s is None else round(session.down_s, 3),
        "rebuilt": session.rebuilt,
        "last_end": session.last_end,
    }


def _pipeline(
    name: str,
    about: About,
    answers: Answers,
    life: LifeFigures | None,
    log_ends: LogEndFigures,
    now_ms: int,
) -> dict[str, Any]:
    fetcher = answers.replies.get(Address(name, "fetcher"))
    fetcher = fetcher if isinstance(fetcher, FetcherFigures) else None
    committer = answers.replies.get(Address(name, "committer"))
    committer = committer if isinstance(committer, CommitterFigures) else None
    processors = [
        answers.replies.get(Address(name, "processor", n)) for n in range(about.processors)
    ]
    held = [p for p in processors if isinstance(p, ProcessorFigures)]
    letters = answers.replies.get(Address(name, "dead-letters"))
    letters = letters if isinstance(letters, DeadLetterFigures) else None
    partitions = partitions_of(log_ends, committer, now_ms)
    ends = {p["source"]: p["log_end"] for p in partitions}
    lanes = _lanes(committer)
    figures = sorted((t for p in held for t in p.targets), key=lambda t: t.target)
    doubted = _doubted(committer, figures)
    targets = [
        _target(each, lanes.get(each.target, []), committer, ends, now_ms)
        | {"rows_may_differ": doubted.get(each.target)}
        for each in figures
    ]
    applied = [p["freshness_seconds"] for p in partitions if p["freshness_seconds"] is not None]
    stage = life.stages.get(name, "starting") if life else "starting"
    assigned = fetcher is not None and fetcher.assigned
    return {
        "pipeline": name,
        "group": about.groups[name],
        "stage": stage,
        "failure": life.failures.get(name) if life else None,
        "assigned": assigned,
        "paused": fetcher is not None and fetcher.paused,
        "held": any(p.held for p in held),
        "broker_unreachable_seconds": fetcher.unreachable_s if fetcher else None,
        "log_ends_unknown_seconds": log_ends.unknown_s,
        "log_ends_error": log_ends.error,
        **lag_of(partitions, stage == "running" and assigned and log_ends.unknown_s is None),
        "freshness_seconds": max(applied, default=None),
        "messages_read": fetcher.messages if fetcher else 0,
        "messages_dropped": (fetcher.dropped if fetcher else 0) + _sum(targets, "messages_dropped"),
        "messages_sent_again": fetcher.repeated if fetcher else 0,
        "messages_passed_over": fetcher.passed_over if fetcher else 0,
        "messages_left_out": fetcher.left_out if fetcher else 0,
        "tables_left_out": fetcher.left_out_tables if fetcher else 0,
        "stale_acknowledgements": committer.stale if committer else 0,
        "parked_bytes": fetcher.parked_bytes if fetcher else 0,
        "formats": dict(sorted(fetcher.formats.items())) if fetcher else {},
        "formats_awaited": dict(sorted(fetcher.formats_awaited.items())) if fetcher else {},
        **{key: _sum(targets, key) for key in _SUMMED},
        "writes_in_flight": sum(t["write"] is not None for t in targets),
        "oldest_write_seconds": max(
            (t["write"]["age_seconds"] for t in targets if t["write"]), default=None
        ),
        "offset_file": {
            "saved_seconds_ago": committer.saved_age_s if committer else None,
            "error": committer.save_error if committer else None,
        },
        "dead_letters": {
            "stored": letters.stored if letters else 0,
            "waiting": letters.waiting if letters else 0,
            "error": letters.error if letters else None,
        },
        "last_error": _last_error(targets),
        "rows_may_differ": doubted,
        "partitions": partitions,
        "targets": targets,
    }


_SUMMED = (
    "messages_replayed", "rows_read", "rows_written", "rows_stored", "values_nulled",
    "buffered_messages", "buffered_bytes", "staged_files", "staged_bytes",
)  # fmt: skip


def _doubted(
    committer: CommitterFigures | None, targets: Iterable[TargetFigures]
) -> dict[str, str]:
    """Why stored rows may differ, by target: as recorded, or as an open target shows it."""
    found = dict(committer.rows_may_differ) if committer else {}
    for target in targets:
        if target.rows_may_differ is not None:
            found[target.target] = target.rows_may_differ
        elif target.hwms:  # it was checked
            found.pop(target.target, None)
    return dict(sorted(found.items()))


class _Pending(NamedTuple):
    """A lane with pending changes; ``place`` 0 holds its partition's frontier."""

    source: str
    place: int
    lane: LaneFigures


def _lanes(committer: CommitterFigures | None) -> dict[str, list[_Pending]]:
    """The pending lanes by target, built in one pass because there may be thousands."""
    found: dict[str, list[_Pending]] = {}
    for source, partition in committer.partitions.items() if committer else ():
        for place, lane in enumerate(partition.lanes):
            found.setdefault(lane.target, []).append(_Pending(str(source), place, lane))
    return found


def _target(
    figures: TargetFigures,
    pending: Sequence[_Pending],
    committer: CommitterFigures | None,
    ends: Mapping[str, int | None],
    now_ms: int,
) -> dict[str, Any]:
    """Without pending changes there is no lag, wherever the log ends."""
    behind = [(ends[source], lane.first) for source, _, lane in pending]
    known = [end - first for end, first in behind if end is not None]
    lag = sum(known) if len(known) == len(behind) else None
    oldest = min((p.lane.time_ms for p in pending if p.lane.time_ms is not None), default=None)
    applied = committer.applied_ms.get(figures.target) if committer else None
    return {
        "target": figures.target,
        "phase": figures.phase,
        "lag_messages": lag,
        "lag_seconds": age(oldest, now_ms) if pending else 0.0,
        "freshness_seconds": age(applied, now_ms),
        "holds_frontier_of": [source for source, place, _ in pending if place == 0],
        "waiting_seconds": figures.waiting_s,
        "write": None if figures.write is None else {
            "rows": figures.write.rows,
            "attempt": figures.write.attempt,
            "age_seconds": round(figures.write.age_s, 3),
            "retry_in_seconds": figures.write.retry_in_s,
        },
        "last_error": _error(figures.error),
        "high_water_marks": {str(s): hwm for s, hwm in sorted(figures.hwms.items())},
        "quarantine": _quarantine(figures.quarantine),
        **{
            key: getattr(figures, key)
            for key in (
                *_SUMMED, "messages_read", "messages_dropped", "dead_letters",
                "ddl_not_understood",
            )
        },
    }  # fmt: skip


def _quarantine(figures: QuarantineFigures | None) -> dict[str, Any] | None:
    if figures is None:
        return None
    return {
        "reason": figures.reason,
        "messages": figures.messages,
        "bytes": figures.bytes,
        "releasing": figures.releasing,
        "full": figures.full,
        "lanes": {str(s): list(figures.lanes[s]) for s in sorted(figures.lanes)},
    }


def _error(error: ErrorFigures | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {
        "reason": error.reason,
        "seconds_ago": None if error.age_s is None else round(error.age_s, 3),
        "lasting": error.lasting,
    }


def _last_error(targets: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The newest of the targets' last errors. A lasting one goes before one that is over."""
    errors = [{"target": t["target"], **t["last_error"]} for t in targets if t["last_error"]]
    newest = (error for error in errors if error["seconds_ago"] is not None)
    found = min(newest, key=lambda e: (not e["lasting"], e["seconds_ago"]), default=None)
    # What has lasted since before this run goes before what is over.
    lasting = found is not None and found["lasting"]
    return found if lasting else next((e for e in errors if e["lasting"]), found)


def _sum(items: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(item[key] for item in items)
