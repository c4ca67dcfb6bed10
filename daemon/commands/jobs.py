"""``binlogd jobs``: shows the daemon's jobs, or the recorded ones, and asks something of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console

from changes.printable import json_text
from daemon.config.config import Config
from daemon.jobs import offline
from daemon.jobs.effects import Request
from daemon.jobs.figures import figures_of, in_full
from daemon.jobs.record import Job
from daemon.jobs.store import JobStore
from daemon.observe import control
from daemon.observe.jobs_table import print_job, print_jobs
from daemon.runtime.lifecycle import Exit

SAID = {
    "pause": "pauses after the step under way",
    "resume": "goes on",
    "cancel": "is given up; what it has begun is removed",
}


def list_jobs(settings: Config, console: Console, as_json: bool) -> int:
    """Print all jobs. Returns the exit status."""

    def recorded(jobs: tuple[Job, ...]) -> list[dict[str, Any]]:
        return [figures_of(job) for job in jobs]

    return _printed(settings, {"ask": "jobs"}, recorded, console, as_json, print_jobs)


def show_job(settings: Config, console: Console, id_: str, as_json: bool) -> int:
    """Print one job. Returns the exit status."""

    def recorded(jobs: tuple[Job, ...]) -> dict[str, Any] | None:
        return next((in_full(job) for job in jobs if job.id == id_), None)

    def show(console: Console, found: Any) -> None:
        print_job(console, found)

    request = {"ask": "jobs-show", "job": id_}
    return _printed(settings, request, recorded, console, as_json, show, f"job {id_}: unknown")


def ask_job(settings: Config, id_: str, request: Request) -> int:
    """Pause, resume or cancel a job. Returns the exit status."""
    later = ""
    try:
        try:
            asked = {"ask": "jobs-ask", "job": id_, "request": request}
            refusal = control.ask(settings.daemon.state_dir, asked)["refused"]
        except control.NotRunning:
            later = ", from the next start on"
            refusal = offline.ask(settings.daemon.state_dir, id_, request)
    except (control.ControlError, offline.NotRecorded) as error:
        return _failed(str(error), Exit.PIPELINE_FAILED)
    if refusal is not None:
        return _failed(refusal, Exit.UNUSABLE)
    print(f"job {id_} {SAID[request]}{later}")
    return Exit.OK.value


def _printed(
    settings: Config,
    request: dict[str, str],
    recorded: Callable[[tuple[Job, ...]], Any],
    console: Console,
    as_json: bool,
    show: Callable[[Console, Any], None],
    missing: str = "",
) -> int:
    """Print what the daemon answers, or what the files hold. None: there is nothing to show."""
    damage: tuple[str, ...] = ()
    try:
        try:
            found = control.ask(settings.daemon.state_dir, request)
        except control.NotRunning:
            jobs, damage = JobStore(settings.daemon.state_dir).load()
            found = settings.redactor.deep(recorded(jobs))
    except (control.ControlError, OSError) as error:
        return _failed(str(error), Exit.PIPELINE_FAILED)
    for line in damage:
        print(f"binlogd: {line}", file=sys.stderr)
    if found is None:
        return _failed(missing, Exit.UNUSABLE)
    if as_json:
        print(json_text(found, indent=1))
    else:
        show(console, found)
    return Exit.PIPELINE_FAILED.value if damage else Exit.OK.value


def _failed(reason: str, status: Exit) -> int:
    print(f"binlogd: {reason}", file=sys.stderr)
    return status.value
