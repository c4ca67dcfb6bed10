"""``binlogd tables retry``: finds the target's processor and asks it."""

from __future__ import annotations

from typing import Annotated

from actors.contract.messages import GOES_ON_ALONE, RetryAnswer, RetryTarget
from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, Option, Params
from daemon.operations.engine.port import Plan
from daemon.state.control import ControlError
from daemon.state.edits import EditRefused
from daemon.state.pauses import paused_by_a_person
from settings.counted import counted
from settings.shell import quoted

TARGET = Option("As tables list names it.", argument=True)


class RetryParams(Params):
    """Which target."""

    target: Annotated[str, TARGET]


class RetryOperation(Operation[RetryParams]):
    """Release a target from quarantine: what was spilled is written first. Status 2: refused."""

    words, params, example = "tables retry", RetryParams, "lake.shop.orders"
    needs_daemon = "a target is released by the running daemon"

    def plan(self, params: RetryParams, here: Here) -> Plan:
        """As the last look at the target says."""
        target = params.target
        self._refuse_paused(target, here)
        for pipeline in here.daemon.lent.status()["pipelines"]:
            for each in pipeline["targets"]:
                if each["target"] != target:
                    continue
                if each["away"] is not None:
                    raise EditRefused(f"{target} {GOES_ON_ALONE}")
                if (held := each["quarantine"]) is None:
                    raise EditRefused(f"{target} is not in quarantine")
                if held["releasing"]:
                    raise EditRefused(f"{target} is being released already")
                spill = f"{counted(held['messages'], 'spilled message')} ({held['bytes']} bytes)"
                return Plan(lines=(f"{target}: {spill} would be replayed",))
        raise EditRefused(_unknown(target))

    def step(self, params: RetryParams, here: Here) -> Done:
        """Have it begin; a second one is refused."""
        self._refuse_paused(params.target, here)
        daemon = here.daemon
        if daemon.lent.directory is None:
            raise ControlError("the daemon is starting; try again")
        for answer in daemon.ask_actors(RetryTarget(params.target), daemon.lent.processors):
            if isinstance(answer, RetryAnswer):
                if not answer.begun:
                    raise EditRefused(answer.line)
                here.say(answer.line)
                return Done()
        raise EditRefused(_unknown(params.target))

    def _refuse_paused(self, target: str, here: Here) -> None:
        if target in here.daemon.lent.pauses.now():
            raise EditRefused(paused_by_a_person(target))


def _unknown(target: str) -> str:
    return (
        f"{target}: unknown: no message of it came since the start. Where `binlogd tables list`"
        f" shows a spill of it, no route wants it any more: have one take it again and restart,"
        f" or `binlogd tables discard {quoted(target)}`"
    )
