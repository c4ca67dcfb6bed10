"""``binlogd offsets move``: from the embedded broker to another Kafka, positions kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, Params
from daemon.operations.engine.port import Plan
from daemon.operations.move.move import LogMove
from daemon.operations.move.old_log import old_log
from daemon.state.control import ControlError
from daemon.state.edits import EditRefused, claimed
from sources.base.port import LogUnreadable
from sources.base.topics import NotSent, UnfitTopic


class MoveParams(Params):
    """None: the configuration says where to."""


class MoveOperation(Operation[MoveParams]):
    """Have all pipelines and collectors of the embedded broker go on in the Kafka of [kafka].

    With the daemon stopped, embedded = false, and all applied. Status 2: refused.
    """

    words, params = "offsets move", MoveParams
    example = "--dry-run"
    own_process = True

    def plan(self, params: MoveParams, here: Here) -> Plan:
        """What would be moved, and what is in the way."""
        with _opened(here) as move:
            return move.look().plan()

    def step(self, params: MoveParams, here: Here) -> Done:
        """Look once more, and do it."""
        with _opened(here) as move:
            found = move.look()
            plan = found.plan()
            if plan.refusals:
                raise EditRefused(*plan.refusals)
            here.say(*plan.lines)
            if not plan.nothing:
                here.say(*move.carry_out(found))
            return Done(plan.document)


@contextmanager
def _opened(here: Here) -> Iterator[LogMove]:
    config = here.config
    with claimed(config.daemon.state_dir), old_log(config) as old:
        try:
            yield LogMove(old, config, here.note)
        except UnfitTopic as error:
            raise EditRefused(str(error)) from error
        except (LogUnreadable, NotSent, OSError) as error:
            raise ControlError(str(error)) from error
