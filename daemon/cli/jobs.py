"""``binlogd jobs``: shows the daemon's jobs, or the recorded ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from rich.console import Console

from changes.model.printable import json_text, reason_of
from daemon.admin.status.result_tables import print_job, print_jobs
from daemon.cli.base.options import ConfigOption, JsonOption, load_config, make_console
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.record import Job
from daemon.operations.engine.store import JobStore
from daemon.operations.figures import (
    UNASKED,
    JobFigures,
    LoadRefused,
    figures_of,
    in_full,
    refused_figures,
    refused_in_full,
)
from daemon.state import control
from daemon.state.recorded import recorded_snapshot
from offsets.store import StoreError
from settings.exit import Exit

app = typer.Typer(help="What takes long beside the flow: loads, rebuilds.", no_args_is_help=True)

JobArgument = Annotated[str, typer.Argument(help="As jobs list names it.", metavar="JOB")]


@app.command("list", epilog="Example: binlogd jobs list")
def jobs_list(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show the jobs: of the running daemon, or as they are recorded. Status 1: damage."""
    sys.exit(list_jobs(load_config(config, lenient=True), make_console(), as_json))


@app.command("show", epilog="Example: binlogd jobs show load-1 --json")
def jobs_show(job: JobArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show one job in full. Status 2: there is none of that name."""
    sys.exit(show_job(load_config(config, lenient=True), make_console(), job, as_json))


def list_jobs(settings: Config, console: Console, as_json: bool) -> int:
    """Print all jobs. Returns the exit status."""

    def recorded(jobs: tuple[Job, ...], damage: list[str]) -> list[JobFigures]:
        due = (refused_figures(one) for one in _due(settings, jobs, damage))
        return [*map(figures_of, jobs), *due]

    return _printed(settings, {"ask": "jobs"}, recorded, console, as_json, print_jobs)


def show_job(settings: Config, console: Console, id_: str, as_json: bool) -> int:
    """Print one job. Returns the exit status."""

    def recorded(jobs: tuple[Job, ...], damage: list[str]) -> dict[str, Any] | None:
        found = [in_full(job) for job in jobs if job.id == id_]
        if not found and id_.startswith(UNASKED):
            found = [refused_in_full(one) for one in _due(settings, jobs, damage)]
        return next((one for one in found if one["job"] == id_), None)

    def show(console: Console, found: Any) -> None:
        print_job(console, found)

    request = {"ask": "jobs-show", "job": id_}
    return _printed(settings, request, recorded, console, as_json, show, f"job {id_}: unknown")


def _printed(
    settings: Config,
    request: dict[str, str],
    recorded: Callable[[tuple[Job, ...], list[str]], Any],
    console: Console,
    as_json: bool,
    show: Callable[[Console, Any], None],
    missing: str = "",
) -> int:
    """Print what the daemon answers, or what the files hold. None: there is nothing to show."""
    damage: list[str] = []
    try:
        try:
            found = control.ask(settings.daemon.state_dir, request)
        except control.NotRunning:
            jobs, told = JobStore(settings.daemon.state_dir).load()
            damage += told
            found = settings.redactor.deep(recorded(jobs, damage))
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


def _due(settings: Config, jobs: tuple[Job, ...], damage: list[str]) -> Iterator[LoadRefused]:
    """The automatic loads that the next start plans."""
    asking = [name for name, section in settings.pipeline.items() if section.loads_unasked]
    if not asking:
        return
    from daemon.operations.automatic_loads import due_offline  # late: all that a load needs

    for name in asking:
        try:
            loaded = recorded_snapshot(PipelineConfig(settings, name))
            damage += loaded.damage
            if loaded.snapshot is not None:
                yield from due_offline(PipelineConfig(settings, name), loaded.snapshot, jobs)
        except (OSError, StoreError, ValueError) as error:
            said = settings.redactor.text(reason_of(error))
            damage.append(f"pipeline.{name}: which loads are due is not known: {said}")


def _failed(reason: str, status: Exit) -> int:
    print(f"binlogd: {reason}", file=sys.stderr)
    return status.value
