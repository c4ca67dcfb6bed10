"""``binlogd top``: the running daemon in a terminal, drawn again and again."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from daemon.admin.page.history import History
from daemon.admin.page.targets import SORTS, View
from daemon.admin.page.top_screen import screen
from daemon.admin.status.document import Status
from daemon.cli.base.options import ConfigOption, refuse, state_dir_of
from daemon.state import control
from settings.exit import Exit


def top(
    config: ConfigOption = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="The daemon's state directory, instead of what the configuration says."),
    ] = None,
    every: Annotated[float, typer.Option(min=0.5, help="Seconds between two looks.")] = 2.0,
    search: Annotated[str, typer.Option(help="Only targets with this in their name.")] = "",
    ill: Annotated[bool, typer.Option("--ill", help="Only targets that are not well.")] = False,
    sort: Annotated[str, typer.Option(help=f"One of: {', '.join(SORTS)}.")] = "state",
) -> None:
    """Show the running daemon until Ctrl-C. Exit status 3 when none runs."""
    if sort not in SORTS:
        refuse(f"--sort {sort}: unknown; one of {', '.join(SORTS)}")
    folder = state_dir_of(config, state_dir)
    view, history, console = View(search, sort, ill), History(), Console(highlight=False)
    try:
        shown = _look(folder, history)
        with Live(
            screen(shown, history, view, console.height),
            console=console,
            screen=console.is_terminal,
            auto_refresh=False,
        ) as live:
            while console.is_terminal:
                time.sleep(every)
                shown = _look(folder, history)
                live.update(screen(shown, history, view, console.height), refresh=True)
    except KeyboardInterrupt:
        pass
    except control.NotRunning as error:
        print(f"binlogd: {error}", file=sys.stderr)
        sys.exit(error.status.value)
    except control.ControlError as error:
        print(f"binlogd: {error}", file=sys.stderr)
        sys.exit(Exit.PIPELINE_FAILED.value)


def _look(folder: Path, history: History) -> Status:
    status: Status = control.ask(folder, {"ask": "status"})
    history.sample(status)
    return status
