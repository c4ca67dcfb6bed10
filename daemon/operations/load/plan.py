"""The dry run of a load: what would be loaded, what it takes, and why it can't be done."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from changes.model.model import TargetName
from changes.routes.routing import Router
from daemon.config.config import Config
from daemon.operations.engine.port import Look, Plan
from daemon.operations.engine.record import Wanted
from daemon.operations.engine.source_targets import Compared, chosen, unmatched
from daemon.operations.load.columns import fitted
from daemon.operations.load.shown import Shown, shown_columns, unlike
from daemon.operations.load.source_tables import format_name
from daemon.operations.reset.offset_reset import instance_ids, refuse_members
from daemon.state.edits import EditRefused
from databases.base.errors import DatabaseRefused
from databases.base.port import SourceTable
from databases.opening import open_database
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from sources.base.port import LogGone, LogUnreadable
from sparkwriter.sinks import left_behind, unreplaceable

# Estimates for the plan of a load: how much the log brings, how long the rows take.

SECOND_ROWS = 20_000
"""Rows a second by two connections: what ``make demo-load`` has on two cores, which database,
broker and changes share (docs/load.md). A larger machine is quicker than the estimate."""

OF_THE_LAST_S = 600
"""The stretch of the log whose messages are counted."""

SAMPLE = 200
"""Messages whose sizes are looked at, at the end of one partition."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What the log brings: of all tables."""

    messages_per_s: float
    bytes_each: int


