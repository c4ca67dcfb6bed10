"""``binlogd dead-letters replay``: the operation, which a command carries out itself."""

from __future__ import annotations

from typing import Annotated

from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, Option, Params
from daemon.operations.engine.port import Plan
from daemon.operations.replay.replay import Replay
from daemon.state.control import ControlError
from daemon.state.dead_letters.index import filter_of
from daemon.state.edits import EditRefused, chosen_pipeline
from daemon.state.layout import check_layout
from sources.base.port import AppendFailed


class ReplayParams(Params):
    """Which letters."""

    letters: Annotated[
        list[str] | None,
        Option("TOPIC:PARTITION:OFFSET, as list names them.", argument=True, metavar="LETTER..."),
    ] = None
    pipeline: Annotated[str | None, Option("Which pipeline; not needed where there is one.")] = None
    topic: Annotated[str | None, Option("Records of this topic.")] = None
    table: Annotated[
        str | None, Option("A pattern (*, ?) of the source's table, or of the target.")
    ] = None
    reason: Annotated[
        str | None, Option("unreadable, no-key, unfit, or a part of the error's text.")
    ] = None
    since: Annotated[
        str | None, Option("Stored since: 2026-01-31T00:00:00Z, or an age such as 2h.")
    ] = None
    every: Annotated[bool, Option("All that are open.", flag="--all")] = False
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
        name = chosen_pipeline(here.config.pipeline, params.pipeline)
        try:
            check_layout(here.config.daemon.state_dir)
            of = (params.topic, params.table, params.reason, params.since)
            letters = filter_of(params.letters or (), *of)
        except (OSError, ValueError) as error:
            raise EditRefused(str(error)) from error
        if letters.everything and not params.every:
            raise EditRefused(
                "which? Name letters as `dead-letters list` does, filter them, or say --all"
            )
        return Replay(here, name, letters, params.force)
