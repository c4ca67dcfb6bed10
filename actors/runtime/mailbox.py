"""The actors' mailbox: control never blocks and is never dropped, data is bounded by bytes.

It replaces pykka's queue (inbox protocol: ``put``, ``get``, ``empty``). With a plain bounded queue
``stop`` would block when it is full, senders would stay blocked after the actor's death, and an
actor sending to itself would deadlock; so there are two lanes here, and a full one *refuses*.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pykka._envelope import (
    Envelope,  # not exported, pinned: tests/actors/runtime/test_pykka_contract.py
)

from actors.runtime.lending import Allowance

Clock = Callable[[], float]
"""Monotonic seconds."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What ``get`` returns when the wake-up time that the actor asked for has come."""


@dataclass(slots=True)
class DataQueue:
    """The bounded half. Several mailboxes may share one: a pool of actors on one queue of work.

    ``allowance`` bounds the bytes that wait here. One message larger than that is taken when the
    queue is empty, or it could never pass.
    """

    allowance: Allowance
    changed: threading.Condition = field(default_factory=threading.Condition)
    items: deque[tuple[Any, int]] = field(default_factory=deque)
    used_bytes: int = 0
    waiting: list[Callable[[], None]] = field(default_factory=list)
    _refused_at: int = 0
    """How much waited when an offer was refused last."""

    def add(self, message: Any, size: int) -> bool:
        """Let a message wait behind the others, if there is room. Hold ``changed``."""
        if not self.allowance.hold(self.used_bytes + size) and self.items:
            self.allowance.hold(self.used_bytes)
            self._refused_at = self.used_bytes
            return False
        self.items.append((message, size))
        self.used_bytes += size
        return True

    def take(self) -> tuple[Any, list[Callable[[], None]]]:
        """The next item, and callbacks to call as there is room again. Hold ``changed``."""
        message, size = self.items.popleft()
        self.used_bytes -= size
        self.allowance.hold(self.used_bytes)
        if self.waiting and self.used_bytes * 2 <= self._refused_at:
            on_rooms, self.waiting = self.waiting, []
            return message, on_rooms
        return message, []


class Mailbox:
    """One actor's inbox. ``put`` and ``offer`` from any thread, ``get`` from the actor's alone."""

    def __init__(self, data: DataQueue, clock: Clock = time.monotonic) -> None:
        self._data = data
        self._control: deque[Envelope[Any]] = deque()
        self._clock = clock
        self._wake_at: float | None = None
        self._closed = False
        self._held = False

    def put(self, envelope: Envelope[Any]) -> None:
        """Take a control message: never blocks, never refuses (pykka's ``tell`` comes here)."""
        with self._data.changed:
            self._control.append(envelope)
            self._data.changed.notify_all()

    def tell(self, message: object) -> None:
        """``put`` without pykka's wrapping."""
        self.put(Envelope(message))

    def offer(self, message: object, size: int, on_room: Callable[[], None]) -> bool:
        """Take a data message of ``size`` bytes, or refuse it: never blocks.

        After a refusal ``on_room`` is called once, on the thread that made room (when half of what
        waited is taken, so that sender and receiver don't alternate message by message). It must
        only leave a note, such as ``tell``. A closed mailbox refuses and calls nothing.
        """
        with self._data.changed:
            if self._closed:
                return False
            if not self._data.add(message, size):
                self._data.waiting.append(on_room)
                return False
            self._data.changed.notify_all()
            return True

    def wake_at(self, when: float | None) -> None:
        """Have ``get`` return a ``Tick`` at that monotonic time. Called by the owner only."""
        self._wake_at = when

    def hold(self, held: bool) -> None:
        """Leave data waiting (control still comes), or take it again. Called by the owner only."""
        self._held = held

    def get(self) -> Envelope[Any]:
        """The next message: control first, then a due ``Tick``, then data. Waits for one."""
        on_rooms: list[Callable[[], None]] = []
        with self._data.changed:
            while True:
                if self._control:
                    return self._control.popleft()
                due_in = None if self._wake_at is None else self._wake_at - self._clock()
                if due_in is not None and due_in <= 0:
                    self._wake_at = None
                    return Envelope(Tick())
                if self._data.items and not (self._closed or self._held):
                    message, on_rooms = self._data.take()
                    break
                self._data.changed.wait(due_in)
        for on_room in on_rooms:
            on_room()
        return Envelope(message)

    def empty(self) -> bool:
        """Whether nothing waits (pykka drains what is left when an actor ends: control only)."""
        with self._data.changed:
            return not self._control and (self._closed or not self._data.items)

    def close(self) -> None:
        """Refuse data from now on, and forget what waits: its sender reads it again."""
        with self._data.changed:
            self._closed = True
            self._data.changed.notify_all()

    @property
    def data_bytes(self) -> int:
        """Bytes of data that wait."""
        with self._data.changed:
            return self._data.used_bytes
