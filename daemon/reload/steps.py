"""The order in which pipelines go, change and come, and whether each moment of it is allowed. Pure.

Who gives something up comes before who takes it: first pipelines go, then they change, then new
ones begin. A target has one owner and a group one pipeline at every moment, not only at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from daemon.config.config import Config
from daemon.config.owners import shared_targets
from daemon.config.pipelines import PipelineSection
from daemon.reload.difference import Difference
from daemon.runtime.edits import Fate


class Step(NamedTuple):
    """One pipeline's change. ``before`` and ``after`` are its sections, None where it has none."""

    pipeline: str
    before: PipelineSection | None
    after: PipelineSection | None

    @property
    def fate(self) -> Fate:
        """What the edit makes of the pipeline."""
        if self.after is None:
            return Fate.GOES
        return Fate.BEGINS if self.before is None else Fate.RUNS_AGAIN

    @property
    def half_done(self) -> list[Step]:
        """What there is to undo when it broke off: the pipeline may not run."""
        return [] if self.before is None else [Step(self.pipeline, self.before, self.before)]

    @property
    def undone(self) -> Step:
        """The step back."""
        return Step(self.pipeline, self.after, self.before)


def steps(old: Config, new: Config, found: Difference) -> list[Step]:
    """The steps, in their order."""
    names = [*found.removed, *found.pipelines, *found.added]
    return [Step(name, old.pipeline.get(name), new.pipeline.get(name)) for name in names]


def clashes(old: Config, planned: list[Step]) -> Iterator[str]:
    """What two pipelines would have at once between two steps, a line each."""
    running = dict(old.pipeline)
    for step in planned:
        running.pop(step.pipeline, None)
        if step.after is None:
            continue
        running[step.pipeline] = step.after
        routes = {name: section.routes() for name, section in running.items()}
        groups = {section.group or f"binlogd-{name}" for name, section in running.items()}
        if len(groups) < len(running) or any(shared_targets(routes)):
            yield (
                f"pipeline.{step.pipeline}: takes what another pipeline still has at that moment: "
                "reload once without it, then with it"
            )
