"""``binlogd collector``: what a daemon's collectors do; ``daemon/operations/collectors.py`` has the
commands that change something."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from changes.model.printable import json_text
from daemon.admin.status.conditions import Condition
from daemon.admin.status.health import shown
from daemon.admin.status.words import duration, size
from daemon.cli.base.options import ConfigOption, JsonOption, load_config, make_console
from daemon.state import control
from settings.exit import Exit

app = typer.Typer(help="What reads a source's log into Kafka.", no_args_is_help=True)


@app.command("status", epilog="Example: binlogd collector status --json")
def collector_status(
    name: Annotated[str | None, typer.Argument(help="All without.", metavar="NAME")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what collectors do, and what their sources keep for them. Status 3: no daemon runs;
    1: it does not answer, or one of them does not read; 2: there is none of that name."""
    settings = load_config(config, lenient=True)
    try:
        status = control.ask(settings.daemon.state_dir, {"ask": "status"})
    except control.NotRunning as error:
        _refuse(str(error), error.status)
    except control.ControlError as error:
        _refuse(str(error), Exit.PIPELINE_FAILED)
    every = [one for one in status.get("collectors", []) if name in (None, one["collector"])]
    if name is not None and not every:
        known = ", ".join(one["collector"] for one in status.get("collectors", [])) or "none"
        _refuse(f"there is no collector {name!r}; have: {known}", Exit.UNUSABLE)
    if as_json:
        print(json_text(every, indent=1))
    else:
        _print(make_console(), every, shown(status))
    reads = all(one["state"] in ("running", "paused", "removed") for one in every)
    sys.exit((Exit.OK if reads else Exit.PIPELINE_FAILED).value)


def _refuse(line: str, status: Exit) -> None:
    print(f"binlogd: {line}", file=sys.stderr)
    sys.exit(status.value)


def _print(console: Console, every: list[dict[str, Any]], conditions: list[Condition]) -> None:
    if not every:
        console.print("no collector is configured")
    for one in every:
        where = "" if one["connect"] == "embedded" else f" in {one['connect']}"
        line = f"collector {one['collector']}{where}: {one['state']} for {duration(one['seconds'])}"
        console.print(escape(line))
        if one["position"]:
            at = ", ".join(f"{key} {value}" for key, value in one["position"].items())
            console.print(escape(f"  position: {at}"))
        console.print(f"  the source keeps behind it: {_behind(one)}")
        for condition in conditions:
            if condition.subject == f"collector {one['collector']}":
                then = f": {condition.command}" if condition.command else ""
                console.print(f"  {escape(condition.line + then)}")


def _behind(one: dict[str, Any]) -> str:
    if one["beyond_bytes"] is None:
        return "not known"
    seconds = one["beyond_seconds"]
    since = duration(seconds)
    if seconds is not None and seconds < 0:
        since = f"stamped {duration(-seconds)} ahead of its clock"
    said = f"{size(one['beyond_bytes'])}, {since}"
    if one["purge_seconds"] is not None:
        said += f"; it may remove the position in {duration(one['purge_seconds'])}"
    if one["room_bytes"] is not None:
        said += f"; it removes the position after {size(one['room_bytes'])} more of log"
    return said
