"""``binlogd tables verify``: plans a comparison, has the daemon do it, and prints what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from changes.model.printable import json_text
from daemon.config.config import Config
from daemon.operations.engine.port import Plan
from daemon.operations.engine.record import Wanted
from daemon.operations.requests import OfflineLook, added, failed, followed
from daemon.operations.verify.kind import VerifyKind
from daemon.operations.verify.result_table import print_result
from daemon.state import control
from databases.base.port import DatabaseAway, DatabaseRefused
from settings.exit import Exit


def verify(
    settings: Config,
    console: Console,
    patterns: Sequence[str],
    params: Mapping[str, Any],
    flags: Mapping[str, bool],
) -> int:
    """Compare what the patterns choose, in each pipeline that has it. Returns the exit status.

    ``flags``: dry_run, json. Status 0: all is equal, or was repaired; 1: something differs or could
    not be decided.
    """
    try:
        plans = planned(settings, patterns, params)
    except (DatabaseAway, DatabaseRefused) as error:
        return failed(settings, str(error), Exit.PIPELINE_FAILED)
    refusals = [line for plan in plans for line in plan.refusals]
    for line in refusals:
        failed(settings, line, Exit.UNUSABLE)
    if refusals:
        return Exit.UNUSABLE.value
    if flags["dry_run"]:
        _show_plans(console, plans, flags["json"])
        return Exit.OK.value
    try:
        jobs = [added(settings, plan.wanted[0]) for plan in plans]
        say = partial(console.print, markup=False, highlight=False)
        quiet = flags["json"]
        found = [followed(settings, job, _nothing if quiet else say) for job in jobs]
    except control.NotRunning as error:
        line = f"{error}: tables are compared by the running daemon"
        return failed(settings, line, Exit.NOT_RUNNING)
    except control.ControlError as error:
        return failed(settings, str(error), Exit.PIPELINE_FAILED)
    return _printed(settings, console, found, flags["json"])


def planned(settings: Config, patterns: Sequence[str], params: Mapping[str, Any]) -> list[Plan]:
    """A plan for each pipeline that has one of the tables; if none has, all their refusals."""
    look, kind = OfflineLook(settings), VerifyKind()
    plans = [
        kind.plan(look, Wanted("verify", name, tuple(patterns), dict(params)))
        for name in settings.pipeline
    ]
    usable = [plan for plan in plans if plan.wanted[0].params.get("tables")]
    if not usable:
        return plans
    chosen = {name for plan in usable for name in plan.document["patterns"]}
    left = [pattern for pattern in patterns if pattern not in chosen]
    if left:
        return [Plan((), refusals=tuple(f"{one}: no table is called so" for one in left))]
    return [Plan(plan.wanted, plan.lines, plan.document) for plan in usable]


def _show_plans(console: Console, plans: Sequence[Plan], as_json: bool) -> None:
    if as_json:
        print(json_text([dict(plan.document) for plan in plans], indent=1))
        return
    for plan in plans:
        for line in plan.lines:
            console.print(line, markup=False)


def _printed(
    settings: Config, console: Console, jobs: Sequence[Mapping[str, Any]], as_json: bool
) -> int:
    if as_json:
        documents = [{"job": job["job"], "state": job["state"], **job["result"]} for job in jobs]
        print(json_text(documents, indent=1))
    status = Exit.OK
    for job in jobs:
        if job["state"] != "done":
            reason = f"job {job['job']}: {job['state']}: {job['message']}"
            return failed(settings, reason, Exit.UNUSABLE)
        if not as_json:
            print_result(console, job["result"])
        if not job["result"]["equal"]:
            status = Exit.PIPELINE_FAILED
    return status.value


def _nothing(line: str) -> None:
    """The JSON alone is printed."""
