"""``binlogd query``: one SELECT over the tables of a sink."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from changes.model.printable import json_text, printable
from daemon.cli.base.cuts import chosen_cuts, versions_in
from daemon.cli.base.options import ConfigOption, JsonOption, load_config, make_console, refuse
from daemon.cli.base.records import plain_value
from daemon.cli.query.names import sinks_in, spelt
from daemon.config.config import Config
from daemon.state.dead_letters.index import parse_since
from daemon.state.edits import EditRefused
from databases.base.errors import DatabaseError
from offsets.cuts import Cut, why_withdrawn
from settings.counted import counted
from sparkwriter.kit.queries import At, NoAnswer, Queries
from sparkwriter.sections import make_sink

SqlArgument = Annotated[
    str, typer.Argument(metavar="SQL", help="One SELECT, with targets as binlogd names them.")
]
SinkOption = Annotated[
    str | None, typer.Option(help="Of this sink, where the statement names no target.")
]
AtOption = Annotated[
    str | None,
    typer.Option(
        metavar="STATE",
        help="A lake as it was: a snapshot's id, a time such as 2026-01-31T00:00:00Z, or an age "
        "such as 2h.",
    ),
]
CutOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="A lake's tables as they are in this cut (cuts list)."),
]
PipelineOption = Annotated[
    str | None, typer.Option(help="Of --cut: the pipeline, where several make cuts.")
]
LimitOption = Annotated[int, typer.Option(min=1, help="Rows that are shown at most.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="As CSV, with the columns' names.")]


def query(
    sql: SqlArgument,
    sink: SinkOption = None,
    at: AtOption = None,
    cut: CutOption = None,
    pipeline: PipelineOption = None,
    limit: LimitOption = 1000,
    as_csv: CsvOption = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Show what a SELECT gives over the tables of a sink.

    A database answers by itself, in a session that may only read. A lake on this machine is read
    by DuckDB, an extra of its own (binlogd[query]).
    """
    if as_csv and as_json:
        refuse("--csv or --json, not both")
    if at is not None and cut is not None:
        refuse("--at or --cut, not both")
    if pipeline is not None and cut is None:
        refuse("--pipeline belongs to --cut")
    settings = load_config(config)
    name = _sink(settings, sql, sink)
    try:
        state: At | Cut = None if at is None else parse_at(at, datetime.now(UTC))
        if cut is not None:
            state = _cut(settings, pipeline, cut)
        queries = make_sink(name, settings.sink[name], settings).queries()
        if queries is None:
            raise NoAnswer(
                f"sink {name} is of kind {settings.sink[name].kind}: nothing reads its tables here"
            )
        columns, rows = _asked(queries, name, sql, state, limit + 1)
    except (NoAnswer, DatabaseError, EditRefused, ValueError) as error:
        refuse(settings.redactor.text(str(error)))
    _print(columns, rows[:limit], len(rows) > limit, as_csv, as_json)
    if len(rows) > limit:
        print(f"binlogd: cut at {counted(limit, 'row')}: --limit shows more", file=sys.stderr)


def _cut(settings: Config, pipeline: str | None, number: int) -> Cut:
    """The cut; one that is withdrawn is told as such."""
    table = chosen_cuts(settings, pipeline)
    (found,) = table.read([number])
    (by,) = table.withdrawn([found])
    if by is not None:
        print(f"binlogd: {why_withdrawn(found, by)}", file=sys.stderr)
    return found


def _sink(settings: Config, sql: str, named: str | None) -> str:
    """The one that the statement is about."""
    found = [named] if named else sinks_in(sql, settings.sink)
    have = ", ".join(settings.sink)
    if len(found) > 1:
        refuse(f"one statement reads one sink, and this one names {', '.join(found)}")
    if not found and len(settings.sink) > 1:
        refuse(f"the statement names no target, such as SINK.DATABASE.TABLE; sinks: {have}")
    name = found[0] if found else next(iter(settings.sink), "")
    if name not in settings.sink:
        refuse(f"there is no sink {name!r}; have: {have or 'none'}")
    return name


def parse_at(text: str, now: datetime) -> At:
    """What ``--at`` says. Raises ValueError."""
    if text.isdecimal():
        return int(text)
    try:
        return parse_since(text, now)
    except ValueError as error:
        raise ValueError(f"--at: a snapshot's id, or a time: {error}") from error


def _asked(
    queries: Queries, sink: str, sql: str, at: At | Cut, most: int
) -> tuple[list[str], list[Sequence[Any]]]:
    """The columns, and so many rows at most. Raises NoAnswer, DatabaseError."""
    text, targets = spelt(sql.strip().rstrip(";"), sink, queries.spell, queries.backslashes)
    state = versions_in(at, targets) if isinstance(at, Cut) else at
    with queries.answer(text, targets, state) as answer:
        return list(answer.columns), list(islice(answer.rows, most))


def _print(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], cut: bool, as_csv: bool, as_json: bool
) -> None:
    plain = [[plain_value(value) for value in row] for row in rows]
    if as_json:
        print(json_text({"columns": columns, "rows": plain, "cut": cut}, indent=1))
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(plain)
    else:
        table = Table(*(escape(printable(name)) for name in columns), box=None)
        for row in plain:
            table.add_row(*(escape(_cell(value)) for value in row))
        make_console().print(table)
        print(counted(len(rows), "row"))


def _cell(value: object) -> str:
    """A value for people. Between angle brackets NULL differs from a text that says so."""
    if value is None:
        return "<null>"
    return printable(value if isinstance(value, str) else json_text(value))
