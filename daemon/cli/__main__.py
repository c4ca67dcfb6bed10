"""The command line: every command and group, each from its file in ``daemon/cli``."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, TextIO, cast

import typer

from changes.model.printable import PrintableStream
from daemon.cli import collector, config, dead_letters, jobs, offsets, tables
from daemon.cli.base.operations import add_commands
from daemon.cli.check_config import check_config
from daemon.cli.decode import decode
from daemon.cli.init.command import init
from daemon.cli.produce import produce
from daemon.cli.replicate.command import replicate
from daemon.cli.run import run
from daemon.cli.setup import setup
from daemon.cli.status import status
from daemon.cli.support.command import support_bundle
from daemon.cli.top import top
from daemon.cli.topics import command as topics
from daemon.config.standard_output import CheckedStream, status_of
from settings.version import VERSION

app = typer.Typer(
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


app.command(
    "replicate", epilog="Example: binlogd replicate mysql://reader@db.example/shop --into ./lake"
)(replicate)
app.command("run", epilog="Example: binlogd run --config config.toml")(run)
app.command(
    "init", epilog="Example: binlogd init --broker 127.0.0.1:9092 --topic shop --lake var/warehouse"
)(init)
app.command("setup", epilog="Example: binlogd setup s3")(setup)
app.command("status", epilog="Example: binlogd status --json")(status)
app.command("top", epilog="Example: binlogd top --ill")(top)
app.command("support-bundle", epilog="Example: binlogd support-bundle")(support_bundle)
app.command("check-config", epilog="Example: binlogd check-config --connect")(check_config)
app.command("decode", epilog="Example: binlogd decode --format canal-json messages.jsonl")(decode)
app.command("produce", epilog="Example: binlogd produce changes.jsonl --topic shop --create")(
    produce
)
GROUPS = {
    "": app,
    "offsets": offsets.app,
    "tables": tables.app,
    "jobs": jobs.app,
    "dead-letters": dead_letters.app,
    "collector": collector.app,
    "config": config.app,
    "topics": topics.app,
}
add_commands(GROUPS)
for group, inside in list(GROUPS.items())[1:]:
    app.add_typer(inside, name=group)


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
