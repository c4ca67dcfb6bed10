"""Jobs in the status document, for people and as metrics."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from daemon.admin.status.job_metrics import job_metrics
from daemon.admin.status.metrics import StatusCollector
from daemon.admin.status.observer import Answers
from daemon.admin.status.status import About, document
from daemon.admin.status.status_table import print_status
from daemon.operations.engine.record import JobProgress, JobRequest, State, new_job
from daemon.operations.figures import figures_of

ABOUT = About("run-1", 7, {}, 1, 120.0)
LOAD = replace(
    new_job(JobRequest("load", "shop", ("lake.s.[t]",)), 5, "load-1"),
    state=State.WAITING,
    progress=JobProgress(50, 200, "rows", 10.0, 15.0),
    message="the sink is away",
    attempts=3,
)
DONE = replace(LOAD, id="load-2", state=State.DONE)
FAILED = replace(LOAD, id="load-3", state=State.FAILED, progress=JobProgress(7), message="no key")


def status() -> dict[str, object]:
    jobs = [figures_of(job) for job in (LOAD, DONE, FAILED)]
    return document(ABOUT, Answers(), 1_000, 1.0, jobs=jobs)


def test_jobs_are_metrics() -> None:
    """What is not known is left out; one that has ended has no remaining time."""
    samples = {
        (s.name, s.labels["job"], s.labels.get("state")): s.value
        for metric in StatusCollector(status).collect()
        for s in metric.samples
        if s.name.startswith("binlogd_job_")
    }
    assert samples[("binlogd_job_progress_ratio", "load-1", None)] == 0.25
    assert samples[("binlogd_job_done", "load-3", None)] == 7
    assert samples[("binlogd_job_rate", "load-1", None)] == 10
    assert samples[("binlogd_job_eta_seconds", "load-1", None)] == 15
    assert samples[("binlogd_job_attempts", "load-1", None)] == 3
    assert samples[("binlogd_job_state", "load-1", "waiting")] == 1
    assert samples[("binlogd_job_state", "load-3", "failed")] == 1
    names = {(name, job) for name, job, _ in samples}
    assert ("binlogd_job_eta_seconds", "load-2") not in names
    assert ("binlogd_job_progress_ratio", "load-3") not in names


def test_the_last_verification_of_whole_tables_is_the_metric() -> None:
    """One of a partition, or of two targets, that is equal does not end the alert of rows that
    differ from the source."""
    empty = {"rows": 9, "differing": 0, "repaired": 0, "undecided": 0, "skipped": 0}
    whole = replace(
        new_job(JobRequest("verify", "shop", ("lake.s.t",)), 5, "verify-1"),
        state=State.DONE, ended_ms=6_000, result={**empty, "differing": 3},
    )  # fmt: skip
    of = replace(whole.wanted, params={"partition": "day=2026-11-25"})
    part = replace(whole, id="verify-2", wanted=of, ended_ms=9_000, result=empty)
    of = replace(whole.wanted, params={"between": [{"pipeline": "shop", "target": "pg.s.t"}]})
    other = replace(whole, id="verify-3", wanted=of, ended_ms=9_000, result=empty)
    families = job_metrics([figures_of(job) for job in (whole, part, other)])
    samples = {s.name: s.value for family in families for s in family.samples}
    assert samples["binlogd_verify_rows_differing"] == 3
    assert samples["binlogd_verify_timestamp_seconds"] == 6
    assert figures_of(part)["partition"] == "day=2026-11-25"
    assert (figures_of(whole)["between"], figures_of(other)["between"]) == (None, ["pg.s.t"])


def test_people_see_those_that_run_or_have_failed() -> None:
    """The rest is in ``jobs list``; names are no markup."""
    recorded = Console(width=200, record=True)
    print_status(recorded, status())
    text = recorded.export_text()
    assert "lake.s.[t]" in text
    assert "50 of 200 rows (25 %)" in text
    assert "the sink is away" in text
    assert "load-3" in text
    assert "load-2" not in text
