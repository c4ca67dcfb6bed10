"""``binlogd reload`` and SIGHUP on the running daemon: one at a time, on a thread of its own.

A reload takes as long as a drain, but a connection is served for seconds. So the client gets a
ticket and asks again.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import structlog

from daemon.config.log_level import NAMES
from daemon.operations.reload.reload import Reload, ReloadRefused, Running
from daemon.state.control import Answer, ControlError

BEGIN, LOOK, LEVEL = "reload", "reload-state", "log-level"


class ReloadAnswer:
    """Answers on the control thread; ``hang_up`` on any thread."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._last: tuple[int, Future[tuple[str, ...]]] | None = None
        self._log = structlog.get_logger().bind(actor="reload")

    @property
    def answers(self) -> dict[str, Answer]:
        """The requests and their handlers."""
        return {BEGIN: self.begin, LOOK: self.look, LEVEL: self.level}

    def begin(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Start one: returns its ``ticket``. Raises ControlError while another is under way."""
        discard = request.get("discard", [])
        if not isinstance(discard, list) or not all(isinstance(name, str) for name in discard):
            raise ControlError('"discard" is a list of targets')
        return {"ticket": self._begin(request.get("dry_run") is True, discard)[0]}

    def look(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The state: ``done`` and then ``lines``, or lines why it was ``refused``. Raises
        ControlError."""
        last = self._last
        if last is None or request.get("ticket") != last[0]:
            raise ControlError(f"ticket {request.get('ticket')!r}: unknown")
        if not last[1].done():
            return {"done": False, "lines": [], "refused": []}
        error = last[1].exception()
        if error is None:
            return {"done": True, "lines": list(last[1].result()), "refused": []}
        lines = error.lines if isinstance(error, ReloadRefused) else (str(error),)
        redact = self._running.config.redactor.text
        return {"done": True, "lines": [], "refused": [redact(line) for line in lines]}

    def level(self, request: Mapping[str, Any]) -> str:
        """Set the log's level until the next reload or restart; with ``actor`` of that one alone.
        Raises ControlError."""
        level, actor, levels = request.get("level"), request.get("actor"), self._running.levels
        if levels is None or level not in (*NAMES, None) or not isinstance(actor, str | None):
            raise ControlError(f"a level is wanted: {', '.join(NAMES)}")
        if actor:
            levels.set_own(actor, level)
        else:
            levels.set(level or self._running.config.log.level)
        self._log.warning("log_level", level=level or "as configured", of=actor or "all")
        return f"{actor or 'all'}: {level or 'as configured'}"

    def hang_up(self) -> None:
        """SIGHUP: reload, and report it in the log. Returns when it is done."""
        try:
            lines = self._begin(False, [])[1].result()
            self._log.info("reload_done", changes=list(lines))
        except Exception as error:
            # Whoever sent the signal reads the log alone.
            self._log.error("reload_refused", reason=str(error), kind=type(error).__name__)

    def _begin(self, dry_run: bool, discard: list[str]) -> tuple[int, Future[tuple[str, ...]]]:
        with self._lock:
            if self._last is not None and not self._last[1].done():
                raise ControlError("a reload is under way already")
            reload, done = Reload(self._running, discard), Future[tuple[str, ...]]()
            self._last = (next(self._numbers), done)
            act = self._look_only if dry_run else Reload.carry_out
            threading.Thread(
                target=_fulfil, args=(done, act, reload), name="reload", daemon=True
            ).start()
            return self._last

    @staticmethod
    def _look_only(reload: Reload) -> tuple[str, ...]:
        return reload.plan()[1].lines


def _fulfil(done: Future[tuple[str, ...]], act: Any, reload: Reload) -> None:
    try:
        done.set_result(act(reload))
    except BaseException as error:
        # Whoever asks gets it; a thread that died without a word would be asked for ever.
        done.set_exception(error)
