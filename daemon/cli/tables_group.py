"""``binlogd tables``: list, retry, rebuild, load, verify, discard."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from daemon.cli.base.options import ConfigOption, load_config, make_console

app = typer.Typer(help="The targets, and those in quarantine.", no_args_is_help=True)


@app.command("list", epilog="Example: binlogd tables list")
def tables_list(
    config: ConfigOption = Path("config.toml"),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show the targets: of the running daemon, or as they are recorded. Status 1: damage."""
    from daemon.cli.tables import list_tables

    settings = load_config(config, lenient=True)
    if any("file" not in section.offset_stores for section in settings.pipeline.values()):
        settings = load_config(config)  # another store is read, which may need a secret
    sys.exit(list_tables(settings, make_console(), as_json))
