"""The demo's own parts: its deadlines, and what it reads from the daemon's log."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from actors.runtime.java import CHECKOUT
from demo.__main__ import DemoFailed, caught_up
from demo.steps import Steps, TooLong


def test_a_step_that_hangs_is_ended() -> None:
    """A wait without an end is cut at the step's deadline, and the step is named."""
    with pytest.raises(TooLong, match="waiting: not done in 0 s"):  # noqa: SIM117
        with Steps(60, lambda _: None).step("waiting", 0.05):
            threading.Event().wait(30)


def test_the_whole_bounds_each_step() -> None:
    """A step may have time left and the whole none."""
    with pytest.raises(TooLong):  # noqa: SIM117
        with Steps(0.05, lambda _: None).step("waiting", 30):
            threading.Event().wait(30)


def test_steps_that_end_are_told() -> None:
    """Each step is told with its duration once it is done, and its timer is gone."""
    told: list[str] = []
    steps = Steps(60, told.append)
    with steps.step("one", 30):
        pass
    with steps.step("two", 30):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert [line.partition(" (")[0] for line in told] == ["one", "two"]


def test_the_last_catching_up_counts(tmp_path: Path) -> None:
    """Of several events the last is taken; lines that only speak of it are not."""
    log = tmp_path / "binlogd.log"
    log.write_text(
        '{"event": "caught_up", "changes": 1, "seconds": 2.0}\n'
        '{"event": "caught_up", "changes": 30, "seconds": 1.5}\n'
        '{"event": "other", "waits_for": "caught_up"}\n'
    )
    assert caught_up(log) == (30, 1.5)


@pytest.mark.parametrize("text", [None, "", '{"event": "running"}\n'])
def test_a_log_without_it_fails(tmp_path: Path, text: str | None) -> None:
    """A daemon that ended before it had caught up is a failure that names the log."""
    log = tmp_path / "binlogd.log"
    if text is not None:
        log.write_text(text)
    with pytest.raises(DemoFailed, match=r"binlogd\.log"):
        caught_up(log)


@pytest.mark.long
@pytest.mark.integration
def test_a_daemon_that_fails_fails_the_demo(tmp_path: Path) -> None:
    """A configuration that isn't there: exit code 1, and what happened on stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "demo", "--changes", "200", "--var", str(tmp_path / "var"),
         "--config", str(tmp_path / "nowhere.toml")],
        cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 1
    assert "demo: FAILED\nthe daemon ended with code" in done.stderr
    assert "OK" not in done.stdout
