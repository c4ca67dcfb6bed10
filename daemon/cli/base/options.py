"""Shared by the command groups: the configuration, the chosen pipeline, a refusal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from changes.model.printable import printable_within_lines
from daemon.cli.base.config_file import (
    ENVIRONMENT,
    HERE,
    OF_THE_MACHINE,
    ConfigFile,
    NoConfig,
    config_file,
)
from daemon.config.state_folder import state_folder
from settings.exit import Exit

if TYPE_CHECKING:
    from daemon.config.config import Config

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help=f"The configuration file; else ${ENVIRONMENT}, ./{HERE}, {OF_THE_MACHINE}.",
    ),
]
StateDirOption = Annotated[
    Path | None,
    typer.Option(help="The daemon's state directory, instead of what the configuration says."),
]
BrokerOption = Annotated[
    str | None, typer.Option(help="HOST:PORT of a broker, instead of a configuration.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document.")]


class PrintableConsole(Console):
    """Writes what others have named and said: no character of it acts on a terminal."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """See ``Console``: also the cells of a table come by here."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(printable_within_lines(text), style)


def make_console() -> Console:
    """A console for standard output, as wide as tables need if it is no terminal."""
    return PrintableConsole(width=None if sys.stdout.isatty() else 160, highlight=False)


def chosen_file(option: Path | None) -> ConfigFile:
    """The file that a command reads: its option's, or the usual one. Exits where there is none."""
    try:
        return config_file(option)
    except NoConfig as error:
        refuse(str(error))


def state_dir_of(config: Path | None, state_dir: Path | None) -> Path:
    """Where the requested daemon keeps its state: an option's word, or the configuration's."""
    if state_dir is not None:
        return state_dir
    found = state_folder(chosen_file(config).path)
    return load_config(config, lenient=True).daemon.state_dir if found is None else found


class ConfigUnusable(Exception):
    """There is no configuration, or it has mistakes: a line for each."""

    def __init__(self, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


def read_config(option: Path | None, lenient: bool = False) -> Config:
    """The configuration. Raises ConfigUnusable with a line for each problem, and with why this file
    was read, where no option names it. ``lenient``: without secrets."""
    from daemon.config.file import ConfigError, load  # late: all sections, a tenth of a second

    try:
        file = config_file(option)
        return load(file.path, lenient=lenient)
    except NoConfig as error:
        raise ConfigUnusable(str(error)) from error
    except ConfigError as error:
        raise ConfigUnusable(*error.problems, *([str(file)] if file.why else [])) from error


def load_config(option: Path | None, lenient: bool = False) -> Config:
    """As ``read_config``; exits with these lines."""
    try:
        return read_config(option, lenient)
    except ConfigUnusable as error:
        for line in error.lines:
            print(f"binlogd: {line}", file=sys.stderr)
        sys.exit(Exit.UNUSABLE.value)


def chosen_pipeline(settings: Config, name: str | None) -> str:
    """The chosen pipeline. The only one need not be named."""
    from daemon.state.edits import EditRefused
    from daemon.state.edits import chosen_pipeline as chosen

    try:
        return chosen(settings.pipeline, name)
    except EditRefused as error:
        refuse(str(error))


def refuse(reason: str) -> NoReturn:
    """Exit with status 2 and one line with the reason."""
    quit_with(reason, Exit.UNUSABLE)


def quit_with(said: str, status: Exit) -> NoReturn:
    """Exit with a status and one line on standard error."""
    print(f"binlogd: {said}", file=sys.stderr)
    sys.exit(status.value)
