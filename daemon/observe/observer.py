"""Asks the actors how it stands, all at once, and remembers who has not answered since when.

An actor that does not answer is either in a long call or stuck: one question at a time is left in
its mailbox, so asking costs nothing however long that lasts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pykka

from actors.contract.addresses import Address
from actors.runtime.mailbox import Clock

Question = Callable[[], "pykka.Future[object]"]
"""Leaves a question and returns at once; the answer comes into the future."""

SUPERVISOR = Address("", "supervisor")

ANSWER_WITHIN_S = 1.0
"""How long one look waits. Answers take microseconds; whoever needs longer is shown as silent."""

FRESH_S = 0.2
"""Looks closer together than this share their answers: whoever looks in a loop bothers nobody."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What the actors said. ``replies`` holds the last one of those that are silent now, too.

    ``silent``: for how many seconds those that owe an answer have owed it.
    """

    replies: Mapping[Address, object] = field(default_factory=dict)
    silent: Mapping[Address, float] = field(default_factory=dict)


class Observer:
    """Any thread may look; the questions are set by the main thread once the actors run."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._questions: Mapping[Address, Question] = {}
        self._owed: dict[Address, tuple[pykka.Future[object], float]] = {}
        self._replies: dict[Address, object] = {}
        self._last: tuple[float, Answers] | None = None

    def watch(self, questions: Mapping[Address, Question]) -> None:
        """Ask these from now on."""
        with self._lock:
            self._questions = dict(questions)
            self._last = None

    def look(self) -> Answers:
        """Ask whoever owes no answer, and take what comes within ``ANSWER_WITHIN_S``."""
        with self._lock:
            now = self._clock()
            if self._last is None or now - self._last[0] >= FRESH_S:
                self._last = (now, self._ask(now))
            return self._last[1]

    def _ask(self, now: float) -> Answers:
        asked = [address for address in self._questions if address not in self._owed]
        for address in asked:
            self._owed[address] = (self._questions[address](), now)
        deadline = now + ANSWER_WITHIN_S
        for address in list(self._owed):
            # Who was silent at the last look has had its time.
            wait = max(0.0, deadline - self._clock()) if address in asked else 0.0
            self._take(address, wait)
        now = self._clock()
        silent = {address: now - since for address, (_, since) in self._owed.items()}
        return Answers(dict(self._replies), silent)

    def _take(self, address: Address, wait_s: float) -> None:
        future, _ = self._owed[address]
        try:
            self._replies[address] = future.get(timeout=wait_s)
        except pykka.Timeout:
            return
        except pykka.ActorDeadError:
            # It has ended; if it crashed, the supervisor ends the process.
            pass
        del self._owed[address]
