"""``binlogd pause``, ``binlogd resume`` and ``binlogd drain``."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from daemon.cli.base.options import ConfigOption, StateDirOption, ask, quit_with, state_folder
from daemon.operations.pause.answer import PAUSE, RESUME
from settings.exit import Exit

ASK_EVERY_S = 0.5
"""Between two looks. More than the time for which looks share their answers."""

PipelineArgument = Annotated[str, typer.Argument(help="The pipeline's name.")]
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A pipeline, or a target such as lake.shop.orders.")
]
ReasonOption = Annotated[
    str, typer.Option(help="What others read in status, metrics and on the page.")
]


def pause(
    name: NameArgument,
    reason: ReasonOption = "",
    config: ConfigOption = Path("config.toml"),
    state_dir: StateDirOption = None,
) -> None:
    """Have a pipeline read nothing, or a target not be written, until binlogd resume.

    It outlasts restarts. What comes for a paused target is kept in its spill.
    """
    folder = state_folder(config, state_dir)
    print(ask(folder, {"ask": PAUSE, "name": name, "reason": reason}))


def resume(
    name: NameArgument,
    config: ConfigOption = Path("config.toml"),
    state_dir: StateDirOption = None,
) -> None:
    """Have a paused pipeline or target go on where it was."""
    print(ask(state_folder(config, state_dir), {"ask": RESUME, "name": name}))


def drain(
    pipeline: PipelineArgument,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until all that was read is written. Status 75: not.")
    ] = False,
    within: Annotated[float, typer.Option(help="Seconds that --wait waits.")] = 600.0,
    reason: ReasonOption = "",
    config: ConfigOption = Path("config.toml"),
    state_dir: StateDirOption = None,
) -> None:
    """Have a pipeline write all that it has read, and then stay paused."""
    if "." in pipeline:
        quit_with(f"{pipeline}: a pipeline is drained; a target is paused", Exit.UNUSABLE)
    folder = state_folder(config, state_dir)
    print(ask(folder, {"ask": PAUSE, "name": pipeline, "reason": reason}))
    if not wait:
        return
    end = time.monotonic() + within
    while True:
        # Answers of a moment ago may be shared: what was read since is not in them.
        threading.Event().wait(ASK_EVERY_S)
        left = list(undone(ask(folder, {"ask": "status"}), pipeline))
        if not left:
            print(f"pipeline {pipeline} is drained")
            return
        if time.monotonic() > end:
            lines = [f"pipeline {pipeline} is not drained within {within:g} s:", *left]
            quit_with("\n".join(lines), Exit.DEADLINE)


def undone(status: Mapping[str, Any], pipeline: str) -> Iterator[str]:
    """What a pipeline that reads nothing more has not written yet, a line each."""
    found = next((p for p in status["pipelines"] if p["pipeline"] == pipeline), None)
    if found is None:
        yield "it was removed"
        return
    if found["failure"] or found["stage"] != "running":
        yield f"it is {found['stage']}: {found['failure'] or 'for a moment'}"
    silent = [each["actor"] for each in status["silent"]]
    yield from (f"{actor} is busy" for actor in silent if actor.startswith(f"{pipeline}/"))
    for part in found["partitions"]:
        if part["unapplied_messages"]:
            yield f"{part['source']}: {part['unapplied_messages']:,} messages are not written"
    for target in found["targets"]:
        if target["holds_frontier_of"]:
            why = target["last_error"]["reason"] if target["last_error"] else target["phase"]
            yield f"{target['target']}: {why}"
