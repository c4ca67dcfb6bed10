"""Prints a pipeline's snapshot as tables for people."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from offsets.moves import MarkMoves
from offsets.snapshot import Snapshot


def print_snapshot(console: Console, snapshot: Snapshot) -> None:
    """Print partitions, targets with their marks, and running rebuilds."""
    console.print(f"pipeline {snapshot.pipeline}, group {snapshot.group}", highlight=False)
    for topic, name in sorted(snapshot.formats.items()):
        console.print(f"topic {topic} is {name}", highlight=False, markup=False)
    titles = ("partition", "frontier", "confirmed by the broker", "leader epoch")
    partitions = Table(*titles, box=None)
    for source, state in sorted(snapshot.partitions.items()):
        confirmed = "-" if state.confirmed is None else str(state.confirmed)
        confirmed += " (reset)" if state.reset else ""
        epoch = "-" if state.log is None else str(state.log.epoch)
        partitions.add_row(str(source), str(state.frontier), confirmed, epoch)
    console.print(partitions)
    targets = Table("target", "version", "high-water marks", box=None)
    for target, mark in sorted(snapshot.targets.items()):
        marks = ", ".join(f"{source}={hwm}" for source, hwm in sorted(mark.hwms.items()))
        if mark.moves is not None:
            marks += f" ({_moves(mark.moves)} at the next start)"
        targets.add_row(target, mark.version or "-", marks)
    console.print(targets)
    _print_rebuilds(console, snapshot)


def _moves(moves: MarkMoves) -> str:
    ways = ("lowered to", moves.lower), ("lifted to", moves.lift)
    return ", ".join(
        f"{source} {way} {to}" for way, at in ways for source, to in sorted(at.items())
    )


def _print_rebuilds(console: Console, snapshot: Snapshot) -> None:
    for target, rebuild in sorted(snapshot.rebuilds.items()):
        until = ", ".join(f"{source}={last}" for source, last in sorted(rebuild.until.items()))
        what = "is given up" if rebuild.cancelled else f"is filled until {until}"
        console.print(f"{target} is being rebuilt: {rebuild.into} {what}", highlight=False)
