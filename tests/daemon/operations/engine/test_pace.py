"""How fast a job goes."""

from __future__ import annotations

import pytest

from daemon.operations.engine.entry import Pace
from daemon.operations.engine.record import JobProgress


def test_the_rate_is_of_the_last_minute() -> None:
    """Not of all the time: a job that slows down is shown as slow."""
    pace = Pace()
    for second in range(120):
        fast = pace.measured(JobProgress(second * 10, 10_000), float(second))
    assert fast.rate == pytest.approx(10)
    for second in range(120, 240):
        slow = pace.measured(JobProgress(1_200 + second - 120, 10_000), float(second))
    assert slow.rate == pytest.approx(1, rel=0.1)
    assert slow.eta_s == pytest.approx(10_000 - slow.done, rel=0.1)


def test_what_is_not_known_is_not_told() -> None:
    """The first figure has no rate, a job without an end no remaining time."""
    pace = Pace()
    assert pace.measured(JobProgress(5, 10), 1.0).rate is None
    found = pace.measured(JobProgress(7), 2.0)
    assert (found.rate, found.eta_s) == (2.0, None)


def test_a_job_that_begins_again_has_a_new_rate() -> None:
    """Never a negative one."""
    pace = Pace()
    pace.measured(JobProgress(500, 1_000), 0.0)
    pace.measured(JobProgress(600, 1_000), 1.0)
    assert pace.measured(JobProgress(0, 1_000), 2.0).rate is None
    assert pace.measured(JobProgress(10, 1_000), 3.0).rate == 10.0


@pytest.mark.parametrize(
    ("done", "total", "ratio"), [(0, None, None), (5, 10, 0.5), (11, 10, 1.0), (0, 0, 1.0)]
)
def test_the_ratio_is_from_0_to_1(done: int, total: int | None, ratio: float | None) -> None:
    """Estimates may be too low."""
    assert JobProgress(done, total).ratio == ratio
