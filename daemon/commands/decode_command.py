"""``binlogd decode``: its options; what it does is in ``decode``."""

from __future__ import annotations

import sys
from typing import Annotated, cast, get_args

import typer

from changes.formats.auto import AUTO, NAMES, make_format
from changes.model import FormatOptions, ZeroDates
from daemon.commands.decode import run_decode
from daemon.commands.decode_types import configured_types
from daemon.commands.options import (
    refuse,
)


def decode(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files of messages, - for stdin.")
    ],
    format_: Annotated[str, typer.Option("--format", help=f"One of: {', '.join(NAMES)}.")] = AUTO,
    time_zone: Annotated[
        str, typer.Option(help="The zone in which TIMESTAMP values are printed.")
    ] = "UTC",
    zero_dates: Annotated[
        str, typer.Option(help="What 0000-00-00 becomes: null or error.")
    ] = "null",
    database: Annotated[
        str | None, typer.Option(help="The database of messages that name none.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table of messages that name none.")] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="COLUMN=TYPE", help="A type that no message tells."),
    ] = None,
    encryption_key: Annotated[
        str | None,
        typer.Option(envvar="BINLOGD_ENCRYPTION_KEY", help="What Maxwell encrypted with."),
    ] = None,
) -> None:
    """Print what messages say, a line of JSON for each change; status 1 where some are bad."""
    names = {
        "default_database": database,
        "default_table": table,
        "encryption_key": encryption_key,
    }
    extra = {option: name for option, name in names.items() if name is not None}
    if format_ not in NAMES:
        refuse(f"unknown format {format_!r}; known: {', '.join(NAMES)}")
    if zero_dates not in get_args(ZeroDates):
        refuse(f"--zero-dates {zero_dates!r} is none of {', '.join(get_args(ZeroDates))}")
    try:
        configured = configured_types(format_, types or ())
        options = FormatOptions(time_zone, cast(ZeroDates, zero_dates), extra, configured)
        chosen = make_format(format_, options)
    except ValueError as error:
        refuse(str(error))
    sys.exit(run_decode(files, chosen))
