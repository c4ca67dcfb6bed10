"""Runs the daemon of a configuration file: for every command that does."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import structlog

from daemon.admin.logs import set_up_logs
from daemon.admin.recent_lines import RecentLines
from daemon.app.progress import Quiet, Show
from daemon.cli.base.options import refuse
from daemon.config.config import Config
from settings.exit import Exit
from settings.secrets import Redactor
from settings.version import VERSION


def serve(
    settings: Config,
    config: Path,
    until_caught_up: bool = False,
    show: Show | None = None,
    around: Callable[[Callable[[], Exit]], Exit] = lambda daemon: daemon(),
) -> Exit:
    """Run the daemon of a configuration file to its end; exits where it can't be used. Main thread.

    ``around`` is called with what runs it, and gives its status.
    """
    show = show or Quiet()
    try:
        recent = RecentLines()
        levels = set_up_logs(settings.log, settings.redactor, recent)
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
    try:
        shown = notifier, levels, recent
        service = Service(settings, until_caught_up, show, ConfiguredSinks(), *shown)
        return around(service.run)
    except Unusable as error:
        show.close()
        refuse(settings.redactor.text(str(error)))


def _redact_tracebacks(redactor: Redactor) -> None:
    """An unexpected error prints a traceback on standard error, without secrets, too."""

    def show(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        text = "".join(traceback.format_exception(kind, error, at))
        print(redactor.text(text), file=sys.stderr, end="")

    sys.excepthook = show
