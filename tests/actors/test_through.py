"""Tables are told through when gates have found them complete, each at most once at a time."""

from __future__ import annotations

from collections.abc import Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS
from actors.contract.figures import Figures
from actors.contract.of_counts import SideFigures
from actors.runtime.mailbox import Tick
from actors.through import AGAIN_AFTER_S, LOOK_EVERY_S, SAID_FOR_S, ThroughLogic
from changes.model.model import TargetName

NOW = 1_800_000_000
A, B = "lake.s.a", "lake.s.b"
FIRST, SECOND = {"g": "2026-11-25T00:00:00Z"}, {"g": "2026-11-26T00:00:00Z"}


class Gates:
    """What gates say, and who passes it on."""

    def __init__(self, **tables: Mapping[str, str]) -> None:
        self.moments: dict[str, Mapping[str, str]] = {f"lake.s.{n}": m for n, m in tables.items()}
        self.unread: str | None = None
        self.logic = ThroughLogic("p", lambda: (self.moments, self.unread), lambda: NOW)
        self.said: list[str] = []

    def feed(self, message: object, now: float = 0.0) -> dict[str, Mapping[str, str]]:
        """What tables are told for it."""
        told = {}
        for effect in self.logic.handle(message, now):
            match effect:
                case fx.Tell(to, msg.SayThrough(target, moments, reply_to)):
                    assert (to, reply_to.role) == (WRITERS, "through")
                    told[str(target)] = moments
                case fx.Log(_, event, fields):
                    self.said.append(f"{event} {fields['target']}: {fields['reason']}")
                case fx.WakeAt(at):
                    assert at == now + LOOK_EVERY_S
        return told

    def answer(self, name: str, now: float = 0.0, *, is_there: bool = True) -> None:
        assert self.feed(msg.Tagged(TargetName.parse(name), is_there), now) == {}

    def fail(self, name: str, why: str, now: float = 0.0) -> None:
        kind = msg.FailureKind.RETRY
        self.feed(msg.Failed(TargetName.parse(name), kind, f"{name}: {why}", None), now)

    def figures(self) -> object:
        (reply,) = self.logic.handle(Figures(), 0.0)
        assert isinstance(reply, fx.Reply)
        return reply.value


def test_what_is_new_is_told_once() -> None:
    """Another moment again; the same one only where somebody may have replaced the table."""
    gates = Gates(a=FIRST, b=FIRST)
    assert gates.feed(Tick()) == {A: FIRST, B: FIRST}
    gates.answer(A)
    assert gates.feed(Tick(), 10) == {}
    gates.answer(B, 10)
    gates.moments[A] = SECOND
    assert gates.feed(Tick(), 20) == {A: SECOND}
    gates.answer(A, 20)
    assert gates.feed(Tick(), 10 + SAID_FOR_S - 1) == {}
    assert gates.feed(Tick(), 10 + SAID_FOR_S) == {B: FIRST}


def test_a_table_that_does_not_answer_holds_up_no_other() -> None:
    """It is told what is true when it has answered."""
    gates = Gates(a=FIRST, b=FIRST)
    gates.feed(Tick())
    gates.answer(B)
    gates.moments = {A: SECOND, B: SECOND}
    assert gates.feed(Tick(), 10) == {B: SECOND}
    gates.answer(A, 15)
    assert gates.feed(Tick(), 20) == {A: SECOND}


def test_what_failed_is_tried_again_and_named_once() -> None:
    gates = Gates(a=FIRST, b=FIRST)
    gates.feed(Tick())
    gates.answer(B)
    gates.fail(A, "away")
    assert gates.figures() == SideFigures(f"{A}: away", NOW)
    assert gates.feed(Tick(), AGAIN_AFTER_S - 1) == {}
    assert gates.feed(Tick(), AGAIN_AFTER_S) == {A: FIRST}
    assert gates.figures() == SideFigures(f"{A}: away", NOW)
    gates.fail(A, "away", AGAIN_AFTER_S)
    assert gates.said == [f"valid_through_not_set {A}: away"]
    gates.moments[A] = SECOND
    assert gates.feed(Tick(), AGAIN_AFTER_S + 10) == {A: SECOND}
    gates.answer(A, AGAIN_AFTER_S + 10)
    assert gates.figures() == SideFigures(None)


def test_a_table_that_is_not_there_yet_is_no_fault() -> None:
    """It is told once it may be there."""
    gates = Gates(a=FIRST)
    gates.feed(Tick())
    gates.answer(A, is_there=False)
    assert gates.figures() == SideFigures(None)
    assert gates.feed(Tick(), AGAIN_AFTER_S - 1) == {}
    assert gates.feed(Tick(), AGAIN_AFTER_S) == {A: FIRST}


def test_an_answer_to_a_life_before_this_one_is_none() -> None:
    gates = Gates(a=FIRST)
    gates.fail(B, "away")
    gates.answer(B)
    assert (gates.said, gates.figures()) == ([], SideFigures(None))


def test_a_gate_that_cannot_be_read_is_told_and_takes_nothing_back() -> None:
    gates = Gates(b=FIRST)
    gates.unread = "gates/g.json: damaged"
    assert gates.feed(Tick()) == {B: FIRST}
    assert gates.figures() == SideFigures("gates/g.json: damaged", NOW)
    gates.unread = None
    gates.feed(Tick(), 10)
    assert gates.figures() == SideFigures(None)
