"""The pykka actor around a logic: it carries messages in and effects out, nothing else.

What it relies on in pykka is pinned by ``tests/actors/runtime/test_pykka_contract.py``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol

import pykka
import structlog

from actors.contract import effects as fx
from actors.contract.addresses import Address
from actors.contract.messages import ActorCrashed, Offered, RecordBatch, RoomAvailable
from actors.runtime.lending import Fixed
from actors.runtime.mailbox import Clock, DataQueue, Mailbox
from changes.model.printable import reason_of

Perform = Callable[[Any], "object | None"]
"""Carries out one effect; returns its answer for the same logic, if it has one."""

Run = Callable[[object], None]
"""Feeds a message to the logic at once: for callbacks that come from inside an effect."""


class Logic(Protocol):
    """A deterministic actor: no threads, no clock, no I/O."""

    def handle(self, message: Any, now: float) -> Sequence[object]:
        """React to a message at a monotonic second; the effects are carried out in order."""
        ...


class Endpoint(Protocol):
    """Where a control message can be left: a mailbox, or the supervisor's queue."""

    def tell(self, message: object) -> None:
        """Take it without blocking."""
        ...


class Directory:
    """The actors by their addresses. Read from all threads. An address is filled before anything is
    sent to it, and again when other actors take the place of those that have ended."""

    def __init__(self) -> None:
        self._endpoints: dict[Address, Endpoint] = {}
        self._mailboxes: dict[Address, Mailbox] = {}
        self._refs: dict[Address, pykka.ActorRef[Any]] = {}

    def add_endpoint(self, address: Address, endpoint: Endpoint) -> None:
        """Make an endpoint known that takes control messages only."""
        self._endpoints[address] = endpoint

    def add_mailbox(self, address: Address, mailbox: Mailbox) -> None:
        """Make an actor's mailbox known, for control and for data."""
        self._endpoints[address] = mailbox
        self._mailboxes[address] = mailbox

    def add_ref(self, address: Address, ref: pykka.ActorRef[Any]) -> None:
        """Make a started actor known, for questions and for its end."""
        self._refs[address] = ref

    def ref(self, address: Address) -> pykka.ActorRef[Any]:
        """The actor that was started last at an address."""
        return self._refs[address]

    def has(self, address: Address) -> bool:
        """Whether an actor was started at an address."""
        return address in self._refs

    def refs(self) -> tuple[pykka.ActorRef[Any], ...]:
        """All started actors."""
        return tuple(self._refs.values())

    def tell(self, address: Address, message: object) -> None:
        """Leave a control message."""
        self._endpoints[address].tell(message)

    def offer(self, address: Address, batch: RecordBatch, on_room: Callable[[], None]) -> bool:
        """Offer data; False when it was refused."""
        return self._mailboxes[address].offer(batch, batch.size, on_room)

    def question(self, address: Address, message: object) -> pykka.Future[Any]:
        """Leave a question for an actor; its answer, or ActorDeadError, comes into the future."""
        return self._refs[address].ask(message, block=False)

    def ask(self, address: Address, message: object, timeout_s: float) -> Any:
        """Ask an actor and wait. Raises pykka.Timeout, pykka.ActorDeadError, what it raised."""
        return self._refs[address].ask(message, timeout=timeout_s)


class WorkQueue:
    """The common queue of a sink's writers as an endpoint: a free writer takes what comes next.

    Unbounded, yet small: as many requests as there are writers.
    """

    def __init__(self) -> None:
        self.data = DataQueue(Fixed(1 << 62))
        self._door = Mailbox(self.data)

    def tell(self, message: object) -> None:
        """Queue a request."""
        taken = self._door.offer(message, 0, _no_room)
        assert taken


def _no_room() -> None:
    raise AssertionError("the writers' queue is unbounded")


class Shell(pykka.ThreadingActor):
    """One actor: its thread runs the logic and carries out its effects."""

    # A daemon thread: a write that hangs in the JVM must not keep a dying process alive.
    use_daemon_thread = True

    def __init__(
        self,
        address: Address,
        logic: Logic,
        mailbox: Mailbox,
        directory: Directory,
        make_effects: Callable[[Run], Perform],
        clock: Clock = time.monotonic,
        supervisor: Endpoint | None = None,
    ) -> None:
        self._mailbox = mailbox
        super().__init__()
        self._address = address
        self._logic = logic
        self._directory = directory
        self._perform_own = make_effects(self.run)
        self._clock = clock
        self._supervisor = supervisor
        self._reply: object = None
        self._log = structlog.get_logger().bind(
            pipeline=address.pipeline or None, actor=f"{address.role}-{address.number}"
        )

    def _create_actor_inbox(self) -> Any:  # type: ignore[override]  # pykka calls it on self
        return self._mailbox

    def on_receive(self, message: Any) -> object:
        """Called by pykka on the actor's thread for every message, ``Tick`` included."""
        self._reply = None
        self.run(message)
        return self._reply

    def run(self, message: object) -> None:
        """Feed the logic a message and carry out what it asks for, answers included.

        Callbacks of the consumer call this from inside an effect: the logic is between two
        messages then, so it may be entered again.
        """
        waiting: deque[object] = deque([message])
        while waiting:
            for effect in self._logic.handle(waiting.popleft(), self._clock()):
                answer = self._carry_out(effect)
                if answer is not None:
                    waiting.append(answer)

    def _carry_out(self, effect: object) -> object | None:
        match effect:
            case fx.Tell(to, message):
                self._directory.tell(to, message)
            case fx.WakeAt(when):
                self._mailbox.wake_at(when)
            case fx.Log(level, event, fields):
                getattr(self._log, level)(event, **fields)
            case fx.Reply(value):
                self._reply = value
            case fx.Hold(held):
                self._mailbox.hold(held)
            case fx.Offer(to, batch):
                return self._offer(to, batch)
            case _:
                return self._perform_own(effect)
        return None

    def _offer(self, to: Address, batch: RecordBatch) -> Offered:
        mailbox = self._mailbox
        taken = self._directory.offer(to, batch, lambda: mailbox.tell(RoomAvailable(to)))
        return Offered(to, batch, taken)

    def _handle_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Every failure comes here, ``on_start`` included (``on_failure`` would miss that)."""
        self._log.critical("actor_crashed", exc_info=(exception_type, exception_value, traceback))
        self._mailbox.close()
        pykka.ActorRegistry.unregister(self.actor_ref)
        self.actor_stopped.set()
        if self._supervisor is not None:
            kind = exception_type.__name__ if exception_type else "?"
            said = "" if exception_value is None else reason_of(exception_value)
            reason = f"{kind}: {said}"
            self._supervisor.tell(ActorCrashed(self._address, reason))

    def on_stop(self) -> None:
        """Called by pykka on the actor's thread when it is to stop."""
        self._mailbox.close()
