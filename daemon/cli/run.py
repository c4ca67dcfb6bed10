"""``binlogd run``: the daemon itself."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Annotated

import structlog
import typer

from daemon.admin.logs import set_up_logs
from daemon.app.progress import Bar, Quiet
from daemon.cli.base.options import ConfigOption, load_config, refuse
from settings.exit import Exit
from settings.secrets import Redactor
from settings.version import VERSION


def run(
    config: ConfigOption = Path("config.toml"),
    until_caught_up: Annotated[
        bool, typer.Option(help="End at the log's end as it is now, instead of going on.")
    ] = False,
    progress: Annotated[bool, typer.Option(help="Draw a progress bar on standard error.")] = False,
) -> None:
    """Run the daemon. SIGTERM and Ctrl-C write what is in hand, commit, and end with status 0."""
    settings = load_config(config)
    try:
        levels = set_up_logs(settings.log, settings.redactor)
    except OSError as error:
        refuse(f"log.file {settings.log.file} can't be written: {error}")
    structlog.get_logger().info("binlogd", version=VERSION, pid=os.getpid(), config=str(config))
    # Late: pyspark costs most of a second, which `offsets show` need not wait for.
    from daemon.admin.service_manager import Notifier
    from daemon.app.service import Service
    from daemon.app.startup import Unusable
    from sparkwriter.sinks import ConfiguredSinks

    _redact_tracebacks(settings.redactor)
    notifier = Notifier.from_environment()

    show = Bar() if progress else Quiet()
    try:
        service = Service(settings, until_caught_up, show, ConfiguredSinks(), notifier, levels)
        status = service.run()
    except Unusable as error:
        show.close()
        refuse(settings.redactor.text(str(error)))
    if status is Exit.KILLED:
        # No thread is awaited and no library cleans up: the next start replays harmlessly.
        os._exit(status.value)
    sys.exit(status.value)


def _redact_tracebacks(redactor: Redactor) -> None:
    """An unexpected error prints a traceback on standard error, without secrets, too."""

    def show(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        text = "".join(traceback.format_exception(kind, error, at))
        print(redactor.text(text), file=sys.stderr, end="")

    sys.excepthook = show