def flow_of(look: Look, pipeline: str) -> Flow:
    """By the last minutes of the log. Raises NotAnswered."""
    source = look.source(pipeline)
    questions = source.questions()
    partitions = questions.partitions(sorted(source.topic_ids()))
    marks = questions.watermarks(partitions)
    then = questions.at_time(partitions, (time.time_ns() // 1_000_000) - OF_THE_LAST_S * 1000)
    came = {p: marks[p].high - then.get(p, marks[p].high) for p in partitions}
    busiest = max(came, key=lambda p: came[p], default=None)
    if busiest is None or not came[busiest]:
        return Flow(0.0, 0)
    sizes = list(_sizes(look, pipeline, busiest, marks[busiest].high))
    each = sum(sizes) // len(sizes) if sizes else 0
    return Flow(sum(came.values()) / OF_THE_LAST_S, each)


def _sizes(look: Look, pipeline: str, partition: TopicPartition, end: int) -> Iterable[int]:
    reader = look.source(pipeline).reader()
    try:
        for record in reader.read(partition, max(0, end - SAMPLE), end - 1):
            yield len(record.value or b"")
    except (LogGone, LogUnreadable):
        return


def shown_bytes(count: float) -> str:
    """``1.5 GB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def shown_time(seconds: float) -> str:
    """``2 h 5 min``."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


FIRST_SIGHT, RELOAD = "first sight", "reload"
"""The origins of loads that nobody asked for."""

MOST_TARGETS = 100
"""Of one job: all of its tables stand in spills until the last one is read."""


_RENAMED = (
    "; what is kept for it may hold a renaming or a DROP: load the table that has its rows now,"
    " then `binlogd tables retry {}`"
)
_SOFT = 'delete = "soft": rows that the source has deleted by now are gone after a load'


@dataclass(frozen=True, slots=True)
class Loaded:
    """One table of a plan, by the database's estimates. ``unseen``: the log's last messages have no
    row of it. ``known``: otherwise they have all of its columns."""

    target: str
    table: str
    rows: int
    bytes: int
    unseen: bool = False
    known: bool = True


def planned(look: Look, wanted: Wanted) -> Plan:
    """Raises what ``Look`` and databases raise. ``wanted.targets`` are patterns."""
    config, pipeline = look.config, wanted.pipeline
    if not config.pipeline[pipeline].named_databases():
        line = f'pipeline {pipeline}: set database = "NAME", of a [database.NAME] with its url'
        return Plan((wanted,), refusals=(line,))
    found = chosen(config, pipeline, wanted.targets)
    missing = unmatched(wanted.targets, found)
    snapshot = look.snapshot(pipeline)
    refusals = [
        f"{one}: no table of pipeline {pipeline} is called so"
        + f"{_RENAMED.format(one)}" * (one in snapshot.spills)
        for one in missing
    ]
    refusals += [f"{name}: {why}" for name, why in found.refused]
    if not found.tables and not refusals:
        refusals.append(f"no table of pipeline {pipeline} is chosen")
    refusals += list(_not_now(look, pipeline, snapshot))
    tables, unfit = _tables(look, pipeline, found.tables, snapshot)
    refusals += unfit
    flow = flow_of(look, pipeline) if tables and not refusals else Flow(0.0, 0)
    soft = [f"{one.target}: {_SOFT}" for one in found.tables if one.route.shape.delete == "soft"]
    refusals += soft if wanted.origin in (FIRST_SIGHT, RELOAD) else []
    left = () if refusals else left_behind(config, (one.target for one in found.tables))
    lines = [*_lines(tables), *_total(look, tables, flow), *soft, *left]
    groups = [tables[at : at + MOST_TARGETS] for at in range(0, len(tables), MOST_TARGETS)]
    jobs = tuple(_wanted(wanted, group) for group in groups) or (wanted,)
    patterns = [pattern for pattern in wanted.targets if pattern not in missing]
    document = {"pipeline": pipeline, "patterns": patterns, **_document(look, tables, flow)}
    return Plan(jobs, tuple(lines), document, tuple(refusals))


def _tables(
    look: Look, pipeline: str, chosen_: Sequence[Compared], snapshot: Snapshot
) -> tuple[list[Loaded], list[str]]:
    """Those that can be loaded, and why the others can't."""
    tables: list[Loaded] = []
    sources: dict[TargetName, SourceTable] = {}
    unfit = unreplaceable(look.config, (one.target for one in chosen_))
    refusals = [f"{target}: {why}" for target, why in unfit.items()]
    for one in chosen_:
        if one.target not in unfit:
            try:
                sources[one.target] = _described(look.config, one)
            except DatabaseRefused as error:
                refusals.append(f"{one.target}: {error}")
    parts = [str(target) for target, source in sources.items() if not source.whole_images]
    shown = shown_columns(look, pipeline, [str(target) for target in sources], parts)
    for one in chosen_:
        if one.target in sources:
            try:
                tables.append(_loaded(look, pipeline, one, snapshot, shown, sources[one.target]))
            except DatabaseRefused as error:
                refusals.append(f"{one.target}: {error}")
    return tables, refusals


def _document(look: Look, tables: list[Loaded], flow: Flow) -> dict[str, object]:
    return {
        "tables": [
            {"target": t.target, "table": t.table, "rows": t.rows, "bytes": t.bytes} for t in tables
        ],
        "messages_per_s": round(flow.messages_per_s, 1),
        "spill_bytes": _spill(look, tables, flow),
        "seconds": round(_seconds(look, tables)),
    }


def _wanted(wanted: Wanted, group: list[Loaded]) -> Wanted:
    params = {
        **wanted.params,
        "tables": [each.table for each in group],
        "rows": {each.target: each.rows for each in group},
    }
    return replace(wanted, targets=tuple(each.target for each in group), params=params)


def _not_now(look: Look, pipeline: str, snapshot: Snapshot) -> Iterator[str]:
    """What is in the way of any load of the pipeline."""
    if not look.config.pipeline[pipeline].remembers:
        yield f"pipeline {pipeline} has no store that keeps a snapshot (file, kafka-topic)"
    try:
        refuse_members(look.config, pipeline, instance_ids(look.config, pipeline), 1)
    except EditRefused as error:
        yield f"a table is loaded by a daemon that has all partitions: {error}"


def _loaded(
    look: Look,
    pipeline: str,
    one: Compared,
    snapshot: Snapshot,
    shown: Mapping[str, Shown],
    source: SourceTable,
) -> Loaded:
    config, target = look.config, str(one.target)
    if (rebuild := snapshot.rebuilding.get(target)) is not None:
        what = "rebuilt" if rebuild.load is None else f"loaded by job {rebuild.load.job}"
        raise DatabaseRefused(f"it is being {what} already")
    router = Router(config.routes(pipeline))
    route = next(route for route in router.targets(one.table) if route.name == one.target)
    format_ = format_name(config, pipeline, snapshot.formats)
    # The present target's types are looked at when the job begins: here no sink is open.
    wanted = fitted(config, pipeline, source, route, format_, None)
    names = [column.column.name for column in wanted.columns]
    streamed = shown[target].within(route.shape)
    if why := list(unlike(names, None, streamed, route.reader_renames)):
        raise DatabaseRefused("; ".join(why))
    unseen = not shown[target].rows
    known = source.whole_images or unseen or shown[target].whole
    return Loaded(target, str(one.table), source.rows, source.bytes, unseen, known)


def _described(config: Config, one: Compared) -> SourceTable:
    database = open_database(config, one.database)
    try:
        return database.describe(one.table)
    finally:
        database.close()


def _lines(tables: list[Loaded]) -> Iterator[str]:
    for each in tables:
        size = shown_bytes(each.bytes)
        yield f"{each.target}: from {each.table}, about {each.rows:,} rows, {size} there"
        if each.unseen:
            yield (
                f"{each.target}: the log's last messages have no row of it: if its reader leaves "
                "columns out, or calls them otherwise, only the target can tell"
            )
        if not each.known:
            yield (
                f"{each.target}: binlog_row_image is not FULL: whether the log's reader leaves "
                "columns out is not known from its last messages"
            )


def _seconds(look: Look, tables: list[Loaded]) -> float:
    rows, rate = sum(each.rows for each in tables), look.config.load.rows_per_s
    return look.config.load.margin_s + rows / min(rate or SECOND_ROWS, SECOND_ROWS)


def _spill(look: Look, tables: list[Loaded], flow: Flow) -> int:
    return round(_seconds(look, tables) * flow.messages_per_s * flow.bytes_each)


def _total(look: Look, tables: list[Loaded], flow: Flow) -> Iterator[str]:
    if not tables:
        return
    section, seconds = look.config.load, _seconds(look, tables)
    rows, size = sum(each.rows for each in tables), sum(each.bytes for each in tables)
    yield (
        f"{rows:,} rows take about {shown_time(seconds)} ({section.margin_s:g} s until all that is "
        f"in the log is visible, then {min(section.rows_per_s or SECOND_ROWS, SECOND_ROWS):,} "
        "rows/s)"
    )
    yield (
        f"old and new tables are there until the end: up to {shown_bytes(size)} more in the sink"
    )
    spill = _spill(look, tables, flow)
    yield (
        f"the log brings {flow.messages_per_s:,.0f} messages/s of {flow.bytes_each:,} bytes: at "
        f"most {shown_bytes(spill)} are kept in state_dir meanwhile (load.spill_bytes: "
        f"{shown_bytes(section.spill_bytes)} a table)"
    )
    if spill > section.spill_bytes:
        yield "that may be too much for one table: raise load.spill_bytes, or load when it is quiet"
