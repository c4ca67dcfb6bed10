"""The soak's rule says no to what grows, and to what it can't know."""

from __future__ import annotations

import random

import pytest

from tests.chaos.flat import Rule, Sample, judge

RULE = Rule("daemon", "rss_mb", part=0.05, slack=5)


def samples(growth_per_s: float, count: int = 600, kind: str = "daemon") -> list[Sample]:
    """Twenty minutes of a noisy figure."""
    noise = random.Random(1)
    return [
        Sample(2.0 * n, kind, {"rss_mb": 200 + 2 * n * growth_per_s + noise.uniform(-8, 8)})
        for n in range(count)
    ]


def test_noise_is_flat() -> None:
    """A figure that goes up and down about one value holds."""
    assert judge(samples(0), RULE, 1200).flat


def test_a_leak_is_not_flat() -> None:
    """Four megabytes a minute are seen."""
    verdict = judge(samples(4 / 60), RULE, 1200)
    assert not verdict.flat
    assert verdict.before is not None
    assert verdict.after is not None
    assert verdict.after - verdict.before == pytest.approx(400 * 4 / 60, abs=3)


def test_the_first_third_does_not_count() -> None:
    """What is warming up may grow."""
    late = [s for s in samples(0) if s.at_s >= 400]
    early = [Sample(2.0 * n, "daemon", {"rss_mb": 0.5 * n}) for n in range(200)]
    assert judge(early + late, RULE, 1200).flat


def test_too_little_is_not_flat() -> None:
    """A process that nobody could look at is not said to be well."""
    assert not judge(samples(0, kind="jvm"), RULE, 1200).flat
    assert not judge([s for s in samples(0) if s.at_s < 800], RULE, 1200).flat
