"""The screen of ``binlogd top``: what the page shows, as high as the terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from changes.model.printable import printable
from daemon.admin.page.history import History
from daemon.admin.page.targets import Row, View, chosen, rows_of
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition, headline
from daemon.admin.status.health import shown
from daemon.admin.status.result_tables import done_of, open_jobs, state_of
from daemon.admin.status.words import behind, duration, short, size
from daemon.operations.figures import JobFigures
from settings.counted import counted

LEAST_TARGETS = 5
"""Rows of targets that are shown however low the terminal is."""


def screen(status: doc.Status, history: History, view: View, height: int) -> Group:
    """The whole screen, ``height`` lines where that is enough for what is not well."""
    rows = rows_of(status, history)
    found = chosen(rows, view)
    conditions = shown(status)
    above: list[RenderableType] = [_head(status, rows, conditions)]
    above += _conditions(conditions)
    for p in status["pipelines"]:
        above += _pipeline(p, history)
    above += _jobs(status["jobs"])
    room = max(LEAST_TARGETS, height - len(above) - 4)
    return Group(*above, _targets(found[:room]), _rest(len(found) - room, len(rows)))


def _line(text: str, style: str = "") -> Text:
    """One line: what is too long is cut, so that lines can be counted."""
    return Text(printable(text), style=style, no_wrap=True, overflow="ellipsis")


COLOURS = {None: "bold green", "passing": "bold yellow", "ill": "bold red"}

MOST_CONDITIONS = 8
"""That are listed above the targets."""


def _conditions(found: list[Condition]) -> Iterator[Text]:
    for one in found[:MOST_CONDITIONS]:
        way = f": {one.command}" if one.command else ""
        yield _line(f"  {one.who}: {one.line}{way}", "red" if one.level == "ill" else "yellow")
    if len(found) > MOST_CONDITIONS:
        yield _line(f"  and {len(found) - MOST_CONDITIONS} more: binlogd status", "dim")


def _head(status: doc.Status, rows: list[Row], conditions: list[Condition]) -> Text:
    level, said_ = headline(conditions)
    ready = "ready" if status["ready"] else "not ready"
    said = f"binlogd {status['version']} {status['state']}, {ready}, "
    said += f"up {duration(status['uptime_seconds'])}, "
    said += f"{counted(len(rows), 'target')}; {said_}"
    return _line(said, COLOURS[level])


def _pipeline(p: doc.Pipeline, history: History) -> Iterator[Text]:
    rates = [history.rows_rate(p["pipeline"], t["target"]) or 0.0 for t in p["targets"]]
    reads = short(history.messages_rate(p["pipeline"]))
    yield _line(
        f"{p['pipeline']}: {p['stage']} | lag {behind(p)} | {reads} messages/s | "
        f"{size(p['buffered_bytes'])} buffered, {size(p['staged_bytes'])} staged | "
        f"{p['writes_in_flight']} writes, oldest {duration(p['oldest_write_seconds'])} | "
        f"{short(sum(rates))} rows/s"
    )
    held = [(part["source"], by) for part in p["partitions"] if (by := part["held_by"])]
    if held:
        source, by = max(held, key=lambda each: each[1]["messages"])
        yield _line(f"  {by['target']} holds {source} by {counted(by['messages'], 'message')}")


def _jobs(jobs: Sequence[JobFigures]) -> Iterator[Text]:
    for job in open_jobs(jobs):
        left = duration(job["progress"]["eta_seconds"])
        said = f"job {job['job']}: {state_of(job)}, {done_of(job['progress'])}, {left} left"
        yield _line(f"{said} {job['message'] or ''}", "red" if job["state"] == "failed" else "cyan")


def _targets(rows: list[Row]) -> Table:
    table = Table(box=None, expand=True, pad_edge=False)
    for name, ratio in (("target", 3), ("state", 1), ("lag", 2), ("rows/s", 1), ("write", 2),
                        ("not well", 3)):  # fmt: skip
        table.add_column(name, ratio=ratio, no_wrap=True, overflow="ellipsis")
    for row in rows:
        t, write = row.target, row.target["write"]
        flying = (
            f"{counted(write['rows'], 'row')}, {duration(write['age_seconds'])}" if write else "-"
        )
        cells = (t["target"], t["phase"], behind(t), short(row.rate), flying, row.why or "-")
        table.add_row(*map(_line, cells), style="red" if row.is_ill else "")
    return table


def _rest(more: int, every: int) -> Text:
    if more > 0:
        return _line(f"and {more:,} more; --search and --ill choose", "dim")
    return _line("" if every else "no target has got a change yet", "dim")
