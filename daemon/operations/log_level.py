"""``binlogd log-level``: of the running daemon, until the next reload or restart."""

from __future__ import annotations

from typing import Annotated

import structlog

from daemon.config.log_level import NAMES
from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, Option, Params, say_plan
from daemon.operations.engine.port import Plan
from daemon.state.edits import EditRefused


class LogLevelParams(Params):
    """Which level, and of what."""

    level: Annotated[
        str, Option("debug, info, warning, error; default: as configured.", argument=True)
    ]
    actor: Annotated[
        str | None, Option("Of one actor: fetcher, shop/fetcher, shop/ (all of it).")
    ] = None


class LogLevelOperation(Operation[LogLevelParams]):
    """Set the running daemon's log level, until it is restarted."""

    words, params, example = "log-level", LogLevelParams, "debug --actor shop/fetcher"
    needs_daemon = "a daemon that starts has its configuration's"
    undone_by = "log-level default"

    def plan(self, params: LogLevelParams, here: Here) -> Plan:
        """Whether there is such a level."""
        if params.level not in (*NAMES, "default") or here.daemon.lent.levels is None:
            raise EditRefused(f"a level is required: {', '.join(NAMES)}")
        level = "as configured" if params.level == "default" else params.level
        line, seen = f"{params.actor or 'all'}: {level}", here.daemon.lent.levels.seen
        if params.actor is None or params.actor in seen:
            return Plan(lines=(line,))
        return Plan(
            lines=(line,), notes=(f"no event of {params.actor} so far; of {', '.join(seen)}",)
        )

    def step(self, params: LogLevelParams, here: Here) -> Done:
        """Set it."""
        plan, levels = self.plan(params, here), here.daemon.lent.levels
        assert levels is not None
        level = None if params.level == "default" else params.level
        if params.actor:
            levels.set_own(params.actor, level)
        else:
            levels.set(level or here.config.log.level)
        log = structlog.get_logger().bind(actor="reload")
        log.warning("log_level", level=level or "as configured", of=params.actor or "all")
        say_plan(plan, here)
        return Done()
