"""The command line: every command and group, each from its file in ``daemon/commands``."""

from __future__ import annotations

import typer

from daemon.commands import dead_letters_group, jobs_group, offsets_group, tables_group
from daemon.commands.check_config import check_config
from daemon.commands.decode_command import decode
from daemon.commands.run import run
from daemon.commands.status import status
from daemon.first_config.command import init
from daemon.page.top import top
from daemon.reload.command import log_level, reload
from daemon.support.command import support_bundle

app = typer.Typer(
    help="Keeps tables in a lake equal to a database, from its change stream in Kafka.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(run)
app.command()(init)
app.command()(status)
app.command()(top)
app.command()(reload)
app.command("log-level")(log_level)
app.command("support-bundle")(support_bundle)
app.command("check-config")(check_config)
app.command()(decode)
app.add_typer(offsets_group.app, name="offsets")
app.add_typer(tables_group.app, name="tables")
app.add_typer(jobs_group.app, name="jobs")
app.add_typer(dead_letters_group.app, name="dead-letters")


def main() -> None:
    """The console script."""
    app()


if __name__ == "__main__":
    main()
