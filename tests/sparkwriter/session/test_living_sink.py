"""What a writer hears when its session dies under it, or lets it wait for too long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from py4j.protocol import Py4JNetworkError

from actors.contract.ports import OneFailed
from actors.contract.writes import TargetState
from changes.model.errors import SinkAway, SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from offsets.fence import Fenced
from offsets.snapshot import MarkMoves
from sparkwriter.session.java_api import JavaGarbage
from sparkwriter.session.keeper import SessionKeeper, SessionKeeperSettings
from sparkwriter.session.living_sink import LivingSink

WITHIN_S = 20.0
TARGET = TargetName("lake", "shop", "orders")
OTHER = TargetName("lake", "shop", "items")
LONG_S = 300.0


class FakeJvm:
    """A process of which the test says when it ends."""

    pid = 1

    def __init__(self) -> None:
        self.gone = threading.Event()
        self.killed = False

    def wait(self) -> str:
        self.gone.wait()
        return "was ended"

    def kill(self) -> None:
        self.killed = True
        self.gone.set()

    def forget(self) -> None:
        pass

    def stop(self, within_s: float) -> None:
        self.gone.set()


class Sink:
    """One generation's sink; ``act`` is what opening does."""

    def __init__(self, act: Callable[[], TargetState]) -> None:
        self.act = act
        self.cancelled = threading.Event()

    def open(self, target: TargetName, recorded: object = None) -> TargetState:
        return self.act()

    def write(self, batch: object) -> TargetState:
        return self.act()

    def write_together(self, batches: Sequence[Any], locks_s: float) -> list[TargetState]:
        return [self.act() for _ in batches]

    def reset(self, target: TargetName, moves: MarkMoves) -> TargetState:
        return self.act()

    def cancel(self) -> None:
        self.cancelled.set()


class Batch(NamedTuple):
    """Of which the sink asks the target."""

    target: TargetName


class Told(JavaGarbage):
    """Counts what it is told."""

    calls = 0

    def called(self) -> None:
        self.calls += 1


class Bench:
    """A living sink over fakes, and the sinks that were made for its generations."""

    def __init__(self, timeout_s: float = LONG_S, grace_s: float = LONG_S) -> None:
        self.jvms: list[FakeJvm] = []
        self.sinks: list[Sink] = []
        self.act: Callable[[], TargetState] = TargetState
        self.keeper: SessionKeeper[FakeJvm] = SessionKeeper(self._start, SessionKeeperSettings())
        self.keeper.open()
        self.garbage = Told()
        self.outdated = False
        self.sink = LivingSink(
            self.keeper,
            self._make,
            timeout_s,
            self.garbage,
            grace_s,
            outdated=lambda: self.outdated,
        )

    def _start(self) -> FakeJvm:
        self.jvms.append(FakeJvm())
        return self.jvms[-1]

    def _make(self, jvm: FakeJvm) -> Sink:
        self.sinks.append(Sink(lambda: self.act()))
        return self.sinks[-1]

    def next_generation(self) -> None:
        while self.keeper.figures().rebuilt == 0:
            threading.Event().wait(0.01)


def test_each_generation_has_a_sink_of_its_own() -> None:
    """Of a dead session nothing is used any more; of a living one nothing is made twice."""
    bench = Bench()
    bench.sink.open(TARGET)
    bench.sink.open(TARGET)
    assert len(bench.sinks) == 1
    bench.jvms[0].kill()
    bench.next_generation()
    bench.sink.open(TARGET)
    assert len(bench.sinks) == 2


@pytest.mark.parametrize("outdated", [False, True])
def test_a_failure_makes_a_new_sink_where_secrets_have_changed(outdated: bool) -> None:
    """In the same session; where nothing changed the sink stays."""
    bench = Bench()

    def deny() -> TargetState:
        raise SinkUnavailable("403")

    bench.act, bench.outdated = deny, outdated
    with pytest.raises(SinkUnavailable):
        bench.sink.open(TARGET)
    bench.act = TargetState
    bench.sink.open(TARGET)
    assert (len(bench.sinks), len(bench.jvms)) == (1 + outdated, 1)


def test_each_call_is_told_of_however_it_ends() -> None:
    """One that fails leaves as much in the JVM as one that does not."""
    bench = Bench()
    bench.sink.open(TARGET)

    def refuse() -> TargetState:
        raise TargetRefused("?")

    bench.act = refuse
    with pytest.raises(TargetRefused):
        bench.sink.open(TARGET)
    assert bench.garbage.calls == 2


