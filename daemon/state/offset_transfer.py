"""``binlogd offsets export`` and ``import``: the recorded positions as a file to edit.

An import is checked as the next start would check it: what the start would refuse, or overrule with
the broker's commit, is refused here, before anything is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from changes.formats import AUTO, TopicFormats
from changes.formats.engine.format import Format
from changes.model.registry import Registry
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.edits import EditRefused
from daemon.state.offset_file import OffsetFile, StateDirBusy, lock_state_dir
from daemon.state.offset_stores import make_stores
from daemon.state.recorded import export_snapshot
from offsets.position import TopicPartition
from offsets.recovery import (
    PositionError,
    StartAt,
    Watermarks,
    check_mark,
    check_topic_ids,
    start_position,
)
from offsets.snapshot import Snapshot
from offsets.snapshot_text import DamagedSnapshot, decode
from offsets.store import StoreError
from sources.base.port import (
    NotAnswered,
    Source,
    TopicMissing,
    committed,
)


def import_snapshot(
    pipelines: Mapping[str, PipelineConfig], text: str, act: bool = True
) -> Iterator[str]:
    """Record an exported file's text, or (not ``act``) only check it. Yields lines about it.

    The checksum may be wrong, as after an edit: it is computed again. A file store is replaced and
    its previous file kept. In a topic only the entries in the text are replaced. Raises
    EditRefused before anything is written, StoreError when writing failed.
    """
    try:
        snapshot = decode(text, edited=True)
    except DamagedSnapshot as error:
        raise EditRefused(str(error)) from error
    pipeline = _owner(pipelines, snapshot)
    try:
        claim = lock_state_dir(pipeline.state_dir)
    except StateDirBusy as error:
        raise EditRefused(f"{error}; an import is for a stopped daemon") from error
    except OSError as error:
        folder = pipeline.state_dir
        raise EditRefused(f"daemon.state_dir {folder} can't be used: {error}") from error
    with claim:
        yield from _check_broker(pipeline.source(), snapshot)
        before = export_snapshot(pipeline).snapshot
        if act:
            yield from _store(pipeline, snapshot)
        for source, state in sorted(snapshot.partitions.items()):
            was = before.partitions.get(source) if before else None
            old = "nothing" if was is None else str(was.frontier)
            yield f"{source}: {old} -> {state.frontier}"
        yield f"pipeline {pipeline.name}: {'' if act else 'would be '}imported"


def _owner(pipelines: Mapping[str, PipelineConfig], snapshot: Snapshot) -> PipelineConfig:
    """The pipeline that it can be imported to. Raises EditRefused."""
    name = snapshot.pipeline
    pipeline = pipelines.get(name)
    if pipeline is None:
        known = ", ".join(sorted(pipelines))
        raise EditRefused(f"it is of pipeline {name!r}; the configuration has: {known}")
    if snapshot.group != pipeline.group:
        raise EditRefused(
            f"it is of group {snapshot.group!r}; pipeline {name} is group {pipeline.group!r}"
        )
    if not pipeline.section.remembers:
        raise EditRefused(
            f"pipeline {name} has no store that keeps a snapshot (file, kafka-topic); "
            "it has the group's commit alone, which Kafka's own tools move"
        )
    return pipeline


def _check_broker(source: Source, snapshot: Snapshot) -> Iterator[str]:
    try:
        ids = source.topic_ids()
    except NotAnswered as error:
        if not error.away:
            raise EditRefused(f"the topics can't be queried: {error}") from error
        yield f"warning: not compared with the topics: {error}"
        return
    except TopicMissing as error:
        raise EditRefused(str(error)) from error
    try:
        check_topic_ids(snapshot, ids)
        _check_positions(snapshot, source, ids)
    except (PositionError, StoreError) as error:
        raise EditRefused(str(error)) from error
    except NotAnswered as error:
        raise EditRefused(f"the logs can't be queried: {error}") from error


def _check_positions(snapshot: Snapshot, opened: Source, topics: Collection[str]) -> None:
    questions = opened.questions()
    there = set(questions.partitions(topics))
    # A topic that is no longer read stays in the file: nothing is read from it, nothing checked.
    for source in snapshot.partitions:
        if source.topic in topics and source not in there:
            raise PositionError(f"{source}: the topic has no such partition")
    logs = questions.watermarks(sorted(there))
    commits = committed(opened)
    for source in sorted(there & snapshot.partitions.keys()):
        _check_start(source, snapshot, commits.get(source), logs[source])
    for target, mark in snapshot.targets.items():
        for source, hwm in mark.hwms.items():
            if source in logs:
                check_mark(source, target, hwm, logs[source])


def _check_start(
    source: TopicPartition, snapshot: Snapshot, committed: int | None, log: Watermarks
) -> None:
    state = snapshot.partitions[source]
    start = start_position(
        source,
        recorded=state,
        committed=committed,
        log=log,
        configured=StartAt.EARLIEST,
        configured_offset=None,
    )
    if start.offset != state.frontier:
        raise PositionError(
            f"{source}: {start.remark}: a start would read from {start.offset}. "
            "`binlogd offsets reset` moves the group as well"
        )


def _store(pipeline: PipelineConfig, snapshot: Snapshot) -> Iterator[str]:
    stores = pipeline.section.offset_stores
    if "file" in stores:
        file = OffsetFile(pipeline.state_dir, pipeline.name)
        try:
            file.save(snapshot)
        except OSError as error:
            raise StoreError(f"file: {file.path}: {error}") from error
        if file.previous.exists():
            yield f"the file before is kept as {file.previous}"
    if "kafka-topic" in stores:
        chain = make_stores(pipeline)
        chain.start()
        try:
            chain.set(snapshot).result()
        finally:
            chain.stop()


# Turns a log's record into what its format gets, as the consumer does.


def format_of(pipeline: PipelineConfig, registry: Registry | None = None) -> Format:
    """A pipeline's format for a command. Under ``auto`` it uses the recorded formats of its topics.

    ``registry``: in place of the pipeline's, with the schemas that the command has. Raises
    StoreError if they can't be read.
    """
    topics = None
    if pipeline.section.format == AUTO:
        recorded = export_snapshot(pipeline).snapshot
        topics = TopicFormats({} if recorded is None else recorded.formats)
    return pipeline.format(topics, registry)
