"""Prints the result of a verification for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from settings.counted import counted

ROWS_SHOWN = 20
"""Rows of one table; the others are in ``--json``."""


def print_result(console: Console, result: Mapping[str, Any]) -> None:
    """A line for each table, then the rows that differ, with both values."""
    table = Table(
        "target", "rows", "ranges", "differ", "repaired", "undecided", "seconds", "", box=None
    )
    for one in result["tables"]:
        more = "more than " if one["more"] else ""
        cells = (
            one["target"] if one.get("between") is None else f"{one['target']}, {one['between']}",
            f"{one['rows']:,}",
            f"{one['ranges']:,}",
            f"{more}{one['differing']:,}",
            f"{len(one['repaired']):,}",
            f"{len(one['undecided']):,}",
            f"{one['seconds']:g}",
            "; ".join([_verdict(one), *one["notes"]]),
        )
        table.add_row(*map(escape, cells))
    if (cut := result.get("cut")) is not None:
        told = cut["transaction"] and f", last transaction {cut['transaction']}"
        when = "not known" if cut["time_ms"] is None else _time(cut["time_ms"])
        console.print(escape(f"as of cut {cut['number']}: source time {when}{told or ''}"))
    if (partition := result.get("partition")) is not None:
        console.print(escape(f"rows of {partition} alone: no others were compared"))
    console.print(table)
    for one in result.get("only_one_side", ()):
        line = f"{one['target']}: is not compared: {one['why']}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for one in result["tables"]:
        for line in _rows(one):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _verdict(one: Mapping[str, Any]) -> str:
    if one["skipped"] is not None:
        return f"not compared: {one['skipped']}"
    if one["equal"]:
        return "equal"
    if one["differing"]:
        return "repaired" if one["differing"] == len(one["repaired"]) else "differs"
    return "undecided"


def _rows(one: Mapping[str, Any]) -> Iterator[str]:
    for row in one["rows_that_differ"][:ROWS_SHOWN]:
        key = ", ".join(f"{name} = {text}" for name, text in row["key"].items())
        yield f"{one['target']}: {key}: {_difference(row, one)}"
    for row in one.get("not_repaired", ())[:ROWS_SHOWN]:
        key = ", ".join(f"{name} = {text}" for name, text in row["key"].items())
        yield f"{one['target']}: {key}: not repaired: {row['why']}"
    hidden = one["differing"] - min(ROWS_SHOWN, len(one["rows_that_differ"]))
    if hidden > 0:
        yield f"{one['target']}: and {counted(hidden, 'other')} (--json)"
    for row in one["undecided"][:ROWS_SHOWN]:
        key = ", ".join(row["key"]) or "any row"
        yield f"{one['target']}: {key}: undecided: {row['why']}"


def _difference(row: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """What is wrong with a row, in the words of the two that were compared."""
    between = one.get("between")
    if row["what"] == "missing":
        return "is missing" if between is None else f"{between} has no such row"
    if row["what"] == "extra":
        return f"{'the source' if between is None else one['target']} has no such row"
    first, second = ("at the source", "in the target")
    if between is not None:
        first, second = f"in {one['target']}", f"in {between}"
    return "; ".join(
        f"{name}: {_text(here)} {first}, {_text(there)} {second}"
        for name, (here, there) in row["columns"].items()
    )


def _text(value: str | None) -> str:
    return "NULL" if value is None else repr(value)