@pytest.mark.parametrize(
    "error", [Py4JNetworkError("empty"), AttributeError("None"), TargetRefused("?"), Fenced("?")]
)
def test_whatever_a_dying_jvm_makes_a_call_raise_is_a_sink_that_is_away(error: Exception) -> None:
    """Neither does the daemon crash, nor is a target refused or fenced by half an answer."""
    bench = Bench()

    def die() -> TargetState:
        generation = bench.keeper.current()
        bench.jvms[0].kill()
        assert generation.ended.wait(WITHIN_S)
        raise error

    bench.act = die
    with pytest.raises(SinkAway, match=r"^lake\.shop\.orders: the JVM has ended$"):
        bench.sink.open(TARGET)


@pytest.mark.parametrize("error", [TargetRefused("a"), Fenced("b"), SinkUnavailable("c")])
def test_what_a_living_session_says_is_passed_on(error: Exception) -> None:
    """The rules of the port stay as they are."""
    bench = Bench()

    def refuse() -> TargetState:
        raise error

    bench.act = refuse
    with pytest.raises(type(error)) as raised:
        bench.sink.open(TARGET)
    assert raised.value is error


def test_writes_of_several_targets_are_one_call() -> None:
    """A JVM that dies under it is nobody's fault; else it is told whose it was."""
    bench, batches = Bench(), [Batch(TARGET), Batch(OTHER)]
    assert bench.sink.write_together(batches, 1.0) == [TargetState()] * 2

    def refuse() -> TargetState:
        one = OneFailed(OTHER)
        raise one from TargetRefused("few")

    def die() -> TargetState:
        generation = bench.keeper.current()
        bench.jvms[0].kill()
        assert generation.ended.wait(WITHIN_S)
        raise Py4JNetworkError("empty")

    for act, target, kind in ((refuse, OTHER, TargetRefused), (die, None, SinkAway)):
        bench.act = act
        with pytest.raises(OneFailed) as failed:
            bench.sink.write_together(batches, 1.0)
        assert (failed.value.target, type(failed.value.__cause__)) == (target, kind)


def test_a_reset_is_a_call_like_the_others() -> None:
    """It goes to the living generation, and a JVM that dies under it is a sink that is away."""
    bench = Bench()
    assert bench.sink.reset(TARGET, MarkMoves()) == TargetState()

    def die() -> TargetState:
        generation = bench.keeper.current()
        bench.jvms[0].kill()
        assert generation.ended.wait(WITHIN_S)
        raise Py4JNetworkError("empty")

    bench.act = die
    with pytest.raises(SinkUnavailable, match="the JVM has ended"):
        bench.sink.reset(TARGET, MarkMoves())


def test_a_call_past_its_time_is_cancelled_and_retried() -> None:
    """Whatever the cancelled call says, be it a data error, it is a sink that was too slow."""
    bench = Bench(timeout_s=0.5)
    bench.sink.reset(TARGET, MarkMoves())  # the first call makes the sink that is cancelled

    def wait_to_be_cancelled() -> TargetState:
        assert bench.sinks[0].cancelled.wait(WITHIN_S)
        raise TargetRefused("cancelled in the middle of a row")

    bench.act = wait_to_be_cancelled
    with pytest.raises(SinkUnavailable, match=r"orders: timed out after 0\.5 s: cancelled in"):
        bench.sink.open(TARGET)
    assert not bench.jvms[0].killed


def test_a_call_that_cancelling_does_not_end_costs_the_jvm() -> None:
    """A JVM that does not answer even then is dead: it is killed, and the next one serves."""
    bench = Bench(timeout_s=0.05, grace_s=0.05)

    def hang() -> TargetState:
        assert bench.jvms[0].gone.wait(WITHIN_S)
        raise Py4JNetworkError("Answer from Java side is empty")

    bench.act = hang
    with pytest.raises(SinkUnavailable, match="timed out after"):
        bench.sink.open(TARGET)
    assert bench.jvms[0].killed
    bench.next_generation()
    bench.act = TargetState
    assert bench.sink.open(TARGET) == TargetState()


def test_a_call_that_ends_in_time_is_neither_cancelled_nor_its_jvm_killed() -> None:
    """Its timers end with it: threads of theirs would pile up."""
    bench = Bench(timeout_s=LONG_S, grace_s=LONG_S)
    bench.sink.open(TARGET)
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(WITHIN_S)
            assert not thread.is_alive()
    assert not bench.sinks[0].cancelled.is_set()
