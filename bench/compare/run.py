"""Runs one contestant as a process of its own, and takes its measure between its two events."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO

import msgspec

from actors.runtime.java import CHECKOUT, find_java
from bench.compare.dying import die_with_parent
from bench.compare.job import Begin, End, Event, Job, Loaded, Missing
from bench.compare.measure import Meter, Used, family

BEGIN_WITHIN_S = 900.0
"""For a contestant to fetch what it lacks and to warm up."""
LEAVE_WITHIN_S = 60.0
"""For its JVM to stop after its last word."""


class NoFigure(Exception):
    """The contestant can't be had, or failed: why, in a line."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a contestant did: offsets below ``reached``, in so many seconds, with what it used."""

    seconds: float
    reached: int
    used: Used
    figures: dict[str, object]


def run_contestant(
    program: str,
    job: Job,
    folder: Path,
    within_s: float,
    begun: Callable[[], None] = lambda: None,
    loaded: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run it to its end; ``begun`` and ``loaded`` are called at the events of these names. Raises
    NoFigure.

    ``within_s``: how long it may take between its two events. Nothing of it is left behind.
    """
    path = folder / "job.json"
    path.write_bytes(msgspec.json.encode(job))
    said = folder / "stderr.log"
    # Spark's Python workers are this interpreter: the one on PATH may lack our libraries.
    own = {"JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}
    with said.open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", program, str(path)],
            cwd=CHECKOUT, env=os.environ | own,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )  # fmt: skip
    try:
        return _measured(process, said, within_s, begun, loaded)
    finally:
        end_family(process)


def _measured(
    process: subprocess.Popen[bytes],
    said: Path,
    within_s: float,
    begun: Callable[[], None],
    loaded: Callable[[], None],
) -> Outcome:
    assert process.stdout is not None
    events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(process.stdout, events), daemon=True).start()
    first = _next(events, BEGIN_WITHIN_S, said)
    if isinstance(first, Missing):
        raise NoFigure(first.reason)
    if not isinstance(first, Begin):
        raise NoFigure(f"it ended before it began: {first}")
    meter = Meter(first.pid or process.pid)
    meter.start()
    began = time.monotonic()
    try:
        begun()
        last = _next(events, within_s, said)
        if isinstance(last, Loaded):
            loaded()
            last = _next(events, within_s, said)
        seconds = time.monotonic() - began
    finally:
        used = meter.stop()
    if isinstance(last, Missing):
        raise NoFigure(last.reason)
    if not isinstance(last, End):
        raise NoFigure(f"it began twice: {last}")
    return Outcome(seconds, last.reached, used, last.figures)


def _listen(lines: IO[bytes], events: queue.SimpleQueue[Event | None]) -> None:
    """Hand on each event; at the end of its words, None. What is no event ends it too."""
    for line in lines:
        try:
            events.put(msgspec.json.decode(line, type=Event))
        except msgspec.MsgspecError:
            print(f"compare: not an event: {line!r}", file=sys.stderr)
            break
    events.put(None)


def _next(events: queue.SimpleQueue[Event | None], within_s: float, said: Path) -> Event:
    try:
        event = events.get(timeout=within_s)
    except queue.Empty:
        raise NoFigure(f"no word in {within_s:.0f} s; see {said}") from None
    if event is None:
        raise NoFigure(f"it ended without a word: {last_line(said)}; see {said}")
    return event


def last_line(log: Path) -> str:
    """The last line of a log that says something."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "nothing on standard error"


def end_family(process: subprocess.Popen[bytes]) -> None:
    """Wait a moment for it to end by itself, then end it and whatever it started."""
    with ExitStack() as handles:
        started = []
        for one in family(process.pid):
            if one.pid != process.pid:
                with suppress(ProcessLookupError):
                    # A handle, for a number may be another's by the time that it is used.
                    handle = os.pidfd_open(one.pid)
                    handles.callback(os.close, handle)
                    started.append(handle)
        try:
            process.wait(LEAVE_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for handle in started:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            wait([handle], LEAVE_WITHIN_S)
