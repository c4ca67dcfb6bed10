"""Two signals end the process, whatever it is doing."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from actors.contract.messages import StopRequested
from daemon.app.signals import StopSignals
from settings.exit import Exit

BOTH = [StopRequested("SIGTERM"), StopRequested("SIGINT")]


class Ended(Exception):
    """In the place of the process's end."""


def raise_both() -> None:
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGINT)


def ends(status: int) -> None:
    assert status == Exit.KILLED.value
    raise Ended


def test_the_supervisor_hears_all_while_it_listens() -> None:
    """What a second one means is its to say: it has actors to leave behind, and says so."""
    heard: list[object] = []
    signals = StopSignals(heard.append, ends)
    with signals.handled(), signals.listening():
        raise_both()
    assert heard == BOTH


def test_the_second_one_ends_a_start_that_hangs() -> None:
    """Nobody reads what is heard yet."""
    heard: list[object] = []
    with StopSignals(heard.append, ends).handled(), pytest.raises(Ended):
        raise_both()
    assert heard == BOTH[:1]


def test_the_second_one_ends_an_end_that_hangs() -> None:
    """The first one ended the supervisor, and what is closed after it takes its time."""
    heard: list[object] = []
    signals = StopSignals(heard.append, ends)
    with signals.handled():
        with signals.listening():
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Ended):
            signal.raise_signal(signal.SIGTERM)


def test_a_process_ends_with_its_status_and_a_line() -> None:
    """Though it is in the middle of a wait."""
    script = (
        "import signal, threading\n"
        "from daemon.app.signals import StopSignals\n"
        "with StopSignals(lambda heard: None).handled():\n"
        "    print('ready', flush=True)\n"
        # As the daemon's main thread waits: a signal just before a wait is heard after it.
        "    while True: threading.Event().wait(1)\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    started.send_signal(signal.SIGINT)
    started.send_signal(signal.SIGTERM)
    assert (started.communicate(timeout=60)[1], started.returncode) == (
        "binlogd: a second signal: stopped at once\n", Exit.KILLED.value
    )  # fmt: skip


def test_ctrl_c_that_somebody_else_took_is_taken_back() -> None:
    """Spark's driver has Ctrl-C raise in the main thread, whatever is in hand."""
    told: list[object] = []
    signals = StopSignals(told.append)
    with signals.handled():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with signals.listening():
            signal.raise_signal(signal.SIGINT)
    assert told == [StopRequested("SIGINT")]
