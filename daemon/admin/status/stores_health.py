"""What is not well with what a pipeline stores: positions, dead letters, cuts, counts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition, Level
from daemon.admin.status.cuts_member import Cuts
from daemon.admin.status.words import duration
from settings.counted import counted
from settings.shell import quoted


def of_stores(p: doc.Pipeline) -> Iterator[Condition]:
    """A store that takes nothing, and letters that wait for a person."""
    letters, of = p["dead_letters"], f"--pipeline {quoted(p['pipeline'])}"
    if p["offset_file"]["error"]:
        line = f"the positions can't be stored: {p['offset_file']['error']}"
        yield Condition("offset_store_failing", line)
    if letters["error"]:
        line = f"a dead letter can't be stored, {letters['waiting']:,} wait: {letters['error']}"
        yield Condition("dead_letter_store_failing", line)
    if letters["open"]:
        line = f"{counted(letters['open'], 'dead letter is', 'dead letters are')} not replayed"
        line += " (binlogd dead-letters list)"
        command = f"binlogd dead-letters replay {of} --all"
        yield Condition("dead_letters", line, command=command)


def of_cuts(p: doc.Pipeline, lasting_s: float) -> Iterator[Condition]:
    """Readers of cuts get no new ones: ill after ``lasting_s``. What the last one is without."""
    cuts = p["cuts"]
    if cuts is None:
        return
    if (error := cuts["error"]) is not None:
        seconds = cuts["failing_seconds"]
        since = "" if seconds is None else f" for {duration(seconds)}"
        level: Level = "passing" if seconds is not None and seconds <= lasting_s else "ill"
        yield Condition("cuts_not_made", f"no cut is made{since}: {error}", level, seconds=seconds)
    elif left_out := cuts["left_out"]:
        name, why = next(iter(left_out.items()))
        more = len(left_out) - 1
        line = f"cut {cuts['number']} is without {name}: {why}"
        line += f"; and without {counted(more, 'other table')}" if more else ""
        yield Condition("cut_incomplete", line, "passing")


def of_side_work(p: doc.Pipeline, lasting_s: float) -> Iterator[Condition]:
    """Tables get no counts, or no moments of gates: ill after ``lasting_s``. Marks carry counts
    meanwhile; and a table says too little."""
    for work, kind, what in (
        (p["counts"], "counts_not_folded", "counts have not come into their table"),
        (p["valid_through"], "valid_through_not_set", "a table has not said what gates closed"),
    ):
        if work is None or work["error"] is None:
            continue
        seconds = work["failing_seconds"]
        level: Level = "passing" if seconds is not None and seconds <= lasting_s else "ill"
        line = f"{what} for {duration(seconds)}: {work['error']}"
        yield Condition(kind, line, level, seconds=seconds)


def last_cut(cuts: Cuts) -> str:
    """The last one, in a line."""
    if cuts["number"] is None:
        return "no cut in this run yet"
    line = (
        f"cut {cuts['number']}, {duration(cuts['seconds_ago'])} ago: "
        f"{counted(cuts['tables'], 'table')}"
    )
    line += f", without {len(cuts['left_out']):,}" if cuts["left_out"] else ""
    return line if cuts["boundary"] == "transaction" else f"{line}, by time"
