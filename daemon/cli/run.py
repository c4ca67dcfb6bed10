"""``binlogd run``: the daemon itself."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from daemon.app.progress import Bar, Quiet
from daemon.cli.base.options import ConfigOption, chosen_file, load_config
from daemon.cli.base.serve import serve
from settings.exit import Exit


def run(
    config: ConfigOption = None,
    until_caught_up: Annotated[
        bool, typer.Option(help="End at the log's end as it is now, instead of going on.")
    ] = False,
    progress: Annotated[bool, typer.Option(help="Draw a progress bar on standard error.")] = False,
) -> None:
    """Run the daemon. SIGTERM and Ctrl-C write what was read, commit, and end with status 0."""
    settings = load_config(config)
    status = serve(
        settings, chosen_file(config).path, until_caught_up, Bar() if progress else Quiet()
    )
    if status is Exit.KILLED:
        # No thread is awaited and no library cleans up: the next start replays harmlessly.
        os._exit(status.value)
    sys.exit(status.value)
