"""``binlogd tables load``: plans loads, has the daemon carry them out, follows them if wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from changes.model.printable import json_text
from daemon.config.config import Config
from daemon.operations.engine.port import Plan
from daemon.operations.engine.record import Wanted
from daemon.operations.load.kind import KIND, LoadKind
from daemon.operations.load.together import together
from daemon.operations.requests import OfflineLook, added, failed, followed
from daemon.state import control
from databases.base.port import DatabaseAway, DatabaseRefused
from offsets.store import StoreError
from settings.exit import Exit
from sources.base.port import NotAnswered, TopicMissing


def load(
    settings: Config, console: Console, patterns: Sequence[str], flags: Mapping[str, bool]
) -> int:
    """Load what the patterns choose, in each pipeline that has it. Returns the exit status.

    ``flags``: dry_run, wait, json, anew. Status 0: it is recorded, or with ``wait`` done; 1: it
    failed, or something is away; 2: it can't be done.
    """
    try:
        plans = planned(settings, patterns, anew=flags["anew"])
    except (
        DatabaseAway, DatabaseRefused, NotAnswered, TopicMissing, StoreError,
    ) as error:  # fmt: skip
        return failed(settings, str(error), Exit.PIPELINE_FAILED)
    _show(console, plans, flags["json"])
    refusals = [line for plan in plans for line in plan.refusals]
    for line in refusals:
        failed(settings, line, Exit.UNUSABLE)
    if refusals:
        return Exit.UNUSABLE.value
    if flags["dry_run"]:
        return Exit.OK.value
    try:
        wanted = [one for plan in plans for one in plan.wanted]
        jobs = [added(settings, one) for one in wanted]
        for job in jobs:
            line = f"job {job} is recorded: binlogd jobs show {job}"
            console.print(line, markup=False, highlight=False)
        if not flags["wait"]:
            return Exit.OK.value
        say = partial(console.print, markup=False, highlight=False)
        return _ended(settings, [followed(settings, job, say) for job in jobs])
    except control.NotRunning as error:
        return failed(settings, f"{error}: the running daemon loads", Exit.NOT_RUNNING)
    except control.ControlError as error:
        return failed(settings, str(error), Exit.PIPELINE_FAILED)


def planned(settings: Config, patterns: Sequence[str], *, anew: bool = False) -> list[Plan]:
    """A plan for each pipeline that has one of the tables; if none has, all their refusals."""
    look, kind = OfflineLook(settings), LoadKind()
    params = {"anew": True} if anew else {}
    plans = {
        name: kind.plan(look, Wanted(KIND, name, tuple(patterns), params))
        for name in settings.pipeline
    }
    return list(together(plans, patterns).values())


def _show(console: Console, plans: Sequence[Plan], as_json: bool) -> None:
    if as_json:
        print(json_text([dict(plan.document) for plan in plans], indent=1))
        return
    for plan in plans:
        for line in plan.lines:
            console.print(line, markup=False, highlight=False)


def _ended(settings: Config, jobs: Sequence[Mapping[str, Any]]) -> int:
    bad = [job for job in jobs if job["state"] != "done"]
    for job in bad:
        failed(settings, f"job {job['job']}: {job['state']}: {job['message']}", Exit.UNUSABLE)
    return Exit.PIPELINE_FAILED.value if bad else Exit.OK.value
