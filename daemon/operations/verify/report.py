"""What a verification says: of a row, of a table, of all. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changes.sql.forms import Form
from daemon.operations.verify.columns import ComparedShape, Pair
from daemon.operations.verify.in_flight import DifferingRow
from daemon.operations.verify.work import Table
from databases.base.port import Texts
from settings.counted import counted

OF_CUT = ("number", "time_ms", "transaction", "positions")
"""What a result says of a cut: the moment of the data."""

LONGEST = 200
"""Signs of a value that are shown: of a longer one those about the first that differs."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """``rows``: what was done, a row each. ``refused``: rows that could not be written, and why.
    ``notes``: what else was not done, one line each."""

    rows: tuple[Mapping[str, Any], ...] = ()
    refused: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


def shown(found: DifferingRow, shape: ComparedShape) -> dict[str, Any]:
    """A row that differs: its key, what is wrong with it, and the columns with both values."""
    key = dict(zip((pair.source.name for pair in shape.keys), found.key, strict=True))
    if found.target is None:
        return {"key": key, "what": "missing", "columns": _one(found.source, shape.pairs, 0)}
    if found.source is None:
        return {"key": key, "what": "extra", "columns": _one(found.target, shape.pairs, 1)}
    columns = {
        pair.source.name: [_cut(_read(pair, here), there), _cut(_read(pair, there), here)]
        for pair, here, there in zip(shape.pairs, found.source, found.target, strict=True)
        if here != there
    }
    return {"key": key, "what": "differs", "columns": columns}


def _one(texts: Texts | None, pairs: Sequence[Pair], side: int) -> dict[str, list[str | None]]:
    assert texts is not None
    found: dict[str, list[str | None]] = {}
    for pair, text in zip(pairs, texts, strict=True):
        values: list[str | None] = [None, None]
        values[side] = _cut(_read(pair, text), None)
        found[pair.source.name] = values
    return found


def _read(pair: Pair, text: str | None) -> str | None:
    """Bits of a floating-point number are shown as that."""
    if text is None or pair.source.form is not Form.BITS:
        return text
    number: float = struct.unpack(">d", struct.pack(">q", int(text)))[0]
    return repr(number)


def _cut(text: str | None, other: str | None) -> str | None:
    if text is None or len(text) <= LONGEST:
        return text
    first = next(
        (at for at, (one, two) in enumerate(zip(text, other or "", strict=False)) if one != two),
        min(len(text), len(other or "")),
    )
    start = max(0, min(first - LONGEST // 2, len(text) - LONGEST))
    piece = text[start : start + LONGEST]
    return (
        f"{'…' if start else ''}{piece}{'…' if start + LONGEST < len(text) else ''} ({len(text)})"
    )


def table_result(
    target: str,
    source: str,
    table: Table,
    now_ms: int,
    repaired: Repaired = Repaired(),
    between: str | None = None,
) -> dict[str, Any]:
    """One table's part of the result. ``between``: the other target that it was compared with,
    instead of with its source."""
    return {
        "target": target,
        "between": between,
        "table": source,
        "equal": not table.found and not table.undecided,
        "rows": table.rows[0],
        "target_rows": table.rows[1],
        "ranges": table.ranges,
        "differing": len(table.found),
        "more": table.is_full,
        "rows_that_differ": [dict(one) for one in table.shown],
        "undecided": [{"key": list(key), "why": why} for key, why in table.undecided],
        "changed_since": table.moved,
        "notes": [*table.notes, *_moved(table, between), *repaired.notes],
        "skipped": None,
        "repaired": [dict(one) for one in repaired.rows],
        "not_repaired": [dict(one) for one in repaired.refused],
        "seconds": round((now_ms - table.begun_ms) / 1000, 1),
    }


def _moved(table: Table, between: str | None) -> Iterator[str]:
    if table.moved:
        has = counted(table.moved, "row has", "rows have")
        since = "since the cut" if between is None else f"between the cut and {between} as it is"
        yield f"{has} changed {since}, and can't be compared"


def skipped(target: str, source: str, why: str, between: str | None = None) -> dict[str, Any]:
    """A table that was not compared."""
    return {
        **table_result(target, source, Table(0), 0, between=between),
        "equal": False,
        "skipped": why,
    }


def result_of(
    done: Iterable[Mapping[str, Any]],
    sample: float,
    cut: Mapping[str, Any] | None = None,
    partition: str | None = None,
) -> dict[str, Any]:
    """The job's result. ``cut``: of which the tables were compared (``at_cut.AtCut``);
    ``partition``: the condition of the rows that were compared, None: all."""
    tables = [dict(one) for one in done]
    return {
        "equal": all(one["equal"] or _is_repaired(one) for one in tables),
        "tables": tables,
        "rows": sum(one["rows"] for one in tables),
        "differing": sum(one["differing"] for one in tables),
        "undecided": sum(len(one["undecided"]) for one in tables),
        "skipped": sum(one["skipped"] is not None for one in tables),
        "repaired": sum(len(one["repaired"]) for one in tables),
        "not_repaired": sum(len(one.get("not_repaired", ())) for one in tables),
        "sample": sample,
        "cut": None if cut is None else {name: cut[name] for name in OF_CUT},
        "partition": partition,
    }


def _is_repaired(one: Mapping[str, Any]) -> bool:
    whole = one["differing"] == len(one["repaired"]) and not one["more"]
    return bool(one["differing"]) and whole and not one["undecided"]


def summary(result: Mapping[str, Any]) -> str:
    """The outcome in one line."""
    equal = sum(one["equal"] for one in result["tables"])
    parts = [
        f"{equal:,} of {counted(len(result['tables']), 'table is', 'tables are')} equal",
        counted(result["rows"], "row"),
    ]
    parts += [
        counted(result[name], one, more)
        for name, one, more in (
            ("differing", "row differs", "rows differ"),
            ("repaired", "of them repaired", "of them repaired"),
            ("not_repaired", "can't be repaired", "can't be repaired"),
            ("undecided", "undecided", "undecided"),
            ("skipped", "table not compared", "tables not compared"),
        )
        if result[name]
    ]
    partition = result["partition"]
    return ", ".join(parts) + ("" if partition is None else f"; rows of {partition} alone")
