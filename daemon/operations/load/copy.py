"""A load's rows: ranges of keys are read side by side and written one after another.

Every range is settled and remembered before it is read. So a write that is repeated after a crash
is of the same rows' keys, and one that is there already is covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from actors.contract.writes import StagedBatch
from changes.model.errors import TargetRefused
from changes.model.model import Mode
from daemon.operations.load import visible
from daemon.operations.load.attempts import again
from daemon.operations.load.memory import Filled, Step, StoredRange, load_of
from daemon.operations.load.ports import Chunk, Described
from databases.base.errors import DatabaseRefused
from offsets.fence import Fenced, Span
from offsets.position import NO_OFFSET, TopicPartition, job_lane
from settings.counted import counted


def fill(step: Step) -> tuple[str, float]:
    """The next step of the first table that is being filled: what comes next, after how long."""
    target, filled = next(iter(step.memory.at("filling").items()))
    try:
        return _fill(step, target, filled)
    except (DatabaseRefused, TargetRefused, Fenced) as error:
        filled.stage, filled.why = "failing", str(error)
        return f"{target}: {error}", 0.0


def _fill(step: Step, target: str, filled: Filled) -> tuple[str, float]:
    described = step.tables.describe(filled.source, target)
    if described.definition != filled.definition:
        return _changed(step, filled)
    if filled.parts is None:
        ranges = step.tables.ranges(filled.source, step.settings.chunk_rows)
        filled.parts = [StoredRange(each.low, each.high) for each in ranges]
        return f"{target}: {counted(len(filled.parts), 'range')}", 0.0
    if filled.next == len(filled.parts):
        _write(step, target, _end(step, target, filled, described))
        filled.stage = "filled"
        return f"{target}: {counted(filled.rows, 'row is', 'rows are')} read", 0.0
    if (waits := visible.wait(step, target, filled)) is not None:
        return waits
    return _group(step, target, filled, described)


def _group(step: Step, target: str, filled: Filled, described: Described) -> tuple[str, float]:
    assert filled.parts is not None
    many, bound = step.settings.parallel, step.settings.rows_per_s
    ranges = [part.range for part in filled.parts[filled.next : filled.next + 2 * many]]
    begun_ms = step.now_ms
    # While these are written the next ones are read, unless the time of that is measured.
    then = ranges[many:] if bound is None else []
    chunks = step.tables.read(filled.source, target, ranges[:many], filled.into, then)
    try:
        # A definition that was another one for a while is fine: its statement is in the log.
        after = step.tables.describe(filled.source, target)
        if after.definition != filled.definition:
            return _changed(step, filled)
        _publish(step, target, filled, described, chunks)
    finally:
        step.tables.remove(chunks)
    took_s, rows = (step.now_ms - begun_ms) / 1000, sum(chunk.rows for chunk in chunks)
    wait_s = 0.0 if bound is None else max(0.0, rows / bound - took_s)
    return f"{target}: range {filled.next} of {len(filled.parts)}", wait_s


def _publish(
    step: Step, target: str, filled: Filled, described: Described, chunks: Sequence[Chunk]
) -> None:
    for chunk in chunks:
        number = filled.next
        lanes = {job_lane(step.job.id): Span(number - 1, number)}
        batch = _batch(step, filled, described, lanes)
        rows = chunk.rows
        batch = replace(batch, path=chunk.path, rows=rows, changes=rows, bounds=chunk.bounds)
        _write(step, target, batch)
        filled.next, filled.rows = number + 1, filled.rows + rows
        if step.control.asked in ("cancel", "stop"):
            return


def _changed(step: Step, filled: Filled) -> tuple[str, float]:
    """A statement that the log does not tell of, or not yet: it begins again when it surely has.
    Or the configuration has another route or database."""
    why = f"{filled.source} was altered, or its route or database, while it was being loaded"
    again(step, filled, why, step.settings.margin_s)
    return why, 0.0


def _end(step: Step, target: str, filled: Filled, described: Described) -> StagedBatch:
    """The last write: the stream goes on from where its messages are kept."""
    assert filled.parts is not None
    snapshot = step.snapshot()
    load = load_of(snapshot, target, filled, step.job.id)
    assert load is not None
    count = len(filled.parts)
    lanes = {job_lane(step.job.id): Span(count - 1, count)}
    known = snapshot.rebuilds[target].until
    # Whatever is below was there when the rows were read. A lane without any mark had nothing yet.
    lanes |= {s: Span(NO_OFFSET, at - 1) for s, at in load.since.items() if s in known and at}
    return replace(_batch(step, filled, described, lanes), ends_lane=True)


def _batch(
    step: Step, filled: Filled, described: Described, lanes: dict[TopicPartition, Span]
) -> StagedBatch:
    return StagedBatch(
        batch_id=f"{step.job.id}-{filled.number}-{filled.next}",
        target=filled.name,
        mode=Mode.UPSERT,
        schema=described.schema,
        lanes=lanes,
        options=described.options,
        table=described.owner,
        shape=described.shape,
    )


def _write(step: Step, target: str, batch: StagedBatch) -> None:
    sink = step.control.sinks().get(batch.target.sink)
    if sink is None:
        raise TargetRefused(f"{target}: the configuration has no sink {batch.target.sink}")
    sink.write(batch)
