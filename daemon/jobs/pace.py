"""How fast a job goes, of what it reports. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from daemon.jobs.record import Progress

OVER_S = 60.0
"""The rate is over so long. Shorter: it jumps with each chunk. Longer: it tells of the past."""

APART_S = 1.0
"""Between two samples that are kept, so that they are few."""


@dataclass(slots=True)
class Pace:
    """The samples of one job since it runs: (monotonic seconds, done)."""

    _samples: deque[tuple[float, int]] = field(default_factory=deque)

    def measured(self, progress: Progress, now_s: float) -> Progress:
        """The same with rate and remaining time."""
        samples = self._samples
        if samples and progress.done < samples[-1][1]:
            samples.clear()  # it began again
        while len(samples) > 1 and samples[1][0] <= now_s - OVER_S:
            samples.popleft()
        rate = eta = None
        if samples and now_s > samples[0][0]:
            rate = (progress.done - samples[0][1]) / (now_s - samples[0][0])
        if not samples or now_s - samples[-1][0] >= APART_S:
            samples.append((now_s, progress.done))
        if rate and progress.total is not None:
            eta = max(0.0, (progress.total - progress.done) / rate)
        rounded = None if rate is None else round(rate, 3)
        return replace(progress, rate=rounded, eta_s=None if eta is None else round(eta, 1))
