"""The order in which pipelines go, change and come, and whether each moment of it is allowed. Pure.

Who gives something up comes before who takes it: first pipelines go, then they change, then new
ones begin. A target has one owner and a group one pipeline at every moment, not only at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from changes.model.model import TargetName
from changes.routes.routing import Router
from daemon.config.config import Config
from daemon.config.owners import shared_targets
from daemon.config.pipelines import PipelineSection
from daemon.operations.engine.record import Job
from daemon.operations.reload.difference import Difference
from daemon.state.dead_letters.index import LetterIndex
from daemon.state.edits import Fate
from settings.counted import counted
from settings.shell import quoted


class ReloadStep(NamedTuple):
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
    def half_done(self) -> list[ReloadStep]:
        """What there is to undo when it broke off: the pipeline may not run."""
        return [] if self.before is None else [ReloadStep(self.pipeline, self.before, self.before)]

    @property
    def undone(self) -> ReloadStep:
        """The step back."""
        return ReloadStep(self.pipeline, self.after, self.before)


def steps(old: Config, new: Config, found: Difference) -> list[ReloadStep]:
    """The steps, in their order."""
    names = [*found.removed, *found.pipelines, *found.added]
    return [ReloadStep(name, old.pipeline.get(name), new.pipeline.get(name)) for name in names]


def clashes(old: Config, planned: list[ReloadStep]) -> Iterator[str]:
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


# What a changed pipeline would leave behind: targets that no route leads to any more.


def orphans(
    config: Config,
    pipeline: Mapping[str, Any],
    jobs: Iterable[Job],
    letters: LetterIndex,
) -> Iterator[tuple[str, str]]:
    """Targets that ``config`` no longer leads to and that something is kept for, with the reason.

    ``pipeline`` is its part of the status document, as it runs now.
    """
    name = pipeline["pipeline"]
    router = Router(config.routes(name)) if name in config.pipeline else None

    def gone(target: str) -> bool:
        return router is None or not router.reaches(TargetName.parse(target))

    for target in pipeline["targets"]:
        if gone(target["target"]) and (why := _kept(target)) is not None:
            yield target["target"], why
    for job in jobs:
        if job.wanted.pipeline == name and not job.state.is_final:
            yield from ((t, f"the job {job.id} works on it") for t in job.wanted.targets if gone(t))
    open_letters = {s.letter.id.target for s in letters.stored if s.state == "open"}
    for letter_of in sorted(filter(None, open_letters)):
        if gone(letter_of):
            yield letter_of, "dead letters of it wait to be replayed"


def _kept(target: Mapping[str, Any]) -> str | None:
    if (quarantine := target["quarantine"]) is not None:
        return f"it is in quarantine, with {counted(quarantine['messages'], 'message')} kept"
    if (away := target["away"]) is not None:
        return f"its sink is away, with {counted(away['messages'], 'message')} kept"
    if target["last_error"] and target["last_error"]["lasting"]:
        return f"its rows can't be written: {target['last_error']['reason']}"
    return None


def left_behind(
    config: Config, pipeline: Mapping[str, Any], jobs: Iterable[Job], letters: LetterIndex
) -> Iterator[tuple[str, str]]:
    """What a pipeline that ``config`` lacks would leave behind, by target or by its own name."""
    if pipeline["failure"] is not None:
        yield pipeline["pipeline"], f"it has failed: {pipeline['failure']}"
    if waiting := pipeline["dead_letters"]["waiting"]:
        yield pipeline["pipeline"], counted(waiting, "dead letter waits", "dead letters wait")
    yield from orphans(config, pipeline, jobs, letters)


def refused_removal(
    name: str, found: Iterable[tuple[str, str]], jobs: Iterable[Job], discard: Collection[str]
) -> list[str]:
    """A line for each reason why a pipeline is not removed. Nothing of it is deleted, but nobody
    would look after it any more."""
    own = [job for job in jobs if job.wanted.pipeline == name and not job.state.is_final]
    lines = [
        f"pipeline {name} is removed, and the job {job.id} works on it: "
        f"`binlogd jobs cancel {quoted(job.id)}`"
        for job in own
    ]
    if own or name in discard:
        return lines
    return [
        f"pipeline {name} is removed, and of {what}: {why}; --discard {quoted(name)} leaves that "
        "as it is"
        for what, why in dict(found).items()
        if what not in discard
    ]


def refused(found: Iterable[tuple[str, str]], discard: Collection[str]) -> list[str]:
    """A line for each target that is not given up by name."""
    return [
        f"{target} has no route any more, and {why}; --discard {quoted(target)} gives that up"
        for target, why in dict(found).items()
        if target not in discard
    ]
