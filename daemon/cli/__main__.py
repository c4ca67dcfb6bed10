"""The command line: every command and group of ``table.py``."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, TextIO, cast

import typer

from changes.model.printable import PrintableStream
from daemon.cli.lazy import LazyGroup
from daemon.config.standard_output import CheckedStream, status_of
from settings.version import VERSION

app = typer.Typer(
    cls=LazyGroup,
    help="Keeps tables in a lake equal to a database, from its change stream in Kafka.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"binlogd {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Keeps tables in a lake equal to a database, from its change stream in Kafka."""


def _fill_closed_streams() -> None:
    """Open what the caller has closed of the three standard streams, on nothing.

    Otherwise the next files that are opened are these: whatever a library or a child process prints
    goes into the state's lock or a table's file, and children keep the lock.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stderr is None:
        # Of the other two, a command that needs one says that it is closed.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def main() -> None:
    """The console script."""
    _fill_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale may know no umlaut
    sys.stdout = cast(TextIO, PrintableStream(cast(TextIO, CheckedStream(sys.stdout))))
    sys.stderr = cast(TextIO, PrintableStream(sys.stderr))
    sys.exit(cast(int, status_of(app)))


if __name__ == "__main__":
    main()
