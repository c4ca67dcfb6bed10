"""``binlogd cuts``: shows the cuts of a pipeline, and what differs between two."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from changes.model.printable import json_text
from daemon.cli.base.cuts import chosen_cuts
from daemon.cli.base.options import ConfigOption, JsonOption, load_config, make_console, refuse
from daemon.cli.base.texts import time_text
from daemon.state.cuts_table import CutsTable
from daemon.state.edits import EditRefused
from databases.base.errors import DatabaseError
from offsets.cuts import Cut, why_withdrawn
from settings.counted import counted
from sparkwriter.kit.queries import NoAnswer

app = typer.Typer(help="All tables as of one point of the log.", no_args_is_help=True)

PipelineOption = Annotated[
    str | None, typer.Option(help="Of this pipeline, where several make cuts.")
]
NumberArgument = Annotated[int, typer.Argument(help="As cuts list shows it.", metavar="N")]
OtherArgument = Annotated[int, typer.Argument(help="A later or an earlier one.", metavar="M")]


@app.command("list", epilog="Example: binlogd cuts list")
def cuts_list(
    pipeline: PipelineOption = None,
    limit: Annotated[int, typer.Option(min=1, help="So many at most, the newest.")] = 100,
    only_kept: Annotated[bool, typer.Option("--kept", help="Those that are still kept.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the cuts, the newest first, and whether the tables of each are still kept."""
    with _table(config, pipeline) as table:
        every = [one for one in table.listed() if one.kept or not only_kept]
        cuts = table.read([one.number for one in every[:limit]])
        withdrawn = table.withdrawn(cuts)
    shown = [
        _in_short(cut, one.kept, by) for one, cut, by in zip(every, cuts, withdrawn, strict=False)
    ]
    if as_json:
        print(json_text(shown, indent=1))
        return
    console = make_console()
    if not shown:
        console.print(escape(f"pipeline {table.pipeline} has made no cut yet"))
        return
    columns = (
        "number",
        "made",
        "source time",
        "boundary",
        "tables",
        "left out",
        "kept",
        "withdrawn",
    )
    rows = Table(*columns, box=None)
    for one in shown:
        rows.add_row(*(escape(_cell(value)) for value in one.values()))
    console.print(rows)
    if len(every) > limit:
        console.print(f"{len(every) - limit:,} older ones: --limit shows more")


@app.command("show", epilog="Example: binlogd cuts show 1790000000")
def cuts_show(
    number: NumberArgument,
    pipeline: PipelineOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one cut: its positions, and of each table the version to read."""
    with _table(config, pipeline) as table:
        (cut,) = table.read([number])
        is_kept = {one.number: one.kept for one in table.listed()}[number]
        (withdrawal,) = table.withdrawn([cut])
    if as_json:
        print(json_text(_in_full(cut, is_kept, withdrawal), indent=1))
        return
    console = make_console()
    by = "between two transactions" if cut.boundary == "transaction" else "by time"
    lines = [
        f"cut {cut.number} of pipeline {cut.pipeline}, {by}",
        f"made {_made(cut)}, source time {time_text(cut.time_ms)}",
        f"last transaction: {cut.transaction or 'not known'}",
        *(f"{source}: below offset {at}" for source, at in sorted(cut.positions.items())),
    ]
    if not is_kept:
        lines.append("no longer kept: snapshots of its tables may have expired")
    if withdrawal is not None:
        lines.append(why_withdrawn(cut, withdrawal))
    console.print(escape("\n".join(lines)))
    rows = Table("table", "version", box=None)
    for target, version in sorted(cut.versions.items()):
        rows.add_row(escape(target), escape(version))
    for target, why in sorted(cut.left_out.items()):
        rows.add_row(escape(target), escape(f"left out: {why}"))
    console.print(rows)


@app.command("diff", epilog="Example: binlogd cuts diff 1790000000 1790000060")
def cuts_diff(
    number: NumberArgument,
    other: OtherArgument,
    pipeline: PipelineOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which tables differ between two cuts, and the positions of both."""
    with _table(config, pipeline) as table:
        cuts = table.read([number, other])
        withdrawn = table.withdrawn(cuts)
    for cut, by in zip(cuts, withdrawn, strict=True):
        if by is not None:
            print(f"binlogd: {why_withdrawn(cut, by)}", file=sys.stderr)
    tables = sorted({name for cut in cuts for name in (*cut.versions, *cut.left_out)})
    versions = {name: [_version(cut, name) for cut in cuts] for name in tables}
    differing = {name: both for name, both in versions.items() if both[0] != both[1]}
    sources = sorted({source for cut in cuts for source in cut.positions})
    positions = {str(each): [cut.positions.get(each) for cut in cuts] for each in sources}
    if as_json:
        print(json_text({"positions": positions, "tables": differing}, indent=1))
        return
    rows = Table("", str(number), str(other), box=None)
    for source, offsets in positions.items():
        rows.add_row(escape(source), *map(_cell, offsets))
    for name, both in differing.items():
        rows.add_row(escape(name), *(escape(_cell(version)) for version in both))
    console = make_console()
    console.print(rows)
    console.print(f"{len(differing):,} of {counted(len(tables), 'table')} differ")


@contextmanager
def _table(config: Any, pipeline: str | None) -> Iterator[CutsTable]:
    """The table of cuts; what it can't answer ends the command with status 2."""
    settings = load_config(config)
    try:
        yield chosen_cuts(settings, pipeline)
    except (NoAnswer, DatabaseError, EditRefused) as error:
        refuse(settings.redactor.text(str(error)))


def _made(cut: Cut) -> str:
    return datetime.fromtimestamp(cut.number, UTC).isoformat()


def _in_short(cut: Cut, is_kept: bool, by: Cut | None) -> dict[str, object]:
    return {
        "number": cut.number,
        "made": _made(cut),
        "source_time": None if cut.time_ms is None else time_text(cut.time_ms),
        "boundary": cut.boundary,
        "tables": len(cut.versions),
        "left_out": sorted(cut.left_out),
        "kept": is_kept,
        "withdrawn": None if by is None else _made(by),
    }


def _in_full(cut: Cut, is_kept: bool, by: Cut | None) -> dict[str, object]:
    return {
        **_in_short(cut, is_kept, by),
        "pipeline": cut.pipeline,
        "transaction": cut.transaction,
        "positions": {str(source): at for source, at in cut.positions.items()},
        "tables": dict(cut.versions),
        "left_out": dict(cut.left_out),
    }


def _version(cut: Cut, table: str) -> str | None:
    """None: the cut knows no such table."""
    why = cut.left_out.get(table)
    return cut.versions.get(table) if why is None else f"left out: {why}"


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value)) or "-"
        case _:
            return str(value)
