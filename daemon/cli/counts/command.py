"""``binlogd counts``: did every row change of the source come into its log?"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from changes.model.printable import json_text
from changes.routes.routing import RouteConflict
from daemon.cli.base.options import ConfigOption, JsonOption, load_config, make_console, refuse
from daemon.cli.counts.bounds import RangeGone
from daemon.cli.counts.held_side import TargetHolds
from daemon.cli.counts.pipelines import CountsRefused, scanned
from daemon.cli.counts.report import (
    TableReport,
    document,
    held_line,
    lacking_line,
    minute_text,
    reports,
    said_lines,
    status_of,
    targets_in,
)  # fmt: skip
from daemon.cli.counts.scan import Scanned, TooWide
from daemon.cli.counts.tally import TooMany
from daemon.config.config import Config
from daemon.config.pipeline_config import pipeline_of_target, pipelines_of
from daemon.state.dead_letters.index import parse_since
from databases.base.errors import DatabaseAway
from offsets.recovery import PositionError
from offsets.store import StoreError
from settings.counted import counted
from sources.base.port import LogGone, LogUnreadable, NotAnswered, TopicMissing

MOST_MINUTES = 200
"""Lines of minutes that are printed; with more of them only those that differ."""

REFUSED = (
    RangeGone, CountsRefused, TooWide, TooMany, RouteConflict, PositionError, NotAnswered,
    TopicMissing, LogUnreadable, LogGone, DatabaseAway,
)  # fmt: skip

TablesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TABLE]...", help="Targets, such as lake.shop.orders; else all."),
]
FromOption = Annotated[
    str,
    typer.Option(
        "--from", metavar="TIME", help="By the source's clock: 2026-01-31T00:00:00Z, or an age: 2h."
    ),
]
ToOption = Annotated[str, typer.Option("--to", metavar="TIME", help="The end, not included.")]


def counts(
    from_: FromOption,
    to: ToOption,
    tables: TablesArgument = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the row changes that the source says it made in each minute with those in the log.

    It reads the log, also while no daemon runs, and names the transactions that lack changes.
    Status 0: all is there, as the source says; 1: something differs; 2: it can't be told of a
    table, and why.
    """
    settings = load_config(config)
    minutes = _minutes(from_, to)
    asked = _asked(settings, tables or [])
    scans: dict[str, Scanned] = {}
    found: list[TableReport] = []
    try:
        for name, targets in asked.items():
            pipeline = pipelines_of(settings)[name]
            scans[name], recorded = scanned(settings, pipeline, targets or None, minutes)
            wanted = targets or targets_in(scans[name], recorded)
            found += reports(name, wanted, scans[name], recorded)
    except REFUSED as error:
        hint = settings.kafka_hint if getattr(error, "away", False) else ""
        refuse(settings.redactor.text(f"{error}{hint}"))
    except (StoreError, OSError) as error:
        refuse(settings.redactor.text(f"what is recorded can't be read: {error}"))
    if as_json:
        print(json_text(document(minutes, scans, found), indent=1))
    else:
        _print(minutes, scans, found)
    sys.exit(status_of(found))


def _minutes(from_: str, to: str) -> range:
    """The whole minutes of the range."""
    now = datetime.now(UTC)
    try:
        begin, end = (int(parse_since(text, now).timestamp() // 60) for text in (from_, to))
    except (ValueError, OverflowError) as error:
        refuse(str(error))
    if begin < 0 or end <= begin:
        refuse("--to must be at least a minute after --from")
    return range(begin, end)


def _asked(settings: Config, tables: Sequence[str]) -> dict[str, list[str]]:
    """By pipeline its asked targets; none of them: all that it has."""
    pipelines = pipelines_of(settings)
    if not tables:
        return {name: [] for name in pipelines}
    found: dict[str, list[str]] = {}
    for table in dict.fromkeys(tables):
        if (pipeline := pipeline_of_target(pipelines, table)) is None:
            refuse(f"{table!r}: no target of any route, such as lake.shop.orders")
        found.setdefault(pipeline, []).append(table)
    return found


def _print(minutes: range, scans: Mapping[str, Scanned], tables: Collection[TableReport]) -> None:
    console = make_console()
    span = f"{minute_text(minutes.start)} to {minute_text(minutes.stop)}"
    console.print(escape(f"changes of {span}, by the source's clock"))
    names = "table", "", "inserted", "updated", "deleted", "source says", "target has"
    shown = Table(*names, box=None)
    for each in tables:
        numbers = each.found.inserted, each.found.updated, each.found.deleted
        said = "not told" if each.expected is None else str(each.expected)
        held = "not counted" if each.holds is None else str(each.holds.held)
        said += f", by {each.says.by}" if each.says is not None else ""
        shown.add_row(escape(each.target), each.verdict, *map(str, numbers), escape(said), held)
    console.print(shown)
    for each in tables:
        for why in (*each.why, *_of_source(each), *_of_target(each.holds)):
            console.print(escape(f"{each.target}: {why}"))
        if each.read:
            rows = f"{counted(each.read, 'row')} read from the table, in no minute"
            console.print(escape(f"{each.target}: {rows}"))
    for scan in scans.values():
        _print_scan(scan, {each.target for each in tables})


def _of_source(each: TableReport) -> Iterator[str]:
    lines = said_lines(each)
    yield from lines[:MOST_MINUTES]
    if (more := len(lines) - MOST_MINUTES) > 0:
        yield f"and {counted(more, 'other line')}; --json has more"


def _of_target(holds: TargetHolds | None) -> Iterator[str]:
    if holds is None:
        return
    yield from holds.open
    if holds.letters:
        letters = counted(holds.letters, "change is", "changes are")
        yield f"{letters} in dead letters that were replayed or discarded"
    yield from map(held_line, holds.differences[:MOST_MINUTES])
    if (more := len(holds.differences) - MOST_MINUTES) > 0:
        yield f"and {counted(more, 'other minute')}"


def _print_scan(scan: Scanned, asked: Collection[str]) -> None:
    console, found = make_console(), scan.found
    cells = [(key, cell) for key, cell in sorted(found.cells.items()) if key.target in asked]
    if len(cells) > MOST_MINUTES:
        left = [each for each in cells if each[1].expected != each[1].found.total]
        agree = counted(len(cells) - len(left), "minute that agrees", "minutes that agree")
        console.print(f"not shown: {agree}; --json has all")
        cells = left
    rows = Table("minute", "table", "partition", "in the log", "source says", box=None)
    for key, cell in cells:
        said = "not told" if cell.expected is None else str(cell.expected)
        place = f"{key.topic}:{key.partition}"
        total = str(cell.found.total)
        rows.add_row(minute_text(key.minute), escape(key.target), escape(place), total, said)
    if cells:
        console.print(rows)
    for each in found.differences:
        console.print(escape(lacking_line(each)))
    if found.more:
        console.print(f"and {counted(found.more, 'other transaction')}")
    if found.begun_only:
        alone = counted(found.begun_only, "BEGIN stands", "BEGINs stand")
        console.print(f"{alone} alone, as those of statements do")
    for source, number in sorted(found.repeated.items()):
        again = counted(number, "message that came again", "messages that came again")
        console.print(escape(f"{source}: {again}, counted once"))
    for bounds in scan.ranges:
        console.print(escape(f"read {bounds.source} from {bounds.begin} to {bounds.read_to}"))
