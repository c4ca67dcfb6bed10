"""``binlogd jobs``: list, show, pause, resume, cancel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from daemon.cli.base.options import ConfigOption, JsonOption, load_config, make_console

app = typer.Typer(help="What takes long beside the flow: loads, rebuilds.", no_args_is_help=True)

JobArgument = Annotated[str, typer.Argument(help="As jobs list names it.", metavar="JOB")]


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
