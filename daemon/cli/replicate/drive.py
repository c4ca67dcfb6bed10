"""Has the running daemon load all tables of a plan, then compare each, and shows how far it is.

It asks as any command does, through the control socket. What has ended is written down beside the
state: the daemon forgets old jobs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from actors.runtime.files import write_durably
from actors.runtime.periodic import Periodic
from daemon.cli.replicate import board as told
from daemon.cli.replicate.board import Board, FollowedTable, Known, Request
from daemon.cli.replicate.screen import Screen
from daemon.cli.replicate.text import pattern_of
from daemon.operations.engine.desk import BEGIN, LOOK
from daemon.state import control
from settings.counted import counted
from settings.exit import Exit

LOOK_EVERY_S = 1.0

Ask = Callable[[Path, Mapping[str, Any]], Any]


class Driver:
    """A thread of its own; ``close`` ends it."""

    def __init__(
        self,
        state_dir: Path,
        pipeline: str,
        tables: Sequence[FollowedTable],
        screen: Screen,
        kept: Path,
        began_s: float,
        ask: Ask = control.ask,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``kept``: where it writes down what has ended. ``began_s``: when the command began, by
        ``clock``. Raises OSError, ValueError where what was written down can't be read."""
        self._state_dir, self._pipeline, self._tables = state_dir, pipeline, tables
        self._screen, self._kept, self._began_s = screen, kept, began_s
        self._ask, self._clock = ask, clock
        self._memory = _read(kept)
        self._asked: tuple[Request, int, list[str]] | None = None
        self._streams, self._waits = False, ""
        self._rounds = Periodic(
            "replicate", self.look, LOOK_EVERY_S, "replicate", "replicate_not_looked"
        )

    def start(self) -> None:
        """Begin."""
        self._rounds.start()

    def close(self) -> None:
        """Ask for nothing more; the screen is closed."""
        self._rounds.close(within_s=5.0)
        self._screen.close()

    def look(self) -> None:
        """One round: read the state, send the next request, show it. On the thread."""
        try:
            status = self._ask(self._state_dir, {"ask": "status"})
            self._follow(status)
        except control.ControlError as error:
            # It starts, ends, or is busy: the next round asks again.
            if str(error) != self._waits:
                self._waits = str(error)
                _log().info("replicate_waits", reason=self._waits)

    def _follow(self, status: Mapping[str, Any]) -> None:
        jobs, now_s = told.loads(status, self._pipeline), self._clock()
        before = set(self._memory.loaded)
        told.learn(self._memory, jobs, now_s)
        if self._memory.loaded != before:
            self._keep()
        busy = told.under_way(jobs)
        if self._asked is not None:
            self._await_answer()
        elif self._ready(status):
            request = told.next_request(self._memory, self._tables, busy, now_s)
            if request is not None:
                told.begun(self._memory, request, now_s)
                self._begin(request)
        rows = told.rows_of(self._memory, self._tables, busy)
        flow = told.flow_of(jobs, self._memory, self._tables, now_s)
        seconds = now_s - self._began_s
        self._screen.draw(Board(rows, flow, told.notes(status), told.following(status), seconds))

    def _ready(self, status: Mapping[str, Any]) -> bool:
        """Whether the collector reads: a load that begins before would miss what came between."""
        if status["state"] != "running":
            return False
        if not self._streams and told.streams(status):
            self._streams = True
            self._event("the collector reads the source's log")
            if len(self._memory.equal) >= len(self._tables):
                all_ = counted(len(self._tables), "table")
                self._event(
                    f"all {all_} equal as they were compared before; they follow the source"
                )
        return self._streams

    def _begin(self, request: Request) -> None:
        params = {"targets": [pattern_of(target) for target in request.targets]}
        ask = {"ask": BEGIN, "name": request.words, "params": params, "act": True}
        answer = self._ask(self._state_dir, ask)
        self._asked = request, answer["ticket"], []
        if request.words == "tables load":
            self._event(f"{counted(len(request.targets), 'table')} to be loaded")
        self._take(answer)

    def _await_answer(self) -> None:
        assert self._asked is not None
        _, ticket, said = self._asked
        try:
            ask = {"ask": LOOK, "ticket": ticket, "from": len(said)}
            self._take(self._ask(self._state_dir, ask))
        except control.NotRunning:
            raise
        except control.ControlError:
            # Another daemon, which knows no such ticket: what is left is requested again.
            self._asked = None
            raise

    def _take(self, answer: Mapping[str, Any]) -> None:
        assert self._asked is not None
        request, _, said = self._asked
        said += [line for _, line in answer["said"]]
        if answer["status"] is None:
            return
        self._asked = None
        if request.words == "tables verify" and isinstance(answer["result"], list):
            self._compared(answer["result"])
        elif answer["status"] != Exit.OK.value:
            told.refuse(self._memory, request, said, self._clock())
            _log().warning("replicate_refused", asked=request.words, of=request.targets, said=said)

    def _compared(self, result: Sequence[Mapping[str, Any]]) -> None:
        known, names = len(self._memory.equal), {one.target: one.name for one in self._tables}
        equal = told.compared(self._memory, result, self._clock(), time.time())
        self._keep()
        after, all_ = f"after {self._clock() - self._began_s:.0f} s", len(self._tables)
        for number, target in enumerate(equal, known + 1):
            what = "the first table is equal" if number == 1 else "equal"
            self._event(f"{what} {after}: {names.get(target, target)} ({number} of {all_})")
        if equal and len(self._memory.equal) == all_:
            self._event(f"all {counted(all_, 'table')} equal {after}; they follow the source")

    def _event(self, text: str) -> None:
        _log().info("replicate", said=text)
        self._screen.event(text)

    def _keep(self) -> None:
        found = {"loaded": sorted(self._memory.loaded), "equal": self._memory.equal}
        write_durably(self._kept, json.dumps(found, indent=1))


def _log() -> Any:
    """Created each time: where it goes is only known once the daemon starts."""
    return structlog.get_logger().bind(actor="replicate")


def _read(path: Path) -> Known:
    if not path.exists():
        return Known()
    found = json.loads(path.read_text(encoding="utf-8"))
    equal = {str(target): float(at) for target, at in found["equal"].items()}
    return Known(set(found["loaded"]), equal)
