"""A load's beginning: the table gets a name, and the stream's messages are kept from now on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from changes.model.model import TargetName
from daemon.operations.load.memory import Step, load_of
from daemon.operations.rebuild.plan import new_table
from daemon.state.edits import EditRefused
from databases.base.errors import DatabaseRefused
from offsets.position import TopicPartition
from offsets.rebuild import Load
from offsets.rebuild_steps import begun_load, lanes_of
from offsets.snapshot import Snapshot

LOOK_S = 2.0
"""Between two looks at what the pipeline has recorded."""


def name(step: Step) -> tuple[str, float]:
    """Look at the tables, and give those that are filled names that no table had before."""
    first = {t: f.source for t, f in step.memory.at("new").items() if f.number == 0}
    unlike = step.tables.unlike(first) if first else {}
    for target, filled in step.memory.at("new").items():
        if target in unlike:
            filled.stage, filled.why = "failing", unlike[target]
            continue
        attempt = f"{step.job.id.rpartition('-')[2]}{filled.number}"
        try:
            found = step.tables.describe(filled.source, target)
        except DatabaseRefused as error:
            filled.stage, filled.why = "failing", str(error)
            continue
        filled.into = str(new_table(TargetName.parse(target), attempt))
        filled.number += 1
        filled.definition, filled.expected = found.definition, found.rows
        filled.parts, filled.next, filled.rows = None, 0, 0
        filled.log = filled.past = None
        filled.stage = "named"
    return "begins", 0.0


def begin(step: Step) -> tuple[str, float]:
    """Record the loads: the pipeline stops for it, once for all of them."""
    named, job = step.memory.at("named"), step.job.id
    everywhere = step.log.partitions()
    if unread := _unread(step.snapshot(), everywhere):
        return f"waits until {', '.join(unread)} was read for the first time", LOOK_S

    def change(snapshot: Snapshot) -> Snapshot:
        for target, filled in named.items():
            if load_of(snapshot, target, filled, job) is not None:
                continue
            if (why := _in_the_way(snapshot, target, job)) is not None:
                filled.stage, filled.why = "failing", why
                continue
            lanes = lanes_of(snapshot, target) or dict.fromkeys(everywhere, 0)
            load = Load(job, _since(snapshot, target, lanes))
            snapshot = begun_load(snapshot, target, filled.into, load)
        return snapshot

    if not all(load_of(step.snapshot(), t, f, job) is not None for t, f in named.items()):
        step.control.edit(step.pipeline, change)
    for filled in step.memory.at("named").values():
        filled.stage, filled.begun_ms = "filling", step.now_ms
    return "their messages are kept", 0.0


def _in_the_way(snapshot: Snapshot, target: str, job: str) -> str | None:
    rebuild = snapshot.rebuilding.get(target)
    if rebuild is None or (rebuild.load is not None and rebuild.load.job == job):
        return None
    if rebuild.load is not None:
        return f"it is being loaded by job {rebuild.load.job} already"
    return "it is being rebuilt: wait until it is, or give that up"


def _since(
    snapshot: Snapshot, target: str, lanes: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """From where the stream is applied: the frontiers, below which all is in the log since before
    now, and so visible to reads that begin a margin later."""
    if unread := _unread(snapshot, lanes):
        raise EditRefused(f"{target}: {', '.join(unread)} was not read yet")
    return {source: snapshot.partitions[source].frontier for source in lanes}


def _unread(snapshot: Snapshot, lanes: Iterable[TopicPartition]) -> list[str]:
    """The partitions of which the pipeline does not know yet where it stands."""
    return sorted(str(source) for source in lanes if source not in snapshot.partitions)
