"""``tables retry`` on the running daemon: finds the target's processor and asks it."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

import pykka

from actors.contract.addresses import Address
from actors.contract.messages import RetryAnswer, RetryTarget
from actors.runtime.shell import Directory
from daemon.state.control import ControlError

ANSWER_WITHIN_S = 4.0
"""The limit for all processors together. One may be decoding a batch. Below a connection's
limit."""


class Retry:
    """Answers on the control thread. The main thread sets the actors once they run."""

    def __init__(self, paused: Callable[[], Container[str]] = tuple) -> None:
        """``paused``: what a person has paused."""
        self._paused = paused
        self._directory: Directory | None = None
        self._processors: tuple[Address, ...] = ()

    def watch(self, directory: Directory, addresses: Iterable[Address]) -> None:
        """Ask these actors from now on."""
        self._processors = tuple(a for a in addresses if a.role == "processor")
        self._directory = directory

    def __call__(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Start a release. ``begun``: whether it has started. ``line``: what was started, or why
        not.

        Raises ControlError.
        """
        target = request.get("target")
        if not isinstance(target, str):
            raise ControlError('"target" is wanted')
        if self._directory is None:
            raise ControlError("the daemon is starting; try again")
        if target in self._paused():
            line = f"{target}: a person has paused it: `binlogd resume {target}`"
            return {"begun": False, "line": line}
        asked = [self._directory.question(a, RetryTarget(target)) for a in self._processors]
        deadline = time.monotonic() + ANSWER_WITHIN_S
        silent = False
        for future in asked:
            try:
                answer = future.get(timeout=max(0.0, deadline - time.monotonic()))
            except pykka.Timeout:
                silent = True
                continue
            except pykka.ActorDeadError:
                continue
            if isinstance(answer, RetryAnswer):
                return {"begun": answer.begun, "line": answer.line}
        if silent:
            raise ControlError(f"{target}: a processor is busy and has not answered; try again")
        line = (
            f"{target}: unknown: no message of it came since the start. Where `binlogd tables list`"
            f" shows a spill of it, no route wants it any more: have one take it again and restart,"
            f" or `binlogd tables discard {target}`"
        )
        return {"begun": False, "line": line}
