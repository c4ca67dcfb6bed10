"""What is remembered of the last hour: rates, seconds of a write, lag, errors; and no more."""

from __future__ import annotations

import math
import sys

import pytest

from daemon.admin.page import history as module
from daemon.admin.page.history import POINTS, History
from tests.daemon.admin.page.documents import NOW_MS, failing, status, target

T = "lake.shop.orders"


def sampled(*rows: int, every_s: float = 10.0) -> History:
    """A history of samples of one target with so many rows each."""
    history = History()
    for number, count in enumerate(rows):
        history.sample(status([target(T, count)], uptime_s=100 + number * every_s, read=count))
    return history


def test_a_rate_is_what_was_added_in_the_interval() -> None:
    """Of a target and of its pipeline; the first sample has nothing to compare with."""
    history = sampled(1_000, 1_500, 4_500)
    course = history.course("shop", T)
    assert course is not None
    assert math.isnan(course.rows[-3])
    assert course.rows[-2:] == (50.0, 300.0)
    assert (history.rows_rate("shop", T), history.messages_rate("shop")) == (300.0, 300.0)


def test_seconds_of_a_write_are_their_mean_and_unknown_without_one() -> None:
    course = sampled(1_000, 2_000, 2_000).course("shop", T)
    assert course is not None
    assert course.write[-2] == pytest.approx(0.2)
    assert math.isnan(course.write[-1])


def test_a_pipeline_that_was_started_again_counts_from_nothing() -> None:
    """Its rate is never below 0, and never the whole count of before."""
    assert sampled(9_000, 9_500, 200).rows_rate("shop", T) == 20.0


def test_an_hour_is_kept_the_oldest_goes() -> None:
    """As many points as one hour has, the newest last."""
    course = sampled(*range(0, 10 * (POINTS + 5), 10)).course("shop", T)
    assert course is not None
    assert len(course.rows) == POINTS
    assert set(course.rows) == {1.0}


def test_a_target_without_a_change_takes_no_memory() -> None:
    history = History()
    history.sample(status([target(T, 0)]))
    assert history.course("shop", T) is None


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further targets have no course; the known ones go on."""
    monkeypatch.setattr(module, "MOST_TARGETS", 2)
    history = History()
    history.sample(status([target(f"lake.shop.t{n}", 5) for n in range(4)]))
    known = [history.course("shop", f"lake.shop.t{n}") is not None for n in range(4)]
    assert known == [True, True, False, False]


def test_an_error_that_repeats_is_one_entry_with_its_last_time() -> None:
    history = History()
    for number in range(3):
        targets = [failing(T, "no space left"), failing("lake.shop.u", "gone")]
        history.sample(status(targets, uptime_s=100 + number))
    assert [(e.target, e.reason, e.time_ms) for e in history.errors()] == [
        (T, f"{T}: no space left", NOW_MS - 3_000),
        ("lake.shop.u", "lake.shop.u: gone", NOW_MS - 3_000),
    ]


def test_the_oldest_errors_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ERRORS", 3)
    history = History()
    for number in range(5):
        found = status([failing(T, f"error {number}")], uptime_s=100 + number)
        history.sample(found | {"time_ms": NOW_MS + number})
    assert [e.reason for e in history.errors()] == [f"{T}: error {n}" for n in (4, 3, 2)]


def paced(*lags: int) -> float | None:
    """The estimate after samples that were so many messages behind."""
    history = History()
    for number, lag in enumerate(lags):
        history.sample(status([target(T, 5)], uptime_s=100 + 10 * number, holder=T, lag=lag))
    course = history.pipeline_course("shop")
    assert course is not None
    return course.left_s


def test_the_time_left_is_at_the_pace_of_the_last_minutes() -> None:
    """Five minutes, however long it has been behind."""
    assert paced(5_000, 4_000, 3_000) == 30.0
    slow_first = [100_000] * 50 + [100_000 - 1_000 * n for n in range(31)]
    assert paced(*slow_first) == pytest.approx(700.0)


def test_there_is_no_time_left_where_the_lag_does_not_fall_or_is_not_known() -> None:
    assert paced(5_000) is None
    assert paced(5_000, 5_000) is None
    assert paced(5_000, 6_000) is None
    assert History().pipeline_course("shop") is None


def test_a_pipelines_hour_has_rows_lag_and_freshness() -> None:
    history = History()
    for number in range(3):
        found = status([target(T, 500 * number), target("lake.shop.u", 100)],
                       uptime_s=100 + 10 * number, holder=T, lag=70)  # fmt: skip
        history.sample(found)
    course = history.pipeline_course("shop")
    assert course is not None
    assert (course.rows[-1], course.lag[-1], course.behind[-1]) == (50.0, 740.0, 70.0)
    assert course.freshness[-1] == pytest.approx(1.2)
    gone = status([])
    gone["pipelines"] = []
    history.sample(gone | {"uptime_seconds": 900.0})
    assert history.pipeline_course("shop") is None


def test_what_began_and_ended_is_an_event_once() -> None:
    """The newest first; what only passes is none."""
    history = History()
    well, bad = [target(T, 5)], [failing(T, "no space left")]
    for number, targets in enumerate((well, bad, bad, well)):
        history.sample(status(targets, uptime_s=100 + 10 * number))
    assert [(e.begun, e.condition.who, e.condition.line) for e in history.events()] == [
        (False, "lake", f"{T}: no space left"),
        (True, "lake", f"{T}: no space left"),
    ]


def test_events_are_bounded() -> None:
    history = History()
    for number in range(120):
        targets = [failing(f"s{number}.shop.t", "no space left")]
        history.sample(status(targets, uptime_s=100 + 10 * number))
    assert len(history.events()) == module.MOST_EVENTS


def test_an_hour_of_a_pipeline_takes_six_kilobytes() -> None:
    """As the docs say: four lines of 360 points of 4 bytes."""
    ring = module._Ring(4)
    assert sum(sys.getsizeof(points) for points in ring._points) < 6_200
