"""A sink that outlives its session: each call goes to the generation that lives, under a deadline.

For the actors a JVM that died or hangs is a sink that is away: the batch stays with its processor,
is offered again, and the marks in the target then tell whether the lost call had landed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import structlog
from py4j.protocol import Py4JError, Py4JJavaError

from actors.contract.ports import OneFailed, ResettableSink, Swaps, Tags, WritesTogether
from actors.contract.writes import StagedBatch, Swap, TargetState
from changes.model.errors import SinkAway, SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from offsets.cuts import KeepCuts
from offsets.fence import Fenced
from offsets.snapshot import MarkMoves, TargetMark
from sparkwriter.session.java_api import JavaGarbage
from sparkwriter.session.keeper import Generation, J, SessionKeeper

# The time that one call into the sink may take, and what is done when it is over.

log: Any = structlog.get_logger(__name__)


class Deadline:
    """Cancels a call after ``timeout_s``, and ``grace_s`` later kills what it still waits for.

    Used as a context around the call, on the caller's thread. The two steps run on threads of
    their own: asking a JVM that hangs to cancel something hangs as well.
    """

    def __init__(
        self,
        what: str,
        timeout_s: float,
        grace_s: float,
        cancel: Callable[[], None],
        kill: Callable[[], None],
    ) -> None:
        self._fields = {"call": what, "timeout_s": timeout_s, "grace_s": grace_s}
        self._cancel, self._kill = cancel, kill
        self._lock = threading.Lock()
        self._over = False
        self.passed = False
        """Whether the call took longer than it may."""
        self._timers = (
            threading.Timer(timeout_s, self._on_timeout),
            threading.Timer(timeout_s + grace_s, self._on_no_end),
        )
        for timer in self._timers:
            timer.daemon = True

    def __enter__(self) -> Self:
        for timer in self._timers:
            timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._over = True
        for timer in self._timers:
            timer.cancel()

    def _on_timeout(self) -> None:
        with self._lock:
            if self._over:
                return
            self.passed = True
        log.warning("write_timed_out", **self._fields)
        try:
            self._cancel()
        except Exception as error:
            # The process that should cancel may have died, or hang until it is killed.
            log.warning("cancel_failed", reason=str(error), **self._fields)

    def _on_no_end(self) -> None:
        with self._lock:
            # Under the lock: a call that ends now waits, and finds its JVM killed; none later.
            if self._over:
                return
            log.error("jvm_hangs", **self._fields)
            self._kill()


T = TypeVar("T")

CANCEL_GRACE_S = 20.0
"""From cancelling a call to calling its JVM hung. A cancelled job returns in a second or two; a
statement that is still being planned, on a cold JVM and a busy machine, took 10 s (measured).
Shorter: a JVM that would have come back is killed under the other targets' writes. Longer: with a
JVM that hangs all targets wait for so long."""

NEXT_WITHIN_S = 30.0
"""How long a writer waits for the next session: it has nothing else to do. Told at once to come
again, its target would be in the middle of a long back-off when the session is there (5-15 s)."""

END_SEEN_WITHIN_S = 2.0
"""From a connection that broke to the process's end being noticed: milliseconds, mostly."""


class SessionSink(ResettableSink, Swaps, Tags, WritesTogether, Protocol):
    """A sink of one session."""

    def cancel(self) -> None:
        """Have the call that is under way end soon with an error. Any thread; may hang where the
        session does."""
        ...


