"""Keeps programs running: asks them, replaces those that ended or fell silent, says how each is.

One thread looks after all of them, so each call of a ``KeptProgram`` is short. A program that can't
be had is tried again with growing waits; nobody waits for it who doesn't ask to.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol

import structlog

from actors.runtime.backoff import Waits
from actors.runtime.periodic import Periodic
from actors.runtime.programs import STOP_WITHIN_S, Program, ProgramError, gist
from changes.model.printable import reason_of

State = Literal["waiting", "starting", "up", "silent", "down", "ended"]
"""waiting: for a program before it. silent: it runs, and does not answer. down: it does not run."""


class KeptProgram(Protocol):
    """A program as its keeper needs it. All calls come from one thread at a time."""

    program: Program
    start_within_s: float
    """From ``launch`` to the first answer; after this it is killed and tried again."""

    def launch(self) -> None:
        """Write what it needs and start it; not ready yet. Takes seconds at most.

        Raises ProgramError, in words for who runs it, where that can't be done.
        """
        ...

    def ask(self) -> None:
        """Return where it does its work; what must be so before others use it is done here, too.

        Takes two or three seconds at most. Raises ProgramError, saying what is wrong.
        """
        ...


@dataclass(frozen=True, slots=True)
class Restarts:
    """How soon a program that has ended is started again, in seconds.

    The first replacement is immediate. Where it ends again within ``steady_s``, or can't be
    started, the wait doubles from ``retry_base_s`` up to ``retry_max_s``.
    """

    retry_base_s: float = 1.0
    retry_max_s: float = 60.0
    steady_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ProgramTimes(Restarts):
    """In seconds. ``silent_s``: one that runs without answering for so long is killed and
    replaced."""

    look_every_s: float = 0.2
    ask_every_s: float = 3.0
    silent_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ProgramFigures:
    """How a program is. ``since_s``: for how long in this state; ``why``: what its last end, failed
    start or failed question said in a line, also of one that is up again; ``starts``: launches."""

    name: str
    state: State
    since_s: float
    starts: int = 0
    pid: int | None = None
    why: str | None = None


class _Kept:
    """One program with its state. The keeper's thread changes it, under the keeper's lock."""

    def __init__(self, kept: KeptProgram, now: float) -> None:
        self.kept = kept
        self.name = kept.program.name
        self.state: State = "waiting"
        self.since = now
        self.launched = now
        self.answered = now
        self.asked = now
        self.failures = 0
        self.again_at = now
        self.starts = 0
        self.pid: int | None = None
        self.why: str | None = None

    def launch(self, now: float) -> None:
        """Start it. Raises ProgramError and OSError."""
        self.launched = self.asked = now
        self.starts += 1
        self.kept.launch()
        self.pid = self.kept.program.pid

    def note_answer(self, now: float) -> None:
        """It is well."""
        self.asked = self.answered = now
        if self.state == "starting" and not self.failures:
            self.why = None  # the question came before it could answer

    def note_silence(self, now: float, why: str) -> float:
        """It runs and gave no good answer: the seconds for which it gave none."""
        self.asked, self.why = now, why
        return now - (self.launched if self.state == "starting" else self.answered)

    def note_failure(self, now: float, settings: ProgramTimes, why: str) -> float:
        """It is down: the seconds after which it is tried again."""
        lived_s = now - self.launched if self.state in ("up", "silent") else 0.0
        self.failures = 1 if lived_s > settings.steady_s else self.failures + 1
        waits = Waits(settings.retry_base_s, settings.retry_max_s)
        wait = waits.after(self.failures - 1) if self.failures > 1 else 0.0
        self.again_at, self.pid, self.why = now + wait, None, why
        return wait

    def turn(self, state: State, now: float) -> None:
        """It is so from now on."""
        if self.state == state:
            return
        # Tried again is not news: how long it has been down goes on.
        if not (self.state == "down" and state == "starting" and self.failures > 1):
            self.since = now
        self.state = state


class ProgramKeeper:
    """Keeps programs in the order given: each is started when those before it are up.

    One that is up stays so when one before it goes down: it has its own way of waiting for it.
    ``open`` and ``close`` are one thread's, everything else is any thread's.
    """

    def __init__(
        self,
        programs: Sequence[KeptProgram],
        settings: ProgramTimes | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing runs yet. ``clock`` is in monotonic seconds."""
        self._settings = settings or ProgramTimes()
        self._clock = clock
        self._kept = [_Kept(each, clock()) for each in programs]
        self._changed = threading.Condition()
        self._round = threading.Lock()  # held through a round, so that ``close`` ends what it began
        self._log = structlog.get_logger().bind(actor="programs")
        self._thread = Periodic(
            "programs", self.look, self._settings.look_every_s, "programs", "programs_not_asked"
        )

    def open(self) -> None:
        """Begin to start them; returns at once."""
        self._thread.start()

    def figures(self) -> list[ProgramFigures]:
        """How each is now, in their order."""
        now = self._clock()
        with self._changed:
            return [
                ProgramFigures(k.name, k.state, now - k.since, k.starts, k.pid, k.why)
                for k in self._kept
            ]

    def await_up(self, name: str, within_s: float) -> bool:
        """Whether that program is up, waited for so long; False, too, where they are ended."""
        kept = next(k for k in self._kept if k.name == name)
        with self._changed:
            self._changed.wait_for(lambda: kept.state in ("up", "ended"), within_s)
            return kept.state == "up"

    def close(self, within_s: float = STOP_WITHIN_S) -> None:
        """End them in good order, the last one first; each is killed where it takes longer."""
        self._thread.close()
        taken = self._round.acquire(timeout=within_s)
        try:
            for kept in reversed(self._kept):
                if taken:
                    kept.kept.program.stop(within_s)
                self._turn(kept, "ended")
        finally:
            if taken:
                self._round.release()

    def look(self) -> None:
        """One round over all of them, on the keeper's thread."""
        with self._round:
            for number, kept in enumerate(self._kept):
                if self._thread.closed:
                    return
                before = all(other.state == "up" for other in self._kept[:number])
                try:
                    self._look_at(kept, before)
                except Exception as error:
                    # An unforeseen fault: the other programs must still be checked.
                    self._log.exception("program_not_kept", program=kept.name)
                    self._fail(kept, f"{type(error).__name__}: {reason_of(error)}")

    def _look_at(self, kept: _Kept, may_start: bool) -> None:
        now = self._clock()
        if kept.state in ("waiting", "down"):
            if may_start and now >= kept.again_at:
                self._launch(kept, now)
        elif not kept.kept.program.runs:
            self._fail(kept, f"ended with code {kept.kept.program.code}", kept.kept.program.tail())
        elif kept.state == "starting" or now - kept.asked >= self._settings.ask_every_s:
            self._ask(kept)

    def _launch(self, kept: _Kept, now: float) -> None:
        try:
            kept.launch(now)
        except (ProgramError, OSError) as problem:
            self._fail(kept, reason_of(problem))
            return
        self._turn(kept, "starting")

    def _ask(self, kept: _Kept) -> None:
        self._shorten_log(kept)
        try:
            kept.kept.ask()
        except ProgramError as problem:
            self._silent(kept, reason_of(problem))
            return
        kept.note_answer(self._clock())
        if kept.state == "starting":
            self._log.info(
                "program_up", program=kept.name, pid=kept.pid, starts=kept.starts,
                seconds=round(kept.asked - kept.launched, 1),
            )  # fmt: skip
        self._turn(kept, "up")

    def _shorten_log(self, kept: _Kept) -> None:
        """A full disk takes no copy: the log stays as it is."""
        with suppress(OSError):
            kept.kept.program.shorten_log()

    def _silent(self, kept: _Kept, why: str) -> None:
        """It runs and gave no good answer: it is given some time, then replaced."""
        silent_s = kept.note_silence(self._clock(), why)
        starting = kept.state == "starting"
        within_s = kept.kept.start_within_s if starting else self._settings.silent_s
        if silent_s > within_s:
            self._fail(kept, f"no answer in {within_s:.0f} s: {why}", kept.kept.program.tail())
        elif kept.state == "up":
            self._log.warning("program_silent", program=kept.name, pid=kept.pid, reason=why)
            self._turn(kept, "silent")

    def _fail(self, kept: _Kept, why: str, tail: str = "") -> None:
        """It is down: nothing of it is left, and when it is tried again. ``tail``: of its log."""
        kept.kept.program.kill()
        said = f"{why}: {gist(tail)}" if tail else why
        wait = kept.note_failure(self._clock(), self._settings, said)
        more = {"log": tail} if tail else {}
        self._log.error("program_down", program=kept.name, reason=why, again_in_s=wait, **more)
        self._turn(kept, "down")

    def _turn(self, kept: _Kept, state: State) -> None:
        with self._changed:
            kept.turn(state, self._clock())
            self._changed.notify_all()
