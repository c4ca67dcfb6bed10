"""The mailbox: control first, data bounded, refusal instead of blocking."""

from __future__ import annotations

import threading

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actors.runtime.lending import Fixed
from actors.runtime.mailbox import DataQueue, Mailbox, Tick


def mailbox(capacity: int = 100) -> Mailbox:
    return Mailbox(DataQueue(Fixed(capacity)), clock=lambda: 0.0)


def nothing() -> None:
    """A sender that doesn't care."""


def test_control_overtakes_data() -> None:
    """A stop must not wait behind a queue of batches."""
    box = mailbox()
    box.offer("data", 10, nothing)
    box.tell("control")
    assert [box.get().message, box.get().message] == ["control", "data"]


def test_a_full_mailbox_refuses_data_and_takes_control() -> None:
    """Bytes bound data; control has no bound."""
    box = mailbox(100)
    assert box.offer("a", 60, nothing)
    assert not box.offer("b", 60, nothing)
    box.tell("control")
    assert box.get().message == "control"
    assert box.data_bytes == 60


def test_a_message_larger_than_the_mailbox_passes_when_it_is_empty() -> None:
    """Otherwise it could never pass at all."""
    assert mailbox(10).offer("huge", 1000, nothing)


def test_a_refused_sender_is_told_once_when_half_is_free() -> None:
    """Not at the first byte: sender and receiver would alternate message by message."""
    box = mailbox(100)
    told: list[str] = []
    for name in "abcd":
        box.offer(name, 25, nothing)
    box.offer("e", 25, lambda: told.append("room"))
    box.get()
    assert told == []
    box.get()
    assert told == ["room"]
    box.get()
    assert told == ["room"]


def test_a_due_tick_comes_before_data() -> None:
    """A busy actor still keeps its appointments."""
    box = mailbox()
    box.offer("data", 1, nothing)
    box.wake_at(0.0)
    assert [box.get().message, box.get().message] == [Tick(), "data"]


def test_a_held_mailbox_gives_control_only() -> None:
    """Held data stays and counts, so its sender pauses."""
    box = mailbox()
    box.offer("data", 10, nothing)
    box.hold(True)
    box.tell("control")
    assert box.get().message == "control"
    box.hold(False)
    assert box.get().message == "data"


def test_a_closed_mailbox_refuses_and_wakes_nobody_later() -> None:
    """After an actor's death its senders are refused at once."""
    box = mailbox()
    box.offer("data", 10, nothing)
    box.close()
    assert not box.offer("more", 1, nothing)
    assert box.empty()


def test_get_waits_until_something_comes() -> None:
    """An idle actor sleeps in the mailbox and wakes for a message."""
    box = Mailbox(DataQueue(Fixed(100)))
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.append(box.get().message))
    thread.start()
    box.tell("hello")
    thread.join(5)
    assert got == ["hello"]


def test_get_wakes_by_itself_at_the_time_asked_for() -> None:
    """A deadline needs no other thread."""
    box = Mailbox(DataQueue(Fixed(100)))
    box.wake_at(0.0)
    assert box.get().message == Tick()


def test_a_pool_shares_one_queue_of_work_and_keeps_control_apart() -> None:
    """Whoever is free takes the oldest request; a control message has one addressee."""
    work = DataQueue(Fixed(100))
    one, two = Mailbox(work), Mailbox(work)
    one.offer("first", 0, nothing)
    one.offer("second", 0, nothing)
    two.tell("for two")
    assert [two.get().message, two.get().message, one.get().message] == [
        "for two",
        "first",
        "second",
    ]


class MailboxMachine(RuleBasedStateMachine):
    """Random offers and takes against two lists."""

    def __init__(self) -> None:
        super().__init__()
        self.box = mailbox(50)
        self.data: list[tuple[int, int]] = []
        self.control: list[int] = []
        self.refused = 0
        self.told = 0
        self.number = 0

    def on_room(self) -> None:
        """A refused sender hears that there is room."""
        self.told += 1

    @rule(size=st.integers(0, 80))
    def offer(self, size: int) -> None:
        """Offer data of some size."""
        self.number += 1
        fits = not self.data or sum(s for _, s in self.data) + size <= 50
        assert self.box.offer(self.number, size, self.on_room) == fits
        if fits:
            self.data.append((self.number, size))
        else:
            self.refused += 1

    @rule()
    def tell(self) -> None:
        """Leave a control message."""
        self.number += 1
        self.box.tell(self.number)
        self.control.append(self.number)

    @precondition(lambda self: self.data or self.control)
    @rule()
    def take(self) -> None:
        """Take the next: control in order, then data in order."""
        expected = self.control.pop(0) if self.control else self.data.pop(0)[0]
        assert self.box.get().message == expected

    @invariant()
    def bytes_are_counted(self) -> None:
        """What waits is what was taken in and not taken out; an empty one owes no news."""
        assert self.box.data_bytes == sum(size for _, size in self.data)
        assert self.told <= self.refused
        if not self.data:
            assert self.told == self.refused


TestMailbox = MailboxMachine.TestCase
TestMailbox.settings = settings(max_examples=100, stateful_step_count=30)
