"""Operations on the running daemon: one protocol of the control socket for all of them.

``{"ask": "operation", "name": "tables retry", "params": {…}, "act": true}`` begins one, on a thread
of its own. The answer is its state; where it is not done, ``{"ask": "operation-state", "ticket": N,
"from": n}`` gives it again, without the lines that are known. A connection is served for seconds,
an operation takes as long as a drain.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from changes.model.printable import reason_of
from daemon.operations.engine.here import InDaemon, Lent, Tell
from daemon.operations.engine.operation import Done, Operation, parsed, perform
from daemon.state.control import Answer, ControlError, NotRunning, ask
from daemon.state.edits import EditRefused
from settings.exit import Exit

BEGIN, LOOK = "operation", "operation-state"

QUICK_S = 0.5
"""How long the first answer waits for the end. Other clients wait as long."""

ABANDONED_S = 60.0
"""After so long without a look nobody waits for an operation any more."""

MOST = 64
"""Operations at once: each has a thread."""

KEPT = 100
"""Operations whose end can still be looked at."""


class Task:
    """One requested operation."""

    def __init__(self) -> None:
        self.said: list[tuple[bool, str]] = []
        self.done: Done | None = None
        self.ended = threading.Event()
        self.looked_s = time.monotonic()

    def state(self, first: int = 0) -> dict[str, Any]:
        """What a client gets: lines from the ``first`` on."""
        done = self.done  # before the lines: the last ones are there then
        status, result = (None, None) if done is None else (done.status.value, done.result)
        return {"said": self.said[first:], "status": status, "result": result}


class Desk:
    """Answers on the control thread."""

    def __init__(self, lent: Lent, operations: Mapping[str, Operation[Any]]) -> None:
        self.lent = lent
        self._operations = operations
        self._tasks: dict[int, Task] = {}
        self._numbers = itertools.count(1)
        self._closed = threading.Event()
        self._log: Any = structlog.get_logger().bind(actor="operations")

    @property
    def answers(self) -> dict[str, Answer]:
        """The requests and their handlers."""
        return {BEGIN: self.begin, LOOK: self.look}

    def close(self) -> None:
        """Those that only wait end. Returns at once."""
        self._closed.set()

    def begin(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Begin one. Raises ControlError."""
        name, given = request.get("name"), request.get("params", {})
        operation = self._operations.get(name) if isinstance(name, str) else None
        if operation is None or not isinstance(given, dict):
            known = ", ".join(sorted(self._operations))
            raise ControlError(f'"name" is an operation, and "params" an object; known: {known}')
        ended = [number for number, task in self._tasks.items() if task.ended.is_set()]
        if len(self._tasks) - len(ended) >= MOST:
            raise ControlError(f"{MOST} operations are under way; try again")
        for number in ended[:-KEPT]:
            del self._tasks[number]
        ticket, task = next(self._numbers), Task()
        self._tasks[ticket] = task
        args = operation, given, request.get("act") is True, task
        name = f"operation-{ticket}"
        threading.Thread(target=self._run, args=args, name=name, daemon=True).start()
        task.ended.wait(QUICK_S)
        return {"ticket": ticket, **self._redacted(task.state())}

    def look(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The state of one. Raises ControlError."""
        ticket, first = request.get("ticket"), request.get("from", 0)
        if not isinstance(ticket, int) or ticket not in self._tasks or not isinstance(first, int):
            raise ControlError(f"ticket {ticket!r}: unknown")
        task = self._tasks[ticket]
        task.looked_s = time.monotonic()
        return {"ticket": ticket, **self._redacted(task.state(max(0, first)))}

    def carried_out(self, name: str, /, **given: Any) -> tuple[Done, list[str]]:
        """Carry one out for the daemon itself; the lines that it said. Any thread."""
        task = Task()
        self._run(self._operations[name], given, True, task)
        assert task.done is not None
        return task.done, self._redacted([line for _, line in task.said])

    def _run(
        self, operation: Operation[Any], given: Mapping[str, Any], act: bool, task: Task
    ) -> None:
        def waited(seconds: float) -> bool:
            return self._closed.wait(seconds) or time.monotonic() - task.looked_s > ABANDONED_S

        here = InDaemon(self.lent, lambda good, line: task.said.append((good, line)), waited)
        try:
            params = parsed(operation, given)
            task.done = perform(operation, params, here, act)
        except EditRefused as error:
            here.note(*error.lines)
            task.done = Done(status=Exit.UNUSABLE)
        except Exception as error:
            # A fault of one operation is its answer; nobody awaits this thread.
            self._log.exception("operation_failed", operation=operation.words)
            here.note(f"{type(error).__name__}: {reason_of(error)}")
            task.done = Done(status=Exit.PIPELINE_FAILED)
        finally:
            task.ended.set()

    def _redacted(self, found: Any) -> Any:
        return self.lent.daemon.config.redactor.deep(found)


# A command's side.

LOOK_EVERY_S = 0.3


def asked(state_dir: Path, name: str, given: Mapping[str, Any], act: bool, tell: Tell) -> Done:
    """Have the running daemon do it; ``tell`` gets the lines as they come. Raises NotRunning,
    ControlError."""
    state = ask(state_dir, {"ask": BEGIN, "name": name, "params": given, "act": act})
    known = 0
    while True:
        for good, line in state["said"]:
            tell(good, line)
        known += len(state["said"])
        if state["status"] is not None:
            return Done(state["result"], Exit(state["status"]))
        threading.Event().wait(LOOK_EVERY_S)
        try:
            state = ask(state_dir, {"ask": LOOK, "ticket": state["ticket"], "from": known})
        except NotRunning as error:
            raise ControlError(
                f"{error} any more: what is recorded is whole, and the next start continues from it"
            ) from error
