"""``binlogd decode``: prints messages as one line of JSON for each change. Needs no broker."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TextIO, cast, get_args

import typer

from changes.formats import AUTO, FORMATS, NAMES, check_types, make_format
from changes.formats.as_target import AsTarget
from changes.formats.detector import detector
from changes.formats.engine.format import Format, RowChange, pack
from changes.model.model import BadMessage, ColumnTypes, FormatOptions, ZeroDates
from daemon.cli.base.options import ConfigOption, load_config, refuse
from daemon.cli.base.records import as_line
from daemon.cli.message_files import NotText, binary_messages, detect_format, values_of
from daemon.config.pipeline_config import registry_named
from daemon.state.command_schemas import CommandSchemas, command_schemas

STDIN = "-"


def run_decode(files: Sequence[str], format_: Format, schemas: CommandSchemas | None = None) -> int:
    """Decode to standard output, report bad input on standard error. Returns the exit status."""
    # JSON is UTF-8, whatever the locale.
    cast(Any, sys.stdout).reconfigure(encoding="utf-8", errors="strict")
    sys.stdout.write("")  # where it is closed, nothing is read
    return 0 if decode_files(files, format_, sys.stdout, sys.stderr, schemas) else 1


def decode_files(
    files: Sequence[str],
    format_: Format,
    out: TextIO,
    errors: TextIO,
    schemas: CommandSchemas | None = None,
) -> bool:
    """Decode the files one after another; ``-`` is standard input. Returns whether all was good.

    Bad input is reported on ``errors`` with file and line, and the rest is decoded. Raises
    OutputFailed.
    """
    good = True
    for name in files:
        shown = "<stdin>" if name == STDIN else name
        try:
            if name == STDIN and sys.stdin is None:
                raise NotText("is closed")
            if name == STDIN:
                file: BinaryIO = _with_schemas(sys.stdin.buffer, shown, schemas, errors)
                good &= _decode_file(file, shown, format_, out, errors)
            else:
                with Path(name).open("rb") as opened:
                    file = _with_schemas(opened, shown, schemas, errors)
                    good &= _decode_file(file, shown, format_, out, errors)
        except OSError as error:
            good = False
            print(f"{shown}: {error.strerror or error}", file=errors)
        except NotText as error:
            good = False
            print(f"{shown}: {error}", file=errors)
    return good


def _with_schemas(
    file: BinaryIO, shown: str, schemas: CommandSchemas | None, errors: TextIO
) -> BinaryIO:
    """The file again, once the schemas are there that its messages name."""
    if schemas is None:
        return file
    content = file.read()
    records = [pack(None, each) for _, each in binary_messages(content)]
    for line in schemas.fetch((*records, pack(None, content))):
        print(f"{shown}: {line}", file=errors)
    return BytesIO(content)


def _decode_file(file: BinaryIO, shown: str, format_: Format, out: TextIO, errors: TextIO) -> bool:
    good = True
    lines: Iterable[bytes] = file
    if (auto := detector(format_)) is not None:
        detected, lines = detect_format(file, auto)
        if detected is None:
            return True
        format_ = detected
        print(f"{shown}: read as {format_.name}", file=errors)
    target = AsTarget(format_)
    for place, value in values_of(lines, format_):
        try:
            changes = target.explain(value)
        except BadMessage as bad:
            good = False
            print(f"{shown}:{place}: {bad}", file=errors)
            continue
        for change in changes:
            print(as_line(change), file=out)
            if isinstance(change, RowChange) and change.misfit is not None:
                good = False
                print(f"{shown}:{place}: {change.table}: {change.misfit}", file=errors)
    return good


# Parses ``--type`` of ``binlogd decode``: types of columns whose types no message declares.


def configured_types(format_name: str, texts: Iterable[str]) -> ColumnTypes:
    """The types of ``--type COLUMN=TYPE``, as a route's ``types``. Raises ValueError."""
    found: list[tuple[str, str]] = []
    for text in texts:
        name, equals, words = text.partition("=")
        if not (name and equals and words.strip()):
            raise ValueError(f"--type {text!r}: COLUMN=TYPE is required")
        found.append((name, words))
    untyped = [name for name, format_ in FORMATS.items() if format_.may_lack_types]
    if found and format_name not in untyped:
        raise ValueError(f"--type needs a --format of {', '.join(untyped)}: others tell types")
    try:
        check_types(format_name, tuple(found))
    except ValueError as error:
        raise ValueError(f"--type {error}") from error
    return tuple(found)


# ``binlogd decode``: its options; what it does is in ``decode``.


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
    registry: Annotated[
        str | None, typer.Option(help="The [registry.NAME] that messages name their schemas in.")
    ] = None,
    config: ConfigOption = None,
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
    with ExitStack() as stack:
        schemas = None if registry is None else stack.enter_context(_schemas(config, registry))
        try:
            configured = configured_types(format_, types or ())
            of = None if schemas is None else schemas.registry
            options = FormatOptions(
                time_zone, cast(ZeroDates, zero_dates), extra, configured, registry=of
            )
            chosen = make_format(format_, options)
        except ValueError as error:
            refuse(str(error))
        sys.exit(run_decode(files, chosen, schemas))


def _schemas(config: Path | None, registry: str) -> AbstractContextManager[CommandSchemas | None]:
    settings = load_config(config)
    if registry not in settings.registry:
        known = ", ".join(sorted(settings.registry)) or "none"
        refuse(f"{settings.file}: there is no registry {registry!r}; have: {known}")
    return command_schemas(registry_named(settings, registry))
