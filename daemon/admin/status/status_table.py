"""Prints the status document for people: a head line, then each pipeline with its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from actors.contract.figures import bare
from daemon.admin.status.result_tables import duration, open_jobs, print_jobs
from sources.base.log_figures import OPEN_S

_DOUBTED = 5
"""How many targets whose stored rows may differ are listed: a screen holds no more."""


def print_status(console: Console, status: Mapping[str, Any]) -> None:
    """Print the whole document."""
    ready = "ready" if status["ready"] else "not ready"
    up = duration(status["uptime_seconds"])
    console.print(
        f"binlogd {status['version']} {status['state']}, {ready}, process {status['pid']}, up {up}"
    )
    for silent in status["silent"]:
        word = "stuck" if silent["stuck"] else "busy"
        console.print(f"  {silent['actor']} is {word}: no answer for {duration(silent['seconds'])}")
    session = status["spark"]
    if session is not None and session["last_end"] is not None:
        console.print(f"  {_session(session)}")
    for target, pause in status["paused_targets"].items():
        console.print(f"  [bold]{escape(f'{target}: {paused_words(target, pause)}')}[/bold]")
    for pipeline in status["pipelines"]:
        console.print()
        _print_pipeline(console, pipeline)
    if jobs := open_jobs(status["jobs"]):
        console.print("\njobs: `binlogd jobs list` has all")
        print_jobs(console, jobs)


def paused_words(name: str, pause: Mapping[str, Any]) -> str:
    """Since when something is paused, why, and what ends that."""
    said = f" ({pause['reason']})" if pause["reason"] else ""
    return f"paused for {duration(pause['seconds'])}{said}: binlogd resume {name}"


def _session(session: Mapping[str, Any]) -> str:
    """How the JVM ended."""
    ended = f"the JVM {session['last_end']}"
    if session["pid"] is None:
        return f"{ended} {duration(session['down_seconds'])} ago, another is being started"
    since = duration(session["age_seconds"])
    return f"{ended}; the session was rebuilt {since} ago ({session['rebuilt']} times in all)"


def _print_pipeline(console: Console, p: Mapping[str, Any]) -> None:
    name = escape(f"pipeline {p['pipeline']}")
    state = p["stage"] if p["assigned"] else f"{p['stage']}, no partitions assigned yet"
    console.print(f"{name}: {state}, {_lag(p)}, fresh to {duration(p['freshness_seconds'])}")
    console.print(
        f"  messages: {p['messages_read']:,} read, {p['messages_dropped']:,} dropped, "
        f"{p['messages_replayed']:,} replayed{_again(p)};  rows: {p['rows_read']:,} read, "
        f"{p['rows_written']:,} written"
    )
    console.print(
        f"  in hand: {size(p['buffered_bytes'])} buffered, {size(p['staged_bytes'])} staged, "
        f"{p['writes_in_flight']} writes in flight, the oldest for "
        f"{duration(p['oldest_write_seconds'])}"
    )
    if p["formats"]:
        formats = ", ".join(f"{topic} {name}" for topic, name in p["formats"].items())
        console.print(f"  formats: {escape(formats)}")
    for line in troubles(p):
        console.print(f"  [bold]{escape(line)}[/bold]")
    if p["partitions"]:
        console.print(_partitions(p["partitions"]))
    if p["targets"]:
        console.print(_targets(p["targets"]))


def _again(p: Mapping[str, Any]) -> str:
    """Messages that were sent again, for the few formats that report it."""
    count = p["messages_sent_again"]
    return f", {count:,} sent again" if count else ""


def troubles(p: Mapping[str, Any]) -> Iterable[str]:
    """What is not well with a pipeline, a line for each."""
    if p["failure"]:
        yield f"failed: {p['failure']}"
    if (pause := p["paused_by_a_person"]) is not None:
        yield paused_words(p["pipeline"], pause)
    yield from _log_troubles(p)
    if p["messages_passed_over"]:
        yield f"{p['messages_passed_over']:,} messages passed over, in the log as such"
    if p["tables_left_out"]:
        left_out = f"{p['messages_left_out']:,} messages of {p['tables_left_out']:,} tables"
        yield f"{left_out} left out, whose names no lake can have: in the log by name"
    for topic, waiting in p["formats_awaited"].items():
        yield f"{topic}: its format is not told yet, {waiting:,} messages wait for it"
    if p["held"]:
        yield "the memory or disk budget is used up: data is left waiting"
    elif p["paused"] and p["stage"] == "running":
        yield "reading is paused until a processor has room"
    letters = p["dead_letters"]
    if letters["stored"] or letters["waiting"]:
        yield f"dead letters: {letters['stored']:,} stored, {letters['waiting']:,} wait"
    if letters["error"]:
        yield f"a dead letter can't be stored: {letters['error']}"
    if p["offset_file"]["error"]:
        yield f"the positions can't be stored: {p['offset_file']['error']}"
    for target, what in [*p["rows_may_differ"].items()][:_DOUBTED]:
        yield f"{target}: stored rows may differ from the source's: {what}"
    if len(p["rows_may_differ"]) > _DOUBTED:
        more = len(p["rows_may_differ"]) - _DOUBTED
        yield f"so may those of {more} more targets: binlogd tables list"
    error = p["last_error"]
    if error and error["lasting"]:
        why = bare(error["target"], error["reason"])
        yield f"{error['target']}: {why} ({_ago(error['seconds_ago'])})"


def _log_troubles(p: Mapping[str, Any]) -> Iterable[str]:
    """What the broker does not give."""
    if p["broker_unreachable_seconds"] is not None:
        yield f"no broker is connected for {duration(p['broker_unreachable_seconds'])}"
    if p["log_ends_unknown_seconds"] is not None:
        unknown = duration(p["log_ends_unknown_seconds"])
        yield f"the logs' ends are unknown for {unknown}: {p['log_ends_error']}"
    for part in p["partitions"]:
        transaction = part["open_transaction"]
        if transaction is not None and transaction["seconds"] >= OPEN_S:
            since = duration(transaction["seconds"])
            yield (
                f"{part['source']}: a transaction is open at {transaction['offset']} for {since}: "
                f"{transaction['messages']:,} records behind it can't be read before it ends"
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
        "target", "state", "lag", "fresh to", "buffered", "staged", "write", "rows written",
        "last error", box=None,
    )  # fmt: skip
    for t in targets:
        write, error = t["write"], t["last_error"]
        flying = f"{write['rows']:,} rows, {duration(write['age_seconds'])}" if write else "-"
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


def size(count: int) -> str:
    """Bytes for people: ``0 B``, ``1.5 MiB``."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024 or unit == "GiB":
            break
    return f"{value:.1f} {unit}"
