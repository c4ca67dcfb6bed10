"""A load's attempts: what the pipeline records of them, the next one, and the end of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from daemon.operations.engine.port import JobAway
from daemon.operations.load.memory import Filled, Step, load_of, places, texts
from daemon.operations.rebuild.exchange import wait_before_next_s, waits_for_name
from offsets.position import TopicPartition
from offsets.rebuild_steps import behind, cancelled
from offsets.snapshot import Snapshot
from settings.counted import counted
from sources.base.port import NotAnswered

HOUR_MS = 3_600_000


def look(step: Step) -> None:
    """Take in what the pipeline has recorded of the loads meanwhile."""
    snapshot = step.snapshot()
    for target, filled in step.memory.at("filling", "filled", "following").items():
        load = load_of(snapshot, target, filled, step.job.id)
        why = None if load is None else snapshot.rebuilds[target].refused
        if why is not None and why.for_good:
            filled.stage, filled.why = "failing", why.reason
        elif load is None and _has_name(step, snapshot, target):
            filled.stage = "done"
        elif load is None:
            filled.stage, filled.why = "failing", "it was cancelled by hand"
        elif load.broken is not None and not load.broken.behind:
            filled.stage, filled.why = "failing", load.broken.reason
        elif load.broken is not None:
            again(step, filled, load.broken.reason)
            filled.behind = texts(load.broken.behind)
        elif filled.stage == "filled" and not load.filling:
            _follow(step, filled)
    for target, filled in step.memory.at("again").items():
        load = load_of(snapshot, target, filled, step.job.id)
        if load is None:
            filled.stage, filled.why = "failing", "it was cancelled by hand"
        elif load.broken is not None:
            filled.behind = texts(load.broken.behind)
    if (ending := step.memory.ending) is not None:
        # The next attempt reads later than the requested moment.
        filled_now = step.memory.at("filled")
        ending.targets = [name for name in ending.targets if name in filled_now]


def exchange(step: Step) -> tuple[str, float] | None:
    """What becomes of the tables that could not take their names so far; None: there is none.

    The pipeline tries whenever it starts, so that one edit, which changes nothing, is an attempt.
    """
    rebuilds = step.snapshot().rebuilds
    following = step.memory.at("following").keys() & rebuilds.keys()
    held = {name: rebuilds[name].refused for name in following}
    open_ = {name: why for name, why in held.items() if why is not None and not why.for_good}
    if not open_:
        return None
    name, why = min(open_.items(), key=lambda each: each[1].attempts)
    filled = step.memory.targets[name]
    if filled.waited != why.attempts:
        filled.waited = why.attempts
        return f"{name}: {waits_for_name(why)}", wait_before_next_s(why)
    step.control.edit(step.pipeline, lambda snapshot: snapshot)
    filled.waited = 0
    return f"{name}: its name was tried again", 0.0


def _has_name(step: Step, snapshot: Snapshot, target: str) -> bool:
    """Whether the new table has taken it, where nothing is recorded of its load any more."""
    filled, rebuild = step.memory.targets[target], snapshot.rebuilds.get(target)
    if step.memory.given_up or (rebuild is not None and rebuild.into == filled.into):
        return False  # that is cancelled
    return filled.stage == "following" or _recorded(step, target)


def _recorded(step: Step, target: str) -> bool:
    """Whether its end may be recorded already, by a step whose own end was not remembered."""
    ending = step.memory.ending
    return ending is not None and ending.ready and target in ending.targets


def _follow(step: Step, filled: Filled) -> None:
    """Its end is recorded, by a step whose own end was not remembered.

    From here on the table may take its name at any time, whatever becomes of the others' end.
    """
    filled.stage = "following"
    if (ending := step.memory.ending) is not None:
        filled.by_time = ending.by_time


def again(step: Step, filled: Filled, why: str, wait_s: float = 0.0) -> None:
    """This attempt is over. One that has read nothing yet costs nothing, and does not count."""
    if filled.next:
        filled.reads.append(step.now_ms)
    filled.stage, filled.why = "again", why
    filled.not_before_ms = step.now_ms + int(wait_s * 1000)


def renew(step: Step) -> bool:
    """Have those begin again whose time has come; whether there is any.

    What ended the attempt must be done in all targets, or it would come once more.
    """
    frontiers = {s: state.frontier for s, state in step.snapshot().partitions.items()}
    found = False
    for filled in step.memory.at("again").values():
        filled.reads = [at for at in filled.reads if at > step.now_ms - HOUR_MS]
        if len(filled.reads) >= step.settings.attempts_per_hour:
            filled.stage = "failing"
            filled.why = f"{counted(len(filled.reads), 'attempt')} in an hour: {filled.why}"
            found = True
            continue
        behind = places(filled.behind).items()
        passed = all(frontiers.get(source, 0) > last for source, last in behind)
        if passed and step.now_ms >= filled.not_before_ms:
            filled.stage, filled.behind, filled.not_before_ms = "new", {}, 0
            found = True
    return found


def give_up(step: Step) -> tuple[str, float]:
    """Record that they are given up: the old tables get what came meanwhile."""
    failing = step.memory.at("failing")
    undo(step, set(failing))
    for filled in failing.values():
        filled.stage = "failed"
    return "given up: " + ", ".join(sorted(failing)), 0.0


def undo(step: Step, targets: set[str]) -> list[str]:
    """Give up what is recorded of these targets as this job's. Names them."""

    def mine(snapshot: Snapshot) -> list[str]:
        return [
            target
            for target in sorted(targets & snapshot.rebuilds.keys())
            for rebuild in (snapshot.rebuilds[target],)
            if rebuild.load is not None and rebuild.load.job == step.job.id
            if not rebuild.cancelled
        ]

    def change(snapshot: Snapshot) -> Snapshot:
        for target in mine(snapshot):
            snapshot = cancelled(snapshot, target, low)
        return snapshot

    now = step.snapshot()
    found = mine(now)
    low = _begins(step, {source for name in found for source in behind(now.rebuilds[name])})
    if found:
        step.control.edit(step.pipeline, change)
    return found


def _begins(step: Step, sources: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Where the log begins; of a topic that is not there any more nothing is said."""
    try:
        return step.log.begins(sorted(sources))
    except NotAnswered as error:
        if error.away:
            raise JobAway(str(error)) from error
        return {}
