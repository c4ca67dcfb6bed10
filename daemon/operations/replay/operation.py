"""``binlogd dead-letters replay``: the operation, which a command carries out itself."""

from __future__ import annotations

from typing import Annotated

from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, Option
from daemon.operations.engine.port import Plan
from daemon.operations.replay.chosen import LetterParams, chosen_letters
from daemon.operations.replay.replay import Replay
from daemon.state.control import ControlError
from sources.base.port import AppendFailed


class ReplayParams(LetterParams):
    """Which letters, and how."""

    force: Annotated[bool, Option("Even over newer changes, or a second time.")] = False


class ReplayOperation(Operation[ReplayParams]):
    """Append the records of letters to their partitions again, to be applied as they are now.

    Where nothing came since that touches their rows. Status 1: some are left, 2: all are.
    """

    words, params, loses = "dead-letters replay", ReplayParams, True
    example = "--all --reason unfit"
    own_process = True

    def plan(self, params: ReplayParams, here: Here) -> Plan:
        """What would be replayed, and what not, with the reasons."""
        return self._replay(params, here).dry()

    def step(self, params: ReplayParams, here: Here) -> Done:
        """Append the allowed records, and mark their letters."""
        try:
            return Done(status=self._replay(params, here).execute())
        except AppendFailed as error:
            raise ControlError(str(error)) from error

    def _replay(self, params: ReplayParams, here: Here) -> Replay:
        return Replay(here, *chosen_letters(params, here), params.force)
