"""Jobs as members of the status document, and as ``binlogd jobs list --json`` prints them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec

from daemon.operations.engine.record import Job, JobRequest
from settings.shell import quoted_pattern

REFUSED = "refused"
"""Of a load that is not recorded, because its plan is refused."""

UNASKED = "unasked:"
"""Before its target: the name of a load that is not recorded."""

DUE = "due"
"""Of a load that is not recorded, because no daemon runs."""


@dataclass(frozen=True, slots=True)
class LoadRefused:
    """A load that is due and was refused by its plan, or can't be planned now: why."""

    pipeline: str
    target: str
    origin: str
    why: str
    since_ms: int | None


class ProgressFigures(TypedDict):
    """How far a job is."""

    done: int
    total: int | None
    unit: str
    ratio: float | None
    per_second: float | None
    eta_seconds: float | None


class JobFigures(TypedDict):
    """One job, as ``jobs list --json`` prints it. ``partition``: the condition of the rows that it
    is of; None: of all of its targets. ``between``: the targets that its own are compared with;
    None: with their source."""

    job: str
    kind: str
    pipeline: str
    targets: list[str]
    partition: str | None
    between: list[str] | None
    state: str
    asked: str | None
    message: str
    progress: ProgressFigures
    attempts: int
    origin: str
    created_ms: int | None
    started_ms: int | None
    changed_ms: int | None
    ended_ms: int | None
    result: dict[str, Any]


def figures_of(job: Job) -> JobFigures:
    """What ``docs/jobs.md`` names. Seconds, Unix milliseconds, JSON."""
    wanted, progress = job.wanted, job.progress
    ratio = progress.ratio
    return {
        "job": job.id,
        "kind": wanted.kind,
        "pipeline": wanted.pipeline,
        "targets": list(wanted.targets),
        "partition": wanted.params.get("partition"),
        "between": _others(wanted.params.get("between")),
        "state": job.state.value,
        "asked": job.wish or None,
        "message": job.message,
        "progress": {
            "done": progress.done,
            "total": progress.total,
            "unit": progress.unit,
            "ratio": None if ratio is None else round(ratio, 4),
            "per_second": progress.rate,
            "eta_seconds": None if job.state.is_final else progress.eta_s,
        },
        "attempts": job.attempts,
        "origin": wanted.origin,
        "created_ms": job.created_ms,
        "started_ms": job.started_ms,
        "changed_ms": job.changed_ms,
        "ended_ms": job.ended_ms,
        "result": {name: value for name, value in job.result.items() if name != "tables"},
    }


def failed_jobs(jobs: Iterable[JobFigures]) -> list[JobFigures]:
    """Those that failed, or are refused, and that nobody has begun again since: a later job of the
    kind with all of its targets, which goes on or is done, makes good what the former lacks. One of
    a partition makes good only one of the same."""
    jobs = list(jobs)
    good = [job for job in jobs if job["state"] not in ("failed", "cancelled", REFUSED)]
    return [
        job
        for job in jobs
        if job["state"] in ("failed", REFUSED) and not any(_makes_good(job, one) for one in good)
    ]


def _makes_good(failed: JobFigures, other: JobFigures) -> bool:
    same = (failed["kind"], failed["pipeline"]) == (other["kind"], other["pipeline"])
    begun, again = failed["created_ms"], other["created_ms"]
    later = begun is not None and again is not None and again > begun
    rows = other["partition"] in (None, failed["partition"])
    return same and later and rows and set(failed["targets"]) <= set(other["targets"])


def refused_figures(refused: LoadRefused) -> JobFigures:
    """An automatic load that is not recorded, as ``figures_of`` shows jobs."""
    job, state = _refused(refused)
    return {**figures_of(job), "state": state, "created_ms": refused.since_ms}


def refused_in_full(refused: LoadRefused) -> dict[str, Any]:
    """The same as ``in_full`` shows them."""
    job, state = _refused(refused)
    return in_full(job) | {"state": state, "created_ms": refused.since_ms}


def _refused(refused: LoadRefused) -> tuple[Job, str]:
    wanted = JobRequest("load", refused.pipeline, (refused.target,), origin=refused.origin)
    offline = refused.since_ms is None
    when = "after the next start" if offline else "again within 10 minutes"
    way = f"`binlogd tables load {quoted_pattern(refused.target)}`"
    said = f"{refused.why}; it is planned {when}, or by {way}"
    job = Job(f"{UNASKED}{refused.target}", wanted, message=said)
    return job, DUE if offline else REFUSED


def in_full(job: Job) -> dict[str, Any]:
    """The same with the parameters and what the job remembers."""
    params, memory = msgspec.to_builtins(job.wanted.params), msgspec.to_builtins(job.memory)
    whole = {"result": msgspec.to_builtins(job.result)}
    return {**figures_of(job), **whole, "params": params, "memory": memory, "steps": job.steps}


# Notifications of jobs, in the form of Debezium's: what tools for that form read. Pure.

AGGREGATES = {"load": "Incremental Snapshot"}
"""Debezium's word for what a kind does; a kind that Debezium lacks goes by its own name."""


def notification(job: Job, type_: str, data: Mapping[str, str], unix_ms: int) -> dict[str, Any]:
    """One notification. ``id`` is that of the signal that requested the job, else the job's.

    ``additional_data`` holds texts alone, as Debezium's does.
    """
    wanted = job.wanted
    collections = ", ".join(map(str, wanted.params.get("tables") or wanted.targets))
    more: dict[str, str] = {"connector_name": wanted.pipeline, "job": job.id}
    if type_ not in ("COMPLETED", "ABORTED"):
        # Debezium's own spelling differs for this one.
        name = "data_collection" if type_ == "TABLE_SCAN_COMPLETED" else "data_collections"
        more[name] = collections
    if type_ == "IN_PROGRESS":
        more["rows_done"] = str(job.progress.done)
        if job.progress.total is not None:
            more["rows_total"] = str(job.progress.total)
    return {
        "id": wanted.signal or job.id,
        "aggregate_type": AGGREGATES.get(wanted.kind, wanted.kind.capitalize()),
        "type": type_,
        "additional_data": {**more, **data},
        "timestamp": str(unix_ms),
    }


def _others(between: Sequence[Mapping[str, str]] | None) -> list[str] | None:
    return None if between is None else [each["target"] for each in between]
