"""``binlogd offsets reset``, the command: prints the plan, or has it carried out."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from daemon.config.config import Config
from daemon.operations.reset.offset_reset import (
    ResetRefused,
    ResetWish,
    describe,
    instance_ids,
    make_plan,
    refuse_members,
    reset_offline,
)
from daemon.operations.reset.running import BEGIN, LOOK
from daemon.state import control
from daemon.state.edits import EditRefused
from daemon.state.offset_transfer import export_snapshot
from offsets.reset import ResetPlan
from offsets.snapshot import Snapshot
from offsets.store import StoreError
from settings.exit import Exit

LOOK_EVERY_S = 0.5
"""Between two queries to the daemon: a reset drains, writes and asks the broker, mostly seconds."""


def run_reset(config: Config, pipeline: str, wish: ResetWish, execute: bool) -> int:
    """Print what a reset would do, or do it. Returns the exit status."""
    try:
        if not config.pipeline[pipeline].remembers:
            raise EditRefused(
                f"pipeline {pipeline} has no store that keeps a snapshot (file, kafka-topic), and "
                "marks can't be moved by the group's commit"
            )
        if not execute:
            return _dry(config, pipeline, wish)
        try:
            return _running(config, pipeline, wish)
        except control.NotRunning:
            return _offline(config, pipeline, wish)
    except EditRefused as error:
        _complain(config, str(error))
        return Exit.UNUSABLE.value
    except (StoreError, control.ControlError) as error:
        _complain(config, str(error))
        return Exit.PIPELINE_FAILED.value


def _dry(config: Config, pipeline: str, wish: ResetWish) -> int:
    plan = _plan(config, pipeline, wish)
    if not _show(config, plan, wish.force):
        return Exit.UNUSABLE.value
    if not plan.nothing:
        print("nothing was changed: --execute does it")
    return Exit.OK.value


def _plan(config: Config, pipeline: str, wish: ResetWish) -> ResetPlan:
    loaded = export_snapshot(config, pipeline)
    for damage in loaded.damage:
        _complain(config, damage)
    recorded = loaded.snapshot or Snapshot(pipeline, config.group(pipeline))
    return make_plan(config, pipeline, recorded, wish)


def _show(config: Config, plan: ResetPlan, force: bool) -> bool:
    """Print a plan. Returns whether it may be carried out."""
    if plan.nothing and not plan.refusals and not plan.losses:
        print("nothing to do: all stands there already")
        return True
    for line in describe(plan):
        print(line)
    for line in (*plan.refusals, *plan.losses):
        _complain(config, f"{'warning: ' if force and not plan.refusals else 'refused: '}{line}")
    if plan.losses and not plan.refusals and not force:
        _complain(config, "--force accepts what is lost")
    return not plan.refusals and (force or not plan.losses)


def _offline(config: Config, pipeline: str, wish: ResetWish) -> int:
    try:
        plan, problem = reset_offline(config, pipeline, wish)
    except ResetRefused as error:
        _show(config, error.plan, wish.force)
        return Exit.UNUSABLE.value
    _show(config, plan, wish.force)
    if problem is not None:
        _complain(config, f"warning: the group's commit is not moved yet: {problem}")
    if not plan.nothing:
        print("recorded; the next start moves the targets' marks before it reads anything")
    return Exit.OK.value


def _running(config: Config, pipeline: str, wish: ResetWish) -> int:
    """Have the daemon reset. Raises NotRunning if there is none."""
    folder = config.daemon.state_dir
    status = control.ask(folder, {"ask": "status"})
    plan = _plan(config, pipeline, wish)
    stages = {found["pipeline"]: found["stage"] for found in status["pipelines"]}
    stands = stages.get(pipeline) == "ended"
    # A stopped pipeline is started again even if nothing is to be moved.
    if (plan.nothing and not stands) or not _allowed(plan, wish.force):
        return Exit.OK.value if _show(config, plan, wish.force) else Exit.UNUSABLE.value
    # A stopped pipeline has left the group; a running one is a member itself. Checked first, so
    # that a pipeline is not stopped in vain; checked again once it stands still.
    ours = instance_ids(config, pipeline)
    refuse_members(config, pipeline, ours, own=0 if stands or ours else 1)
    begun = control.ask(folder, {"ask": BEGIN, "pipeline": pipeline, **asdict(wish)})
    if begun["refused"] is not None:
        raise EditRefused(begun["refused"])
    print(f"pipeline {pipeline} is stopped, changed and started again", file=sys.stderr)
    said = _wait(config, begun["ticket"])
    for key in ("refused", "failed"):
        if said[key] is not None:
            _complain(config, said[key])
            refused = key == "refused"
            return Exit.UNUSABLE.value if refused else Exit.PIPELINE_FAILED.value
    _print(said["lines"])
    print(f"done; pipeline {pipeline} runs again")
    return Exit.OK.value


def _allowed(plan: ResetPlan, force: bool) -> bool:
    return not plan.refusals and (force or not plan.losses)


def _wait(config: Config, ticket: int) -> dict[str, Any]:
    while True:
        try:
            said: dict[str, Any] = control.ask(
                config.daemon.state_dir, {"ask": LOOK, "ticket": ticket}
            )
        except control.NotRunning as error:
            raise StoreError(
                f"{error} any more: what is recorded is whole, `binlogd offsets show` shows it, "
                "and the next start goes on from it"
            ) from error
        if said["done"]:
            return said
        threading.Event().wait(LOOK_EVERY_S)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _complain(config: Config, text: str) -> None:
    print(f"binlogd: {config.redactor.text(text)}", file=sys.stderr)
