"""How often, and how long apart, something is tried."""

from __future__ import annotations

import pytest

from actors.runtime.backoff import BackOff


class Clock:
    """Time that passes in the waits alone, which are noted."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def never() -> None:
    raise TimeoutError("away")


def ignore(error: Exception, attempt: int) -> None:
    """Nobody needs to be told."""


def test_what_passes_is_tried_until_it_does() -> None:
    """With each failure told, and its number."""
    clock, said = Clock(), []
    outcomes = [TimeoutError("one"), TimeoutError("two"), None]

    def act() -> str:
        if (outcome := outcomes.pop(0)) is not None:
            raise outcome
        return "there"

    back_off = BackOff(60.0, clock=clock, pause=clock.pause, jitter=lambda: 1.0)
    answer = back_off.call(act, (TimeoutError,), lambda e, n: said.append((str(e), n)))
    assert answer == "there"
    assert said == [("one", 1), ("two", 2)]
    assert clock.waits == [0.1, 0.2]


def test_waits_double_up_to_a_bound_and_end_in_time() -> None:
    """No attempt begins after the time is over, and the last error is what is raised."""
    clock = Clock()
    back_off = BackOff(20.0, clock=clock, pause=clock.pause, jitter=lambda: 1.0)
    with pytest.raises(TimeoutError, match="away"):
        back_off.call(never, (TimeoutError,), ignore)
    assert clock.waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert clock.now <= 20.0


def test_jitter_takes_up_to_half_of_a_wait() -> None:
    """Many that failed together come back apart."""
    clock = Clock()
    back_off = BackOff(0.3, clock=clock, pause=clock.pause, jitter=lambda: 0.0)
    with pytest.raises(TimeoutError):
        back_off.call(never, (TimeoutError,), ignore)
    assert clock.waits[0] == pytest.approx(0.05)


def test_what_does_not_pass_is_raised_at_once() -> None:
    """A mistake is no better at the second attempt."""
    clock = Clock()
    with pytest.raises(TimeoutError):
        BackOff(60.0, clock=clock, pause=clock.pause).call(never, (KeyError,), ignore)
    assert clock.waits == []
