"""``binlogd config``: what others need of a configuration: its schema, the alerts' rules."""

from __future__ import annotations

import json
import re
from importlib import resources

import typer

from daemon.cli.base.options import ConfigOption, load_config, refuse
from daemon.config.schema import config_schema

app = typer.Typer(help="The configuration's schema; Prometheus' rules.", no_args_is_help=True)


@app.command("schema", epilog="Example: binlogd config schema > binlogd.schema.json")
def schema() -> None:
    """Print the JSON schema of the configuration: editors complete and check keys by it.

    An editor with TOML's language server reads it where the file begins with
    "#:schema ./binlogd.schema.json".
    """
    print(json.dumps(config_schema(), indent=1, ensure_ascii=False))


@app.command("alerts", epilog="Example: binlogd config alerts > binlogd.rules.yml")
def alerts(config: ConfigOption = None) -> None:
    """Print Prometheus' rules, each with the address of its page of the runbook.

    The pages are where metrics.docs of the configuration says.
    """
    docs = load_config(config).metrics.docs.rstrip("/")
    if not docs:
        refuse('metrics.docs is empty: set it, such as docs = "https://wiki.example/binlogd"')
    print(rules(docs), end="")


def rules(docs: str) -> str:
    """The rules with links below that address."""
    file = resources.files("daemon.admin.status") / "binlogd.rules.yml"
    text = file.read_text(encoding="utf-8")
    return re.sub(
        r"(?<=runbook_url: )docs/(\S+)", lambda page: json.dumps(f"{docs}/{page[1]}"), text
    )
