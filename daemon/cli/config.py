"""``binlogd config``: what a configuration may hold, for editors."""

from __future__ import annotations

import json

import typer

from daemon.config.schema import config_schema

app = typer.Typer(help="What a configuration may hold.", no_args_is_help=True)


@app.command("schema", epilog="Example: binlogd config schema > binlogd.schema.json")
def schema() -> None:
    """Print the JSON schema of the configuration: editors complete and check keys by it.

    An editor with TOML's language server reads it where the file begins with
    "#:schema ./binlogd.schema.json".
    """
    print(json.dumps(config_schema(), indent=1, ensure_ascii=False))
