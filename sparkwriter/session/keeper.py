"""Keeps one session alive: when its JVM has ended, another is started, without a restart.

Nobody has to use the session for its end to be noticed: a thread waits for the process. A
writer that comes meanwhile waits a little for the next generation, and is then told to retry; it
keeps its batch, and reads the target's marks before it writes it again.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import structlog

from actors.runtime.backoff import Waits
from actors.runtime.program_keeper import Restarts
from changes.model.errors import SinkUnavailable

log: Any = structlog.get_logger(__name__)


class Jvm(Protocol):
    """What a generation lives in."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def wait(self) -> str:
        """Return when it has ended, saying how. Called by one thread."""
        ...

    def kill(self) -> None:
        """End it by force. Any thread, never blocks."""
        ...

    def forget(self) -> None:
        """It has ended: let nothing of it stand in the way of the next."""
        ...

    def stop(self, within_s: float) -> None:
        """End it in good order, by force where that takes longer."""
        ...


J = TypeVar("J", bound=Jvm)


@dataclass(frozen=True, slots=True)
class SessionKeeperSettings(Restarts):
    """How soon another JVM is started, in seconds. One that dies soon again may have had a batch
    too large for its heap."""

    stop_s: float = 10.0


@dataclass(frozen=True, slots=True)
class SessionFigures:
    """How the session stands. ``age_s`` is the living one's, ``down_s`` since the last one ended.

    ``rebuilt`` counts the generations after the first, ``last_end`` says how the last one ended.
    """

    pid: int | None = None
    age_s: float | None = None
    down_s: float | None = None
    rebuilt: int = 0
    last_end: str | None = None


class Generation(Generic[J]):
    """One session and its JVM. ``ended`` is set when the process has gone."""

    def __init__(self, number: int, jvm: J, since: float) -> None:
        self.number = number
        self.jvm = jvm
        self.since = since
        self.ended = threading.Event()


class SessionKeeper(Generic[J]):
    """Hands out the current generation to any thread; one thread opens it, one closes it then."""

    def __init__(
        self,
        start: Callable[[], J],
        settings: SessionKeeperSettings,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """``start`` makes a session with its JVM, first on the thread of ``open`` and then on
        the keeper's; it raises SinkUnavailable where that can't be had. ``jitter`` gives 0..1."""
        self._start = start
        self._settings = settings
        self._jitter = jitter
        self._lock = threading.Condition()
        self._current: Generation[J] | None = None
        self._down_since: float | None = None
        self._last_end: str | None = None
        self._failures = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="session-keeper", daemon=True)

    def open(self) -> J:
        """Start the first one, and watch it. Raises what ``start`` raises."""
        generation = Generation(1, self._start(), time.monotonic())
        self._current = generation
        self._thread.start()
        return generation.jvm

    def current(self, wait_s: float = 0.0) -> Generation[J]:
        """The living generation, waited for so long where there is none.

        Raises SinkUnavailable, saying since when there is none, after that, or when it is closed.
        """
        with self._lock:
            self._lock.wait_for(self._is_decided, wait_s)
            generation, down_since = self._current, self._down_since
        if down_since is not None:
            seconds = time.monotonic() - down_since
            raise SinkUnavailable(
                f"the JVM {self._last_end} {seconds:.0f} s ago, another is being started"
            )
        assert generation is not None, "open() comes first"
        return generation

    def _is_decided(self) -> bool:
        return self._down_since is None or self._closed.is_set()

    def figures(self) -> SessionFigures:
        """How it stands now."""
        now = time.monotonic()
        with self._lock:
            generation, down_since = self._current, self._down_since
            if generation is None:
                return SessionFigures()
            up = down_since is None
            return SessionFigures(
                pid=generation.jvm.pid if up else None,
                age_s=now - generation.since if up else None,
                down_s=None if down_since is None else now - down_since,
                rebuilt=generation.number - 1,
                last_end=self._last_end,
            )

    def close(self) -> None:
        """Stop the session and start no other. One that is being started is ended when it is up:
        by the keeper's thread, or with this process, whose end of its stdin it reads."""
        self._closed.set()
        with self._lock:
            self._lock.notify_all()
            generation = self._current if self._down_since is None else None
        if generation is not None:
            generation.jvm.stop(self._settings.stop_s)
        if self._thread.is_alive():
            self._thread.join(self._settings.stop_s)

    # --- the keeper's thread

    def _keep(self) -> None:
        while not self._closed.is_set():
            generation = self._current
            assert generation is not None
            how = generation.jvm.wait()
            now = time.monotonic()
            with self._lock:
                self._down_since, self._last_end = now, how
            generation.ended.set()
            if self._closed.is_set():
                return
            lived_s = now - generation.since
            fields = {"pid": generation.jvm.pid, "how": how, "lived_s": round(lived_s, 1)}
            log.error("jvm_ended", **fields)
            self._failures = 0 if lived_s >= self._settings.steady_s else self._failures + 1
            try:
                generation.jvm.forget()
            except Exception:
                # The next start will tell whether that stands in its way; this thread must not end.
                log.exception("session_not_forgotten")
            self._rebuild(generation.number + 1, now)

    def _rebuild(self, number: int, down_since: float) -> None:
        """Start the next generation, however often that has to be tried."""
        while not self._closed.wait(self._back_off()):
            begun = time.monotonic()
            try:
                jvm = self._start()
            except SinkUnavailable as error:
                self._failures += 1
                log.error("session_not_rebuilt", reason=str(error), attempt=self._failures)
                continue
            except Exception:
                # An unforeseen fault; without a session nothing would ever be written again.
                self._failures += 1
                log.exception("session_not_rebuilt", attempt=self._failures)
                continue
            now = time.monotonic()
            with self._lock:
                self._current = Generation(number, jvm, now)
                self._down_since = None
                self._lock.notify_all()
            log.warning(
                "session_rebuilt",
                pid=jvm.pid,
                seconds=round(now - begun, 1),
                down_s=round(now - down_since, 1),
                generation=number,
            )
            if self._closed.is_set():
                jvm.kill()
            return

    def _back_off(self) -> float:
        """Seconds to wait before the next start, with jitter: none the first time."""
        if self._failures <= 1:
            return 0.0
        settings = self._settings
        waits = Waits(settings.retry_base_s, settings.retry_max_s, self._jitter)
        return waits.after(self._failures - 1)
