"""Whether what a process holds stays what it was: memory, open files, threads. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

ENOUGH = 20
"""Samples of a third. Fewer say nothing, and then the answer is no."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one kind of process holds at a moment, by figure."""

    at_s: float
    kind: str
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Rule:
    """How much a figure's median may grow from the second third of a run to the last."""

    kind: str
    figure: str
    part: float
    slack: float
    """Whatever the part: small counts jump by a few."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A figure's medians in the second and the last third; None where there are too few."""

    rule: Rule
    before: float | None
    after: float | None

    @property
    def bound(self) -> float | None:
        """The last third's median may be as much."""
        if self.before is None:
            return None
        return self.before * (1 + self.rule.part) + self.rule.slack

    @property
    def flat(self) -> bool:
        """Whether it holds."""
        return self.bound is not None and self.after is not None and self.after <= self.bound


def judge(samples: Sequence[Sample], rule: Rule, whole_s: float) -> Verdict:
    """Compare the thirds. The first one is not looked at: there everything is still warming up."""
    third = whole_s / 3
    values: list[list[float]] = [[], [], []]
    for sample in samples:
        if sample.kind == rule.kind:
            values[min(int(sample.at_s / third), 2)].append(sample.figures[rule.figure])
    _, before, after = (median(those) if len(those) >= ENOUGH else None for those in values)
    return Verdict(rule, before, after)
