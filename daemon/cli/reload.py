"""``binlogd reload`` and ``binlogd log-level``."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Annotated

import typer

from daemon.cli.base.options import ConfigOption, StateDirOption, ask, quit_with, state_folder
from daemon.operations.reload.answer import BEGIN, LEVEL, LOOK
from settings.exit import Exit

ASK_EVERY_S = 0.3
"""Between two questions whether it is done."""

WITHIN_S = 600.0
"""How long the command waits: a drain for each pipeline that is changed."""


def reload(
    config: ConfigOption = Path("config.toml"),
    state_dir: StateDirOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what differs, and change nothing.")
    ] = False,
    discard: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Give up what is kept for a target without a route; or end a pipeline all the "
            "same, and leave that where it is.",
        ),
    ] = None,
) -> None:
    """Have the running daemon take its changed configuration file: all of it, or nothing.

    Status 2: refused, nothing was changed.
    """
    folder = state_folder(config, state_dir)
    begun = ask(folder, {"ask": BEGIN, "dry_run": dry_run, "discard": discard or []})
    end = time.monotonic() + WITHIN_S
    while not (state := ask(folder, {"ask": LOOK, "ticket": begun["ticket"]}))["done"]:
        if time.monotonic() > end:
            quit_with(f"not done within {WITHIN_S:g} s; it goes on", Exit.PIPELINE_FAILED)
        threading.Event().wait(ASK_EVERY_S)
    for line in state["refused"]:
        print(f"binlogd: {line}", file=sys.stderr)
    if state["refused"]:
        sys.exit(Exit.UNUSABLE.value)
    print(*(state["lines"] or ["nothing differs"]), sep="\n")


def log_level(
    level: Annotated[
        str, typer.Argument(help="debug, info, warning, error; default: as configured.")
    ],
    actor: Annotated[
        str | None,
        typer.Option(help="Of one actor: fetcher, shop/fetcher, shop/ (all of it)."),
    ] = None,
    config: ConfigOption = Path("config.toml"),
    state_dir: StateDirOption = None,
) -> None:
    """Set the running daemon's log level, until it is restarted."""
    folder = state_folder(config, state_dir)
    wanted = None if level == "default" else level
    print(ask(folder, {"ask": LEVEL, "level": wanted, "actor": actor}))
