"""Prints jobs for people: a table of all, and one in full; and gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from changes.model.printable import json_text
from daemon.admin.status.words import duration
from daemon.state.gate_figures import GateShown
from settings.counted import counted
from settings.shell import quoted

FINAL = ("cancelled", "failed", "done")


def print_jobs(console: Console, jobs: Iterable[Mapping[str, Any]]) -> None:
    """One line a job."""
    table = Table("job", "state", "targets", "progress", "rate", "left", "message", box=None)
    for job in jobs:
        progress = job["progress"]
        rate = progress["per_second"]
        cells = (
            job["job"],
            state_of(job),
            ", ".join(job["targets"]) or job["pipeline"],
            done_of(progress),
            "-" if rate is None else f"{rate:,.0f} {progress['unit']}/s",
            duration(progress["eta_seconds"]),
            job["message"] or "-",
        )
        table.add_row(*map(escape, cells))
    console.print(table)


def print_job(console: Console, job: Mapping[str, Any]) -> None:
    """One job in full, a member a line."""
    progress = job["progress"]
    members = {
        "job": job["job"],
        "kind": job["kind"],
        "pipeline": job["pipeline"],
        "targets": ", ".join(job["targets"]) or "-",
        "state": state_of(job),
        "message": job["message"] or "-",
        "progress": done_of(progress),
        "left": duration(progress["eta_seconds"]),
        "failed attempts": str(job["attempts"]),
        "requested by": job["origin"],
        "recorded": _time(job["created_ms"]),
        "started": _time(job["started_ms"]),
        "ended": _time(job["ended_ms"]),
        "parameters": json_text(job["params"]),
        "result": json_text(job["result"]),
    }
    table = Table(box=None, show_header=False)
    for name, text in members.items():
        table.add_row(name, escape(text))
    console.print(table)


def open_jobs(jobs: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that have not ended, and failed ones: what an operator looks for."""
    return [job for job in jobs if job["state"] not in FINAL or job["state"] == "failed"]


def state_of(job: Mapping[str, Any]) -> str:
    """Its state, and what was requested and is not done yet."""
    return f"{job['state']}, {job['asked']} requested" if job["asked"] else str(job["state"])


def done_of(progress: Mapping[str, Any]) -> str:
    """``1,200 of 5,000 rows (24 %)``."""
    done, total, unit = progress["done"], progress["total"], progress["unit"]
    if total is None:
        return f"{done:,} {unit}" if done else "-"
    ratio = progress["ratio"]
    return f"{done:,} of {total:,} {unit} ({100 * ratio:.0f} %)"


def _time(unix_ms: int | None) -> str:
    if unix_ms is None:
        return "-"
    return datetime.fromtimestamp(unix_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def print_gates(console: Console, gates: Sequence[GateShown]) -> None:
    """A line for each, then what is to be said of them."""
    table = Table("gate", "closed through", "version", "closed at", "next", "looked at", box=None)
    for each in gates:
        table.add_row(escape(each["gate"]), *map(escape, _gate_cells(each)))
    console.print(table)
    for each in gates:
        for line in gate_lines(each):
            console.print(escape(f"{each['gate']}: {line}"))


def _gate_cells(each: GateShown) -> Iterator[str]:
    last, next_, looked_s = each["last"], each["next"], each["looked_seconds"]
    yield "-" if last is None else last["through"]
    yield "-" if last is None else str(last["version"])
    yield "-" if last is None else last["closed"]
    yield "-" if next_ is None else f"{next_[0]} to {next_[1]}"
    yield "never" if looked_s is None else f"{duration(looked_s)} ago"


def gate_lines(each: GateShown) -> Iterator[str]:
    """Why it is shut, who is not told, what was reopened."""
    if not each["configured"]:
        yield f"is not configured any more: binlogd gate forget {quoted(each['gate'])}"
    if each["error"] is not None:
        yield each["error"]
    for table, why in each["shut"].items():
        yield f"{each['shut_from'] or 'shut'}: {table}: {why}"
    if (looking_s := each["looking_seconds"]) is not None:
        yield f"a look is under way for {duration(looking_s)}"
    for begin in each["reopened"]:
        yield f"{begin} was reopened, and has not closed again"
    for way, one in each["undelivered"].items():
        waits = counted(one["notifications"], "notification waits", "notifications wait")
        why = "" if one["reason"] is None else f", for {duration(one['seconds'])}: {one['reason']}"
        yield f"{way}: {waits}{why}"
