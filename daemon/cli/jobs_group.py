"""``binlogd jobs``: list, show, pause, resume, cancel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from daemon.cli.base.options import ConfigOption, load_config, make_console

app = typer.Typer(help="What takes long beside the flow: loads, rebuilds.", no_args_is_help=True)

JobArgument = Annotated[str, typer.Argument(help="As jobs list names it.", metavar="JOB")]

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document.")]


@app.command("list", epilog="Example: binlogd jobs list")
def jobs_list(config: ConfigOption = Path("config.toml"), as_json: JsonOption = False) -> None:
    """Show the jobs: of the running daemon, or as they are recorded. Status 1: damage."""
    from daemon.cli.jobs import list_jobs

    sys.exit(list_jobs(load_config(config, lenient=True), make_console(), as_json))


@app.command("show", epilog="Example: binlogd jobs show load-1 --json")
def jobs_show(
    job: JobArgument, config: ConfigOption = Path("config.toml"), as_json: JsonOption = False
) -> None:
    """Show one job in full. Status 2: there is none of that name."""
    from daemon.cli.jobs import show_job

    sys.exit(show_job(load_config(config, lenient=True), make_console(), job, as_json))


@app.command("pause", epilog="Example: binlogd jobs pause load-1")
def jobs_pause(job: JobArgument, config: ConfigOption = Path("config.toml")) -> None:
    """Let a job rest after the step under way, until it is resumed. Status 2: refused."""
    from daemon.cli.jobs import ask_job

    sys.exit(ask_job(load_config(config, lenient=True), job, "pause"))


@app.command("resume", epilog="Example: binlogd jobs resume load-1")
def jobs_resume(job: JobArgument, config: ConfigOption = Path("config.toml")) -> None:
    """Have a paused job go on. Status 2: refused."""
    from daemon.cli.jobs import ask_job

    sys.exit(ask_job(load_config(config, lenient=True), job, "resume"))


@app.command("cancel", epilog="Example: binlogd jobs cancel load-1")
def jobs_cancel(job: JobArgument, config: ConfigOption = Path("config.toml")) -> None:
    """Give a job up, and have what it has begun removed. Status 2: refused."""
    from daemon.cli.jobs import ask_job

    sys.exit(ask_job(load_config(config, lenient=True), job, "cancel"))
