"""``binlogd offsets``: show, export, import, reset."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from daemon.cli.base.options import ConfigOption, chosen_pipeline, load_config, make_console, refuse
from daemon.config.config import Config
from daemon.state.offset_file import OffsetFile
from offsets.snapshot import MarkMoves, Snapshot
from offsets.snapshot_text import encode
from offsets.store import Loaded, StoreError
from settings.exit import Exit

# Prints a pipeline's snapshot as tables for people.


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


app = typer.Typer(help="What is recorded of positions.", no_args_is_help=True)


@app.command("show", epilog="Example: binlogd offsets show")
def offsets_show(config: ConfigOption = None) -> None:
    """Show what is recorded: frontiers, what the broker confirmed, the targets' marks.

    From the local file, without secrets and broker; of a pipeline without one from its stores.
    """
    settings = load_config(config, lenient=True)
    console = make_console()
    damaged = False
    for name, section in settings.pipeline.items():
        if "file" not in section.offset_stores:
            damaged |= _show_stored(console, load_config(config), name)
            continue
        file = OffsetFile(settings.daemon.state_dir, name)
        try:
            loaded = file.load()
        except OSError as error:
            refuse(f"{file.path} can't be read: {error}")
        for damage in loaded.damage:
            damaged = True
            print(f"binlogd: {damage}", file=sys.stderr)
        if loaded.snapshot is None:
            console.print(f"pipeline {name}: nothing recorded ({file.path})", highlight=False)
        else:
            print_snapshot(console, loaded.snapshot)
    sys.exit(Exit.PIPELINE_FAILED.value if damaged else 0)


def _recorded(settings: Config, name: str) -> Loaded:
    """What a pipeline's stores hold together. Damage is reported; a store that is away ends it."""
    from daemon.config.pipeline_config import PipelineConfig
    from daemon.state.recorded import export_snapshot

    try:
        loaded = export_snapshot(PipelineConfig(settings, name))
    except StoreError as error:
        refuse(settings.redactor.text(f"pipeline.{name}: {error}"))
    for damage in loaded.damage:
        print(f"binlogd: {damage}", file=sys.stderr)
    return loaded


def _show_stored(console: Console, settings: Config, name: str) -> bool:
    """Print what a pipeline's other stores hold. Returns whether some of it is damaged."""
    loaded = _recorded(settings, name)
    if loaded.snapshot is None:
        console.print(f"pipeline {name}: nothing recorded", highlight=False)
    else:
        print_snapshot(console, loaded.snapshot)
    return bool(loaded.damage)


@app.command("export", epilog="Example: binlogd offsets export --pipeline shop > shop.json")
def offsets_export(
    config: ConfigOption = None,
    pipeline: Annotated[
        str | None, typer.Option(help="Which pipeline; not needed where there is one.")
    ] = None,
) -> None:
    """Print what is recorded of one pipeline as JSON. Status 1 where nothing or damage is."""
    settings = load_config(config)
    name = chosen_pipeline(settings, pipeline)
    loaded = _recorded(settings, name)
    if loaded.snapshot is None:
        print(f"binlogd: pipeline {name}: nothing recorded", file=sys.stderr)
        sys.exit(Exit.PIPELINE_FAILED.value)
    print(encode(loaded.snapshot), end="")
    sys.exit(Exit.PIPELINE_FAILED.value if loaded.damage else 0)