class LivingSink(Generic[J]):
    """``actors.contract.ports.BatchWriter`` over the session that the keeper has at the time."""

    def __init__(
        self,
        keeper: SessionKeeper[J],
        make: Callable[[J], SessionSink],
        timeout_s: float,
        garbage: JavaGarbage,
        grace_s: float = CANCEL_GRACE_S,
        wait_s: float = NEXT_WITHIN_S,
        outdated: Callable[[], bool] = lambda: False,
    ) -> None:
        """``make`` is called once for each generation, on the thread that uses the sink; and again
        where after a failed call ``outdated`` says that the sink was made with what is no more
        valid, such as a password.

        ``garbage`` is one for all sinks of a JVM: it is notified of each call that has ended.
        """
        self._keeper = keeper
        self._make = make
        self._timeout_s = timeout_s
        self._garbage = garbage
        self._grace_s = grace_s
        self._wait_s = wait_s
        self._outdated = outdated
        self._made: tuple[int, SessionSink] | None = None

    def open(self, target: TargetName, recorded: TargetMark | None = None) -> TargetState:
        """See ``BatchWriter.open``; SinkUnavailable too where time is over or the JVM ends."""
        return self._call(f"open {target}", target, lambda sink: sink.open(target, recorded))

    def write(self, batch: StagedBatch) -> TargetState:
        """See ``BatchWriter.write``; SinkUnavailable too where time is over or the JVM ends."""
        return self._call(f"write {batch.target}", batch.target, lambda sink: sink.write(batch))

    def write_together(self, batches: Sequence[StagedBatch], locks_s: float) -> list[TargetState]:
        """See ``WritesTogether.write_together``; it may take as long as writes one by one."""
        at: TargetName | None = None

        def act(sink: SessionSink) -> list[TargetState]:
            nonlocal at
            try:
                return sink.write_together(batches, locks_s)
            except OneFailed as one:
                at, why = one.target, one.__cause__ or one
            # Outside: within, each would be behind the other, without end.
            raise why

        first, times = batches[0].target, len(batches)
        try:
            return self._call(f"write {first} and others", first, act, times)
        except (SinkUnavailable, TargetRefused, Fenced) as error:
            raise OneFailed(at) from error

    def reset(self, target: TargetName, moves: MarkMoves) -> TargetState:
        """See ``ResettableSink.reset``; SinkUnavailable too as in ``write``."""
        return self._call(f"reset {target}", target, lambda sink: sink.reset(target, moves))

    def swap(self, swap: Swap) -> TargetState:
        """See ``Swaps.swap``; SinkUnavailable too where time is over or the JVM ends."""
        return self._call(f"swap {swap.old}", swap.old, lambda sink: sink.swap(swap))

    def remove(self, target: TargetName) -> None:
        """See ``Swaps.remove``; SinkUnavailable too where time is over or the JVM ends."""
        self._call(f"remove {target}", target, lambda sink: sink.remove(target))

    def tag(self, target: TargetName, version: str, number: int, keep: KeepCuts) -> None:
        """See ``Tags.tag``; SinkUnavailable too where time is over or the JVM ends."""
        self._call(f"tag {target}", target, lambda sink: sink.tag(target, version, number, keep))

    def untag(self, target: TargetName, above: int) -> None:
        """See ``Tags.untag``; SinkUnavailable too where time is over or the JVM ends."""
        self._call(f"untag {target}", target, lambda sink: sink.untag(target, above))

    def say_through(self, target: TargetName, moments: Mapping[str, str]) -> bool:
        """See ``Tags.say_through``; SinkUnavailable too where time is over or the JVM ends."""
        what = f"mark {target}"
        return self._call(what, target, lambda sink: sink.say_through(target, moments))

    def _call(
        self, what: str, target: TargetName, act: Callable[[SessionSink], T], times: int = 1
    ) -> T:
        try:
            generation = self._keeper.current(self._wait_s)
        except SinkUnavailable as error:
            raise SinkAway(f"{target}: {error}") from error
        timeout_s = self._timeout_s * times
        deadline = Deadline(what, timeout_s, self._grace_s, self._cancel, generation.jvm.kill)
        try:
            with deadline:
                return act(self._sink_of(generation))
        except Exception as error:
            if self._outdated():
                self._made = None
            # What a call says that was cut off tells nothing about the batch or the target.
            if deadline.passed:
                said = str(error).removeprefix(f"{target}: ")
                text = f"{target}: timed out after {timeout_s:g} s: {said}"
                raise SinkUnavailable(text) from error
            if has_ended(generation, error):
                raise SinkAway(f"{target}: the JVM has ended") from error
            raise
        finally:
            self._garbage.called()

    def _sink_of(self, generation: Generation[J]) -> SessionSink:
        if self._made is None or self._made[0] != generation.number:
            self._made = (generation.number, self._make(generation.jvm))
        return self._made[1]

    def _cancel(self) -> None:
        made = self._made
        if made is not None:
            made[1].cancel()


def has_ended(generation: Generation[Any], error: Exception) -> bool:
    """Whether the generation's JVM has gone.

    A broken connection is seen before the process's end is, so it is given a moment; and so is
    an error that is none of the port's, which would end the daemon.
    """
    foreseen = isinstance(error, (SinkUnavailable, TargetRefused, Fenced))
    wait_s = END_SEEN_WITHIN_S if _is_cut_off(error) or not foreseen else 0.0
    return generation.ended.wait(wait_s)


def _is_cut_off(error: BaseException | None) -> bool:
    """Whether a broken connection is among the causes. py4j says so, or says nothing of Java."""
    while error is not None:
        without_java = isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)
        if without_java or isinstance(error, ConnectionError):
            return True
        error = error.__cause__ or error.__context__
    return False
