"""What the shell relies on in pykka, some of it private: pinned, or an update would hide it."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pykka
import pytest
from pykka._envelope import Envelope

from actors.contract.addresses import Address
from actors.contract.effects import Reply, Tell
from actors.contract.messages import ActorCrashed
from actors.runtime.lending import Fixed
from actors.runtime.mailbox import DataQueue, Mailbox
from actors.runtime.shell import Directory, Perform, Run, Shell

ME = Address("p", "tester")


class Events:
    """A supervisor that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def tell(self, message: object) -> None:
        self.heard.put(message)


class EchoLogic:
    """Answers, tells, or fails, as the message says."""

    def handle(self, message: Any, now: float) -> list[object]:
        match message:
            case "fail":
                raise ValueError("as asked")
            case ("tell", to, what):
                return [Tell(to, what)]
            case _:
                return [Reply(message)]


def no_effects(run: Run) -> Perform:
    def perform(effect: Any) -> None:
        raise TypeError(effect)

    return perform


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def directory(events: Events) -> Iterator[Directory]:
    made = Directory()
    mailbox = Mailbox(DataQueue(Fixed(100)))
    made.add_mailbox(ME, mailbox)
    made.add_ref(ME, Shell.start(ME, EchoLogic(), mailbox, made, no_effects, supervisor=events))
    yield made
    pykka.ActorRegistry.stop_all(timeout=5)


def test_pykka_is_the_version_this_was_written_for() -> None:
    """Private parts are used, so the minor version is pinned."""
    assert version("pykka").startswith("4.5.")


def test_an_envelope_carries_message_and_reply() -> None:
    """The mailbox wraps control messages as pykka's tell does."""
    envelope = Envelope("hello")
    assert (envelope.message, envelope.reply_to) == ("hello", None)


def test_the_actor_takes_its_messages_from_our_mailbox(directory: Directory) -> None:
    """``_create_actor_inbox`` may be overridden, and an ask goes through it."""
    assert directory.ask(ME, "hello", 5) == "hello"


def test_a_failure_in_a_message_reaches_the_supervisor(
    directory: Directory, events: Events
) -> None:
    """Nothing dies in silence."""
    directory.tell(ME, "fail")
    assert events.heard.get(timeout=5) == ActorCrashed(ME, "ValueError: as asked")


def test_a_dead_actor_refuses_data(directory: Directory, events: Events) -> None:
    """A sender is not left waiting for room that never comes."""
    directory.tell(ME, "fail")
    events.heard.get(timeout=5)
    assert not directory._mailboxes[ME].offer("data", 1, lambda: None)


def test_a_failure_in_on_start_reaches_the_supervisor(events: Events) -> None:
    """pykka calls no hook for it but ``_handle_failure``, which is why that one is overridden."""

    class Broken(Shell):
        def on_start(self) -> None:
            raise RuntimeError("no start")

    mailbox = Mailbox(DataQueue(Fixed(1)))
    Broken.start(ME, EchoLogic(), mailbox, Directory(), no_effects, supervisor=events)
    assert events.heard.get(timeout=5) == ActorCrashed(ME, "RuntimeError: no start")


def test_an_actor_may_tell_itself(directory: Directory) -> None:
    """With pykka's queue bounded this would deadlock."""
    directory.tell(ME, ("tell", ME, "again"))
    assert directory.ask(ME, "after", 5) == "after"


def test_stop_does_not_block_when_data_waits(directory: Directory) -> None:
    """The stop message is control: it overtakes data."""
    ref = directory._refs[ME]
    directory._mailboxes[ME].hold(True)
    directory._mailboxes[ME].offer("data", 100, lambda: None)
    ref.stop(block=False)
    assert ref.actor_stopped.wait(5)
