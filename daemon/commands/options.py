"""Shared by the command groups: the configuration, the chosen pipeline, a refusal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from daemon.runtime.lifecycle import Exit

ConfigOption = Annotated[
    Path, typer.Option("--config", "-c", help="The configuration file.", show_default=True)
]


def make_console() -> Console:
    """A console for standard output, as wide as tables need if it is no terminal."""
    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def load_config(path: Path, lenient: bool = False) -> Config:
    """The configuration. Exits with a line for each problem. ``lenient``: without secrets."""
    try:
        return load(path, lenient=lenient)
    except ConfigError as error:
        for problem in error.problems:
            print(f"binlogd: {problem}", file=sys.stderr)
        sys.exit(Exit.UNUSABLE.value)


def chosen_pipeline(settings: Config, name: str | None) -> str:
    """The chosen pipeline. The only one need not be named."""
    known = ", ".join(sorted(settings.pipeline))
    if name is None and len(settings.pipeline) > 1:
        refuse(f"--pipeline is wanted, one of: {known}")
    chosen = name or next(iter(settings.pipeline))
    if chosen not in settings.pipeline:
        refuse(f"--pipeline {chosen}: unknown; the configuration has: {known}")
    return chosen


def refuse(reason: str) -> NoReturn:
    """Exit with status 2 and one line with the reason."""
    print(f"binlogd: {reason}", file=sys.stderr)
    sys.exit(Exit.UNUSABLE.value)
