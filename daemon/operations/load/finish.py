"""A load's end: where the log is past all that the reads may have seen.

Until the stream has passed it, a part of the table may be younger than the rest.
"""

from __future__ import annotations

from daemon.operations.load.memory import Ending, Step, load_of, places, texts
from daemon.operations.load.visible import log_end
from offsets.position import TopicPartition
from offsets.rebuild_steps import loaded
from offsets.snapshot import Snapshot

LOOK_S = 1.0
"""Between two looks at the log's end."""


def end(step: Step) -> tuple[str, float]:
    """The next step of the tables whose rows are all there: what comes next, after how long."""
    filled, ending = step.memory.at("filled"), step.memory.ending
    if ending is None or not set(filled) <= set(ending.targets):
        # The moment counts for reads before it: those that were filled later want a later one.
        step.memory.ending = _begun(step, sorted(filled))
        return "the end of what the reads saw is looked for in the log", 0.0
    if ending.ready:
        _record(step, ending)
        return "the stream is applied over the rows", 0.0
    _look(step, ending)
    missing = sorted(ending.scanned.keys() - ending.ends.keys())
    if missing:
        return _waits(ending, missing), LOOK_S
    # Remembered before it is recorded: a table may take its name at once.
    ending.ready = True
    return "the end of what the reads saw is in the log", 0.0


def _begun(step: Step, targets: list[str]) -> Ending:
    sources = sorted(_sources(step.snapshot(), step, targets))
    # Whatever lies beyond these ends is looked at; what lies before them is not needed.
    scanned = step.log.ends(sources)
    filled = step.memory.at("filled")
    names = [filled[name].source for name in targets]
    moment = step.tables.moment(names)
    there, read = step.log.places(sources), step.log.position()
    log = log_end(step.settings, there, read, lambda: step.tables.log_end(names))
    return Ending(targets, moment.unix_us // 1000 + 1, step.now_ms, texts(scanned), log=log)


def _sources(snapshot: Snapshot, step: Step, targets: list[str]) -> set[TopicPartition]:
    """The partitions that may hold any of them."""
    found: set[TopicPartition] = set()
    for target, filled in step.memory.at("filled").items():
        load = load_of(snapshot, target, filled, step.job.id)
        if target in targets and load is not None:
            found |= load.since.keys()
    return found


def _look(step: Step, ending: Ending) -> None:
    settings = step.settings
    open_ = {s: at for s, at in places(ending.scanned).items() if str(s) not in ending.ends}
    after_ms = ending.moment_ms + int(settings.skew_s * 1000)
    ends, scanned = step.log.passed(open_, after_ms, ending.log)
    ending.ends |= texts(ends)
    ending.scanned |= texts(scanned)
    if ending.ends and ending.proved_ms is None:
        ending.proved_ms = step.now_ms
    # The producer has passed the moment: what it still had of a quiet partition has come by then.
    since_ms, patience_s = ending.proved_ms, settings.settle_s
    if since_ms is None and settings.idle_s is not None:
        since_ms, patience_s = ending.since_ms, settings.idle_s
    if since_ms is not None and step.now_ms >= since_ms + patience_s * 1000:
        left = {name: at for name, at in ending.scanned.items() if name not in ending.ends}
        ending.ends |= left
        ending.by_time += sorted(left)


def _waits(ending: Ending, missing: list[str]) -> str:
    said = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if missing[5:] else "")
    if ending.proved_ms is not None:
        return f"waits for what is left of {said}"
    return (
        f"waits for any change in {said} that happened after the rows were read: a quiet source "
        "needs one, of any table there (load.idle_s takes the end by time)"
    )


def _record(step: Step, ending: Ending) -> None:
    filled = step.memory.at("filled")
    ends = places(ending.ends)

    def change(snapshot: Snapshot) -> Snapshot:
        for target, each in filled.items():
            load = load_of(snapshot, target, each, step.job.id)
            if load is not None and load.filling and load.broken is None:
                mine = {source: ends[source] for source in load.since}
                snapshot = loaded(snapshot, target, mine)
        return snapshot

    snapshot = step.snapshot()
    if change(snapshot) != snapshot:
        step.control.edit(step.pipeline, change)
    for each in filled.values():
        each.stage, each.by_time = "following", ending.by_time
    step.memory.ending = None
