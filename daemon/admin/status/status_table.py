"""Prints the status document for people: a head line, then each pipeline with its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from actors.contract.figures import bare
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition, headline
from daemon.admin.status.health import shown
from daemon.admin.status.result_tables import open_jobs, print_gates, print_jobs
from daemon.admin.status.stores_health import last_cut
from daemon.admin.status.words import duration, size
from settings.counted import counted

MOST_OF_A_KIND = 5
"""Conditions of one kind that are listed."""


def print_status(console: Console, status: doc.Status) -> None:
    """Print the whole document."""
    ready = "ready" if status["ready"] else "not ready"
    up = duration(status["uptime_seconds"])
    console.print(
        f"binlogd {status['version']} {status['state']}, {ready}, process {status['pid']}, up {up}"
    )
    found = shown(status)
    console.print(f"  {escape(headline(found)[1])}")
    for silent in status["silent"]:
        if not silent["stuck"]:
            busy = duration(silent["seconds"])
            console.print(f"  {silent['actor']} is busy: no answer for {busy}")
    session = status["spark"]
    if session is not None and session["last_end"] is not None:
        console.print(f"  {_session(session)}")
    print_conditions(console, (one for one in found if not one.pipeline))
    for pipeline in status["pipelines"]:
        console.print()
        mine = (one for one in found if one.pipeline == pipeline["pipeline"])
        _print_pipeline(console, pipeline, mine)
    if jobs := open_jobs(status["jobs"]):
        console.print("\njobs: `binlogd jobs list` has all")
        print_jobs(console, jobs)
    if gates := status.get("gates"):  # an older daemon's document has none
        console.print("\ngates")
        print_gates(console, gates)


def print_conditions(console: Console, found: Iterable[Condition]) -> None:
    """A line for each, what is ill in bold; of one kind a few, since a screen holds no more."""
    counts: Counter[str] = Counter()
    for one in found:
        counts[one.kind] += 1
        if counts[one.kind] <= MOST_OF_A_KIND:
            line = escape(_said(one))
            console.print(f"  [bold]{line}[/bold]" if one.level == "ill" else f"  {line}")
    for kind, count in counts.items():
        if count > MOST_OF_A_KIND:
            console.print(f"  and {count - MOST_OF_A_KIND} more of {kind}: binlogd status --json")


def _said(one: Condition) -> str:
    """What is the matter, when it is tried again, what leads out, and the page about it."""
    again = one.retry_seconds is not None and "tried again in" not in one.line
    return (
        f"{one.who}: {one.line}"
        + (f" (tried again in {duration(one.retry_seconds)})" if again else "")
        + (f": {one.command}" if one.command else "")
        + (f" [{one.runbook}]" if one.runbook and one.level == "ill" else "")
    )


def _session(session: doc.Session) -> str:
    """How the JVM ended."""
    ended = f"the JVM {session['last_end']}"
    if session["pid"] is None:
        return f"{ended} {duration(session['down_seconds'])} ago, another is being started"
    since = duration(session["age_seconds"])
    times = counted(session["rebuilt"], "time")
    return f"{ended}; the session was rebuilt {since} ago ({times} in all)"


def _print_pipeline(
    console: Console, p: Mapping[str, Any], conditions: Iterable[Condition]
) -> None:
    name = escape(f"pipeline {p['pipeline']}")
    state = p["stage"] if p["assigned"] else f"{p['stage']}, no partitions assigned yet"
    console.print(f"{name}: {state}, {_lag(p)}, freshness {duration(p['freshness_seconds'])}")
    console.print(
        f"  messages: {p['messages_read']:,} read, {p['messages_dropped']:,} dropped, "
        f"{p['messages_replayed']:,} replayed{_further(p)};  rows: {p['rows_read']:,} read, "
        f"{p['rows_written']:,} written"
    )
    console.print(
        f"  held: {size(p['buffered_bytes'])} buffered, {size(p['staged_bytes'])} staged, "
        f"{p['writes_in_flight']} writes in flight, the oldest for "
        f"{duration(p['oldest_write_seconds'])}"
    )
    if (cuts := p.get("cuts")) is not None:  # an older daemon's document has none
        console.print(f"  cuts: {last_cut(cuts)}")
    if p["formats"]:
        formats = ", ".join(f"{topic} {name}" for topic, name in p["formats"].items())
        console.print(f"  formats: {escape(formats)}")
    print_conditions(console, conditions)
    if p["partitions"]:
        console.print(_partitions(p["partitions"]))
    if p["targets"]:
        console.print(_targets(p["targets"]))


def _further(p: Mapping[str, Any]) -> str:
    """Messages that few formats report: sent again by the producer, or of no table for sure."""
    again, over = p["messages_sent_again"], p["messages_passed_over"]
    return (f", {again:,} sent again" if again else "") + (
        f", {over:,} passed over" if over else ""
    )


def _partitions(partitions: Iterable[Mapping[str, Any]]) -> Table:
    table = Table("partition", "frontier", "position", "log end", "lag", "held by", box=None)
    for p in partitions:
        held = p["held_by"]
        holder = f"{held['target']} at {held['offset']} (+{held['messages']:,})" if held else "-"
        numbers = (p["frontier"], p["position"], log_end(p))
        table.add_row(escape(p["source"]), *map(str, numbers), _lag(p), escape(holder))
    return table


def log_end(part: Mapping[str, Any], number: Callable[[int], str] = str) -> str:
    """Where a partition's log ends, and up to where it can be read if that is less."""
    if part["log_end"] is None:
        return "unknown"
    end, transaction = number(part["log_end"]), part["open_transaction"]
    return end if transaction is None else f"{end}, readable to {number(transaction['offset'])}"


def _targets(targets: Iterable[Mapping[str, Any]]) -> Table:
    table = Table(
        "target", "state", "lag", "freshness", "buffered", "staged", "write", "rows written",
        "last error", box=None,
    )  # fmt: skip
    for t in targets:
        write, error = t["write"], t["last_error"]
        flying = (
            f"{counted(write['rows'], 'row')}, {duration(write['age_seconds'])}" if write else "-"
        )
        if write and write["attempt"] > 1:
            flying += f", attempt {write['attempt']}"
        table.add_row(
            escape(t["target"]), t["phase"], _lag(t), duration(t["freshness_seconds"]),
            f"{t['buffered_messages']:,}", size(t["staged_bytes"]), flying,
            f"{t['rows_written']:,}",
            escape(f"{_ago(error['seconds_ago'])}: {bare(t['target'], error['reason'])}")
            if error
            else "-",
        )  # fmt: skip
    return table


def _lag(item: Mapping[str, Any]) -> str:
    if item["lag_messages"] is None:
        oldest = item["lag_seconds"]
        return "lag unknown" + (f", at least {duration(oldest)}" if oldest else "")
    if not item["lag_messages"]:
        return "no lag"
    return f"{item['lag_messages']:,} behind, {duration(item['lag_seconds'])}"


def _ago(seconds: float | None) -> str:
    return "since before the start" if seconds is None else f"{duration(seconds)} ago"
