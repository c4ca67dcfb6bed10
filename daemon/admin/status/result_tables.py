"""Prints jobs for people: a table of all, and one in full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from changes.model.printable import json_text
from daemon.admin.status.words import duration

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
