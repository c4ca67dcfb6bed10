"""A histogram as Prometheus knows it: how many values are at most as large as each bound. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

WRITE_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""From a row in a database to a large merge in a lake; what takes longer is cut off."""

FRESH_S = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Half a second is the best there is; an hour is a catch-up."""


@dataclass(frozen=True, slots=True)
class HistogramFigures:
    """``counts``: of each interval up to a bound, and of what is beyond the last one."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float


class Histogram:
    """Counts values. One thread's."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value; one below 0, as two clocks may give it, is 0."""
        value = max(0.0, value)
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def figures(self) -> HistogramFigures:
        """As it is now."""
        return HistogramFigures(self._bounds, tuple(self._counts), self._sum)
