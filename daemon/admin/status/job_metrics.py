"""Shows the document's jobs as Prometheus metrics. Names and meanings are in
``docs/watch.md``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from daemon.operations.figures import JobFigures, failed_jobs

LABELS = ("job", "kind", "pipeline")


class _Spec(NamedTuple):
    """One metric: its name without ``binlogd_job_``, the member of ``progress``, its meaning."""

    name: str
    member: str
    text: str


_PROGRESS = (
    _Spec("progress_ratio", "ratio", "The part that is done, from 0 to 1"),
    _Spec("done", "done", "How much is done, in the job's unit (label)"),
    _Spec("total", "total", "Of how much, in the job's unit (label)"),
    _Spec("rate", "per_second", "Units a second, over the last minute"),
    _Spec("eta_seconds", "eta_seconds", "What is left at that rate"),
)

_VERIFIED = (
    _Spec("rows", "rows", "Rows of the source that the last verification compared"),
    _Spec("rows_differing", "differing", "Rows that differed"),
    _Spec("rows_repaired", "repaired", "Of these, rows that it wrote as the source has them"),
    _Spec("rows_undecided", "undecided", "Rows that changed all the time, or could not be decided"),
    _Spec("tables_not_compared", "skipped", "Tables that were chosen and could not be compared"),
)


def job_metrics(jobs: Iterable[JobFigures]) -> Iterator[Metric]:
    """All jobs that are listed. Unknown values are left out."""
    jobs = list(jobs)
    for spec in _PROGRESS:
        labels = (*LABELS, "unit")
        family = GaugeMetricFamily(f"binlogd_job_{spec.name}", spec.text, labels=labels)
        for job in jobs:
            progress: Mapping[str, Any] = job["progress"]
            if (value := progress[spec.member]) is not None:
                family.add_metric([*_names(job), job["progress"]["unit"]], float(value))
        yield family
    state = GaugeMetricFamily(
        "binlogd_job_state",
        "1 for the state it is in, unless a later job has made it good",
        labels=(*LABELS, "state"),
    )
    attempts = GaugeMetricFamily(
        "binlogd_job_attempts", "Failed attempts of the step under way", labels=LABELS
    )
    failed = {job["job"] for job in failed_jobs(jobs)}
    for job in jobs:
        if job["state"] != "failed" or job["job"] in failed:
            state.add_metric([*_names(job), job["state"]], 1.0)
        attempts.add_metric(_names(job), float(job["attempts"]))
    yield from (state, attempts)
    yield from _verified(jobs)


def _verified(jobs: Iterable[Mapping[str, Any]]) -> Iterator[Metric]:
    """Of each pipeline the verification that ended last. That of a partition says nothing of the
    other rows, and one of targets with each other nothing of the source."""
    last: dict[str, Mapping[str, Any]] = {}
    for job in jobs:
        whole = job["partition"] is None and job["between"] is None
        if job["kind"] == "verify" and job["state"] == "done" and whole:
            other = last.get(job["pipeline"])
            if other is None or job["ended_ms"] >= other["ended_ms"]:
                last[job["pipeline"]] = job
    for spec in _VERIFIED:
        family = GaugeMetricFamily(f"binlogd_verify_{spec.name}", spec.text, labels=["pipeline"])
        for pipeline, job in sorted(last.items()):
            family.add_metric([pipeline], float(job["result"][spec.member]))
        yield family
    ended = GaugeMetricFamily(
        "binlogd_verify_timestamp_seconds", "When it ended, Unix time", labels=["pipeline"]
    )
    for pipeline, job in sorted(last.items()):
        ended.add_metric([pipeline], job["ended_ms"] / 1000)
    yield ended


def _names(job: Mapping[str, Any]) -> list[str]:
    return [str(job[name]) for name in LABELS]
