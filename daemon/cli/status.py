"""``binlogd status``: the state of the running daemon."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from changes.model.printable import json_text
from daemon.admin.status.health import shown
from daemon.admin.status.status_table import print_status
from daemon.cli.base.options import ConfigOption, chosen_file, make_console, state_dir_of
from daemon.state import control
from settings.exit import Exit


def status(
    config: ConfigOption = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="The daemon's state directory, instead of what the configuration says."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show how the running daemon does, and what is not well.

    Exit status 0: all is well, or passes by itself; 4: somebody has to act; 3: no daemon runs; 1:
    it does not answer.
    """
    folder = state_dir_of(config, state_dir)
    try:
        found = control.ask(folder, {"ask": "status"})
    except control.NotRunning as error:
        named = state_dir or isinstance(error, control.NoSocket)
        hint = "" if named else "; --state-dir names another"
        print(f"binlogd: {error}{hint}", file=sys.stderr)
        sys.exit(error.status.value)
    except control.ControlError as error:
        print(f"binlogd: {error}", file=sys.stderr)
        sys.exit(Exit.PIPELINE_FAILED.value)
    if as_json:
        print(json_text(found, indent=1))
    else:
        if not state_dir and (file := chosen_file(config)).why:
            print(file)
        print_status(make_console(), found)
    if any(one.level == "ill" for one in shown(found)):
        sys.exit(Exit.ILL.value)
