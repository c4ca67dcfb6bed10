"""The dry run of a load: what would be loaded, what it takes, and why it can't be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from changes.model.model import TargetName
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.port import Look, Plan
from daemon.operations.engine.record import JobRequest
from daemon.operations.engine.source_targets import Compared, chosen, unmatched
from daemon.operations.load.columns import fitted
from daemon.operations.load.estimates import Estimate, Flow, flow_of, shown_bytes
from daemon.operations.load.log import PipelineLog
from daemon.operations.load.settings import settings_of
from daemon.operations.load.shown import Shown, shown_columns, unlike
from daemon.operations.load.source_tables import format_name
from daemon.operations.load.visible import log_end
from daemon.operations.reset.offset_reset import refuse_members
from daemon.state.edits import EditRefused
from databases.base.errors import DatabaseRefused
from databases.base.log_end import NoEnd
from databases.base.port import SourceTable
from databases.opening import Primary
from offsets.snapshot import Snapshot
from settings.counted import counted
from settings.shell import quoted
from sparkwriter.sinks import left_behind, unreplaceable

FIRST_SIGHT, RELOAD = "first sight", "reload"
"""The origins of automatic loads."""

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


def planned(look: Look, wanted: JobRequest) -> Plan:
    """Raises what ``Look`` and databases raise. ``wanted.targets`` are patterns."""
    pipeline = wanted.pipeline
    settings = PipelineConfig(look.config, pipeline)
    if not settings.section.named_databases():
        line = f'pipeline {pipeline}: set database = "NAME", of a [database.NAME] with its url'
        return Plan((wanted,), refusals=(line,))
    found = chosen(settings, wanted.targets)
    missing = unmatched(wanted.targets, found)
    snapshot = look.snapshot(pipeline)
    refusals = [
        f"{one}: no table of pipeline {pipeline} is called so"
        + f"{_RENAMED.format(quoted(one))}" * (one in snapshot.spills)
        for one in missing
    ]
    refusals += [f"{name}: {why}" for name, why in found.refused]
    if not found.tables and not refusals:
        refusals.append(f"no table of pipeline {pipeline} is chosen")
    refusals += list(_not_now(look, pipeline, snapshot))
    tables, unfit = _tables(look, pipeline, found.tables, snapshot)
    refusals += unfit
    estimate = _estimate(look, pipeline, tables, [] if refusals else found.tables)
    soft = [f"{one.target}: {_SOFT}" for one in found.tables if one.route.shape.delete == "soft"]
    refusals += soft if wanted.origin in (FIRST_SIGHT, RELOAD) else []
    left = () if refusals else left_behind(look.config, (one.target for one in found.tables))
    lines = [*_lines(tables), *(estimate.lines() if tables else ()), *soft, *left]
    groups = [tables[at : at + MOST_TARGETS] for at in range(0, len(tables), MOST_TARGETS)]
    jobs = tuple(_wanted(wanted, group) for group in groups) or (wanted,)
    patterns = [pattern for pattern in wanted.targets if pattern not in missing]
    document = {"pipeline": pipeline, "patterns": patterns, **_document(tables, estimate)}
    return Plan(jobs, tuple(lines), document, tuple(refusals))


def _tables(
    look: Look, pipeline: str, chosen_: Sequence[Compared], snapshot: Snapshot
) -> tuple[list[Loaded], list[str]]:
    """Those that can be loaded, and why the others can't."""
    tables: list[Loaded] = []
    sources: dict[TargetName, SourceTable] = {}
    settings = PipelineConfig(look.config, pipeline)
    unfit = unreplaceable(look.config, (one.target for one in chosen_))
    refusals = [f"{target}: {why}" for target, why in unfit.items()]
    for one in chosen_:
        if one.target not in unfit:
            try:
                sources[one.target] = _described(settings, one)
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


def _estimate(
    look: Look, pipeline: str, tables: list[Loaded], asked: Sequence[Compared]
) -> Estimate:
    """Of ``tables``. The log is read, and the databases of the tables in ``asked``."""
    rows, size = sum(each.rows for each in tables), sum(each.bytes for each in tables)
    flow, why = Flow(0.0, 0), ""
    if tables and asked:
        flow, why = flow_of(look, pipeline), _why_margin(look, pipeline, asked)
    return Estimate(look.config.load, rows, size, flow, why)


def _why_margin(look: Look, pipeline: str, tables: Sequence[Compared]) -> str:
    """Why the margin is waited for; empty where positions tell when the rows may be read."""
    of, log = PipelineConfig(look.config, pipeline), PipelineLog(look, pipeline)
    places = log.places(log.partitions())
    for name in sorted({one.database for one in tables}):
        database = of.open_database(name)
        primary = Primary(look.config, name, database)
        try:
            end = log_end(settings_of(of), places, log.position(), primary.log_end)
        finally:
            primary.close()
            database.close()
        if isinstance(end, NoEnd):
            return f"database.{name}: {end.why}"
    return ""


def _document(tables: list[Loaded], estimate: Estimate) -> dict[str, object]:
    return {
        "tables": [
            {"target": t.target, "table": t.table, "rows": t.rows, "bytes": t.bytes} for t in tables
        ],
        "messages_per_s": round(estimate.flow.messages_per_s, 1),
        "spill_bytes": estimate.spill_bytes,
        "seconds": round(estimate.seconds),
    }


def _wanted(wanted: JobRequest, group: list[Loaded]) -> JobRequest:
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
        refuse_members(look.source(pipeline), look.config.group(pipeline), 1)
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
    settings, target = PipelineConfig(look.config, pipeline), str(one.target)
    if (rebuild := snapshot.rebuilding.get(target)) is not None:
        what = "rebuilt" if rebuild.load is None else f"loaded by job {rebuild.load.job}"
        raise DatabaseRefused(f"it is being {what} already")
    router = settings.router()
    route = next(route for route in router.targets(one.table) if route.name == one.target)
    format_ = format_name(settings, snapshot.formats)
    # The present target's types are looked at when the job begins: here no sink is open.
    wanted = fitted(settings, source, route, format_, None)
    names = [column.column.name for column in wanted.columns]
    streamed = shown[target].within(route.shape)
    if why := list(unlike(names, None, streamed, route.reader_renames)):
        raise DatabaseRefused("; ".join(why))
    unseen = not shown[target].rows
    known = source.whole_images or unseen or shown[target].whole
    return Loaded(target, str(one.table), source.rows, source.bytes, unseen, known)


def _described(pipeline: PipelineConfig, one: Compared) -> SourceTable:
    database = pipeline.open_database(one.database)
    try:
        return database.describe(one.table)
    finally:
        database.close()


def _lines(tables: list[Loaded]) -> Iterator[str]:
    for each in tables:
        size = shown_bytes(each.bytes)
        yield f"{each.target}: from {each.table}, about {counted(each.rows, 'row')}, {size} there"
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
