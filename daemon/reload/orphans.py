"""What a changed pipeline would leave behind: targets that no route leads to any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from changes.model import TargetName
from changes.routing import Router
from daemon.config.config import Config
from daemon.jobs.record import Job
from daemon.letters.index import LetterIndex


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
        return f"it is in quarantine, with {quarantine['messages']:,} messages kept"
    if (away := target["away"]) is not None:
        return f"its sink is away, with {away['messages']:,} messages kept"
    if target["last_error"] and target["last_error"]["lasting"]:
        return f"its rows can't be written: {target['last_error']['reason']}"
    return None


def left_behind(
    config: Config, pipeline: Mapping[str, Any], jobs: Iterable[Job], letters: LetterIndex
) -> Iterator[tuple[str, str]]:
    """What a pipeline that ``config`` lacks would leave behind, by target or by its own name."""
    if pipeline["failure"] is not None:
        yield pipeline["pipeline"], f"it has failed: {pipeline['failure']}"
    if pipeline["dead_letters"]["waiting"]:
        yield pipeline["pipeline"], f"{pipeline['dead_letters']['waiting']} dead letters wait"
    yield from orphans(config, pipeline, jobs, letters)


def refused_removal(
    name: str, found: Iterable[tuple[str, str]], jobs: Iterable[Job], discard: Collection[str]
) -> list[str]:
    """A line for each reason why a pipeline is not removed. Nothing of it is deleted, but nobody
    would look after it any more."""
    own = [job for job in jobs if job.wanted.pipeline == name and not job.state.is_final]
    lines = [
        f"pipeline {name} is removed, and the job {job.id} works on it: "
        f"`binlogd jobs cancel {job.id}`"
        for job in own
    ]
    if own or name in discard:
        return lines
    return [
        f"pipeline {name} is removed, and of {what}: {why}; --discard {name} leaves that as it is"
        for what, why in dict(found).items()
        if what not in discard
    ]


def refused(found: Iterable[tuple[str, str]], discard: Collection[str]) -> list[str]:
    """A line for each target that is not given up by name."""
    return [
        f"{target} has no route any more, and {why}; --discard {target} gives that up"
        for target, why in dict(found).items()
        if target not in discard
    ]
