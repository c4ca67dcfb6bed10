"""``offsets reset`` on the running daemon: requested on the control socket, done by an edit.

An edit takes as long as a drain, but a connection is served for seconds. So the client gets a
ticket and asks again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from daemon.config.config import Config
from daemon.operations.reset.offset_reset import (
    ResetWish,
    check_plan,
    describe,
    instance_ids,
    make_plan,
    refuse_members,
)
from daemon.state.control import Answer, ControlError
from daemon.state.edits import Change, EditRefused
from offsets.snapshot import Snapshot

BEGIN = "offsets-reset"
LOOK = "offsets-reset-state"


class RunningResets:
    """Answers on the control thread; plans on the edits' threads."""

    def __init__(self, config: Config, edit: Callable[[str, Change], Future[None]]) -> None:
        self._config = config
        self._edit = edit
        self._numbers = itertools.count(1)
        self._edits: dict[int, tuple[Future[None], list[str]]] = {}

    @property
    def answers(self) -> dict[str, Answer]:
        """The requests and their handlers."""
        return {BEGIN: self.begin, LOOK: self.look}

    def begin(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Start: returns a ``ticket``, or why it is ``refused``. Raises ControlError."""
        name = request.get("pipeline")
        if not isinstance(name, str) or name not in self._config.pipeline:
            known = ", ".join(sorted(self._config.pipeline))
            return _refused(f"pipeline {name}: unknown; the daemon has: {known}")
        try:
            wish = ResetWish.of(request)
        except EditRefused as error:
            return _refused(str(error))
        if not self._config.pipeline[name].remembers:
            return _refused(f"pipeline {name} has no store that keeps a snapshot")
        lines: list[str] = []

        def change(recorded: Snapshot) -> Snapshot:
            plan = make_plan(self._config, name, recorded, wish)
            refuse_members(self._config, name, instance_ids(self._config, name))
            snapshot = check_plan(plan, wish.force)
            lines.extend(describe(plan))
            return snapshot

        ticket = next(self._numbers)
        self._edits[ticket] = (self._edit(name, change), lines)
        return {"ticket": ticket, "refused": None}

    def look(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The state: ``done`` and then ``lines``, or why it was ``refused`` or ``failed``.

        The ticket of a finished one is good for one more request. Raises ControlError.
        """
        ticket = request.get("ticket")
        if ticket not in self._edits:
            raise ControlError(f"ticket {ticket!r}: unknown")
        done, lines = self._edits[ticket]
        if not done.done():
            return {"done": False, "lines": [], "refused": None, "failed": None}
        del self._edits[ticket]
        error = done.exception()
        refused = str(error) if isinstance(error, EditRefused) else None
        failed = str(error) if error is not None and refused is None else None
        return {"done": True, "lines": lines, "refused": refused, "failed": failed}


def _refused(why: str) -> dict[str, Any]:
    return {"ticket": None, "refused": why}
