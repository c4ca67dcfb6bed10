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


@app.command("retry", epilog="Example: binlogd tables retry lake.shop.orders")
def tables_retry(
    target: Annotated[str, typer.Argument(help="As tables list names it.")],
    config: ConfigOption = Path("config.toml"),
) -> None:
    """Release a target from quarantine: what was spilled is written first. Status 2: refused."""
    from daemon.cli.tables import retry

    sys.exit(retry(load_config(config, lenient=True), target))


@app.command("rebuild", epilog="Example: binlogd tables rebuild lake.shop.orders --keep-old")
def tables_rebuild(
    target: Annotated[str, typer.Argument(help="As tables list names it.")],
    config: ConfigOption = Path("config.toml"),
    force: Annotated[
        bool, typer.Option(help="Even if the log has lost its beginning; the old table stays.")
    ] = False,
    keep_old: Annotated[
        bool, typer.Option(help="Keep the old table as TARGET__before_NUMBER.")
    ] = False,
    cancel: Annotated[bool, typer.Option(help="Give up a rebuild that is under way.")] = False,
) -> None:
    """Read a table again from its log's start into a new one, which takes its name."""
    from daemon.cli.tables import rebuild

    flags = {"force": force, "keep_old": keep_old, "cancel": cancel}
    sys.exit(rebuild(load_config(config), target, flags))


@app.command("load", epilog='Example: binlogd tables load "shop.order_*" --dry-run')
def tables_load(
    targets: Annotated[
        list[str],
        typer.Argument(help="Targets, or tables of the source; * and ? stand for any signs."),
    ],
    config: ConfigOption = Path("config.toml"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it takes.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Until the tables are there.")] = False,
    anew: Annotated[
        bool, typer.Option("--anew", help="With the types of the stream, not of the old table.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The plan as JSON.")] = False,
) -> None:
    """Fill tables from the source's own database, beside the stream. Status 2: refused."""
    from daemon.cli.load import load

    flags = {"dry_run": dry_run, "wait": wait, "json": as_json, "anew": anew}
    sys.exit(load(load_config(config), make_console(), targets, flags))


@app.command("verify", epilog="Example: binlogd tables verify lake.shop.orders --sample 0.1")
def tables_verify(
    targets: Annotated[
        list[str],
        typer.Argument(help="Targets, or tables of the source; * and ? stand for any signs."),
    ],
    config: ConfigOption = Path("config.toml"),
    sample: Annotated[
        float | None,
        typer.Option(min=0.000001, max=1, help="Compare a part of the ranges, such as 0.1."),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Write the rows that differ as the source has them.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be compared.")] = False,
) -> None:
    """Compare tables with the source's own by value. Status 0: equal; 1: something differs."""
    from daemon.cli.verify import verify

    params = {"repair": repair} | ({} if sample is None else {"sample": sample})
    flags = {"json": as_json, "dry_run": dry_run}
    sys.exit(verify(load_config(config), make_console(), targets, params, flags))


@app.command("discard", epilog="Example: binlogd tables discard lake.shop.gone")
def tables_discard(
    target: Annotated[str, typer.Argument(help="As tables list names it.")],
    config: ConfigOption = Path("config.toml"),
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; without this, say what would be lost.")
    ] = False,
) -> None:
    """Give up what is kept for a target that no route wants any more, or a reset that can't be."""
    from daemon.cli.tables_discard import discard

    sys.exit(discard(load_config(config), target, execute))
