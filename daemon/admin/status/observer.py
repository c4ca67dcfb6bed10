"""Queries all actors at once, and remembers since when an actor has not answered.

An actor that does not answer is in a long call or stuck. It never has more than one query in its
mailbox, so asking costs nothing however long that lasts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

import pykka

from actors.contract.addresses import Address
from actors.runtime.mailbox import Clock

Question = Callable[[], "pykka.Future[object]"]
"""Queues a query and returns at once; the answer comes into the future."""

SUPERVISOR = Address("", "supervisor")

ANSWER_WITHIN_S = 1.0
"""How long one query waits. Answers take microseconds; a slower actor is shown as silent."""

FRESH_S = 0.2
"""Queries closer together than this share their answers, so a client in a loop costs nothing."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The actors' answers. ``replies`` holds the last answers of silent actors, too.

    ``silent``: for how many seconds each silent actor has owed an answer.
    """

    replies: Mapping[Address, object] = field(default_factory=dict)
    silent: Mapping[Address, float] = field(default_factory=dict)


class Silent(TypedDict):
    """An actor that has not answered, as a member of the status document."""

    actor: str
    seconds: float
    stuck: bool


class Observer:
    """Any thread may query. The main thread sets the actors once they run."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._questions: Mapping[Address, Question] = {}
        self._owed: dict[Address, tuple[pykka.Future[object], float]] = {}
        self._replies: dict[Address, object] = {}
        self._last: tuple[float, Answers] | None = None

    def watch(self, questions: Mapping[Address, Question]) -> None:
        """Query these from now on."""
        with self._lock:
            self._questions = dict(questions)
            for known in (self._owed, self._replies):
                for gone in known.keys() - questions.keys():
                    del known[gone]
            self._last = None

    def look(self) -> Answers:
        """Query the actors that owe no answer, and wait ``ANSWER_WITHIN_S`` for the answers."""
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
            # An actor that was silent at the last query gets no second wait.
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
