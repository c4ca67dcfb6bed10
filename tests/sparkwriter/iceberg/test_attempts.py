"""Whose attempt a branch is: what the name tells, and when its owner counts as dead."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from sparkwriter.iceberg.ownership import (
    Attempt,
    Owner,
    anonymous,
    attempt_of,
    is_dead,
    process_start,
    this_process,
)

STATE, OTHER_STATE = "0123456789ab", "ba9876543210"
ELSEWHERE = "f" * 12
DAY_S = 86400.0
NOW_S = 1_700_000_000.0


def dead(owner: Owner, me: Owner, age_s: float = 0) -> bool:
    return is_dead(Attempt(owner, int(NOW_S - age_s)), me, NOW_S, DAY_S)


def test_name_and_back() -> None:
    """The name carries owner and time, and no two names are equal."""
    me = this_process(STATE)
    first, second = me.branch(NOW_S), me.branch(NOW_S)
    assert attempt_of(first) == Attempt(me, int(NOW_S))
    assert first != second


@pytest.mark.parametrize(
    "name", ["main", "audit", "binlogd-", "binlogd-" + "a" * 32, "x" + Owner("a", "b", 1, 1).state]
)
def test_names_of_others(name: str) -> None:
    """A name of another form is nobody's that we know."""
    assert attempt_of(name) is None


def test_our_own_run() -> None:
    """What this run made is not dead, however old."""
    me = this_process(STATE)
    assert not dead(me, me, age_s=10 * DAY_S)


def test_live_process_here() -> None:
    """A process that runs here is live, however old its branch, whatever its state directory."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = process_start(child.pid)
        assert started is not None
        for state in (STATE, OTHER_STATE):
            live = replace(this_process(state), pid=child.pid, started=started)
            assert not dead(live, this_process(STATE), age_s=10 * DAY_S)
        child.kill()
    assert dead(live, this_process(STATE))


def test_process_id_that_was_given_again() -> None:
    """Another process may have the dead one's id: the time it began tells them apart."""
    me = this_process(STATE)
    assert dead(replace(me, state=OTHER_STATE, started=me.started - 1), me)


def test_zombie_process() -> None:
    """A process that ended and was not waited for yet is dead."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process_start(child.pid) is None


def test_our_state_directory_elsewhere() -> None:
    """After a reboot or in a new container, the lock we hold says that the last run has ended."""
    me = this_process(STATE)
    assert dead(replace(me, place=ELSEWHERE), me)


@pytest.mark.parametrize(("age_s", "expected"), [(0, False), (DAY_S, False), (DAY_S + 1, True)])
def test_another_machine(age_s: float, expected: bool) -> None:
    """Of another machine's run only the age is known."""
    assert dead(Owner(OTHER_STATE, ELSEWHERE, 1, 1), this_process(STATE), age_s) is expected


def test_clock_ahead_of_ours() -> None:
    """A branch from our future is young."""
    assert not dead(Owner(OTHER_STATE, ELSEWHERE, 1, 1), this_process(STATE), -10 * DAY_S)


def test_without_a_state_directory() -> None:
    """Two owners without one never take each other's attempts for a dead run's."""
    assert not dead(anonymous(), anonymous())
