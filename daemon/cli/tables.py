"""``binlogd tables list``, and the group of the operations on targets."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from actors.contract.figures import bare
from changes.model.model import TargetName
from changes.model.printable import json_text
from daemon.admin.status.words import size
from daemon.admin.target_rows import Row, left_out_rows, running_rows, with_paused, with_recorded
from daemon.cli.base.options import ConfigOption, load_config, make_console, refuse
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig, pipeline_of_target, pipelines_of
from daemon.state import control
from daemon.state.pauses import Pauses, PausesUnreadable
from daemon.state.recorded import recorded_snapshot
from offsets.store import StoreError
from settings.exit import Exit
from sparkwriter.sections import make_sink

app = typer.Typer(help="The targets, and those in quarantine.", no_args_is_help=True)


@app.command("list", epilog="Example: binlogd tables list")
def tables_list(
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
    how: Annotated[
        str | None,
        typer.Option(metavar="TARGET", help="Instead, how to read this one with other tools."),
    ] = None,
) -> None:
    """Show the targets: of the running daemon, or as they are recorded. Status 1: damage."""
    settings = load_config(config, lenient=True)
    if how is not None:
        sys.exit(_show_how(settings, how, as_json))
    if any("file" not in section.offset_stores for section in settings.pipeline.values()):
        settings = load_config(config)  # another store is read, which may need a secret
    sys.exit(list_tables(settings, make_console(), as_json))


def _show_how(settings: Config, name: str, as_json: bool) -> int:
    """Print a text to paste for each tool that reads it. Returns the exit status."""
    try:
        target = TargetName.parse(name)
    except ValueError as error:
        refuse(str(error))
    if target.sink not in settings.sink:
        refuse(f"there is no sink {target.sink!r}; have: {', '.join(settings.sink) or 'none'}")
    sink = make_sink(target.sink, settings.sink[target.sink], settings)
    found = {tool: settings.redactor.text(text) for tool, text in sink.readers(target)}
    if not found:
        refuse(f"nothing is known of what reads sink {target.sink}")
    if as_json:
        print(json_text(found, indent=1))
    else:
        print("\n\n".join(f"# {tool}\n{text}" for tool, text in found.items()))
    return Exit.OK.value


def list_tables(settings: Config, console: Console, as_json: bool) -> int:
    """Print all targets, of the running daemon or else as recorded. Returns the exit status."""
    pauses = Pauses(settings.daemon.state_dir)
    try:
        status = control.ask(settings.daemon.state_dir, {"ask": "status"})
        open_ = [*running_rows(status), *left_out_rows(status)]
        paused = [*status["paused_targets"]]
    except control.NotRunning:
        try:
            pauses.load()
        except (PausesUnreadable, OSError) as error:
            print(f"binlogd: {error}", file=sys.stderr)
            return Exit.PIPELINE_FAILED.value
        open_, paused = None, [name for name in pauses.now() if "." in name]
    except (control.ControlError, OSError) as error:
        print(f"binlogd: {error}", file=sys.stderr)
        return Exit.PIPELINE_FAILED.value
    return _list(settings, open_, paused, console, as_json)


def _list(
    settings: Config,
    open_: list[Row] | None,
    paused: Collection[str],
    console: Console,
    as_json: bool,
) -> int:
    """Print a daemon's open targets (None: no daemon), and the other recorded ones."""
    rows: list[Row] = []
    damaged = False
    for name in settings.pipeline:
        try:
            loaded = recorded_snapshot(PipelineConfig(settings, name))
        except (OSError, StoreError) as error:
            said = settings.redactor.text(str(error))
            print(
                f"binlogd: pipeline.{name}: what is recorded can't be read: {said}", file=sys.stderr
            )
            return Exit.UNUSABLE.value
        for damage in loaded.damage:
            damaged = True
            print(f"binlogd: {damage}", file=sys.stderr)
        mine = None if open_ is None else [row for row in open_ if row["pipeline"] == name]
        rows += with_recorded(name, mine, loaded.snapshot)
    # A daemon may run with another configuration than this one.
    rows += [row for row in open_ or () if row["pipeline"] not in settings.pipeline]
    pipelines = pipelines_of(settings)
    of_paused = {target: pipeline_of_target(pipelines, target) for target in paused}
    _print(console, with_paused(rows, of_paused), as_json)
    return Exit.PIPELINE_FAILED.value if damaged else Exit.OK.value


def _print(console: Console, rows: Iterable[Row], as_json: bool) -> None:
    if as_json:
        print(json_text(list(rows), indent=1))
        return
    table = Table("target", "phase", "high-water marks", "spilled", "last error", box=None)
    rows = list(rows)
    doubted = any(row["rows_may_differ"] for row in rows)
    if doubted:
        table.add_column("rows may differ")
    for row in rows:
        marks = ", ".join(f"{s}={hwm}" for s, hwm in row["high_water_marks"].items())
        spilled = "-" if row["spill"] is None else _spilled(row["spill"])
        error = bare(row["target"], row["last_error"] or "-")
        texts = (row["target"], row["phase"], marks or "-", spilled, error)
        why = (row["rows_may_differ"] or "-",) if doubted else ()
        table.add_row(*map(escape, (*texts, *why)))
    console.print(table)


def _spilled(spill: Mapping[str, Any]) -> str:
    lanes = ", ".join(f"{s} {first}..{last}" for s, (first, last) in spill["lanes"].items())
    return f"{size(spill['bytes'])} ({lanes})" + (", full" if spill.get("full") else "")
