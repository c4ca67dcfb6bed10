"""Opens one pipeline's log for counting: its topics, their formats, the routes to what is asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

from changes.formats.detector import detector
from changes.formats.engine.format import Format
from changes.model.model import TableName, TargetName
from daemon.cli.counts.against import Against
from daemon.cli.counts.counts_query import counts_of_query
from daemon.cli.counts.counts_topic import counts_of_topic
from daemon.cli.counts.expected import ExpectedCounts
from daemon.cli.counts.held_side import HeldSide
from daemon.cli.counts.passed import with_said
from daemon.cli.counts.scan import Scan, Scanned
from daemon.cli.topics.reading import format_of_records
from daemon.cli.topics.stretch import Where, look_up
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.command_schemas import CommandSchemas, command_schemas
from daemon.state.counts_table import CountsTable
from daemon.state.dead_letters.index import Unreadable, read_index
from daemon.state.dead_letters.standing import Standings
from daemon.state.offset_transfer import format_of
from daemon.state.recorded import recorded_snapshot
from databases.base.errors import DatabaseAway, DatabaseError
from offsets.position import TopicPartition
from offsets.recovery import check_topic_ids
from offsets.snapshot import Snapshot
from sources.base.port import Questions
from sparkwriter.kit.queries import NoAnswer

NEWEST = 20
"""Records that are looked at to detect a topic's format."""


class CountsRefused(Exception):
    """The log can't be counted: one line."""


def scanned(
    settings: Config, pipeline: PipelineConfig, asked: Collection[str] | None, minutes: range
) -> tuple[Scanned, Snapshot]:
    """What the log has of these targets (None: of all), and what is recorded of the pipeline.

    Raises CountsRefused, TooWide, TooMany, RangeGone, RouteConflict, PositionError, NotAnswered,
    TopicMissing, LogUnreadable, LogGone, DatabaseAway, StoreError, OSError.
    """
    recorded = recorded_snapshot(pipeline).snapshot or Snapshot(pipeline.name, pipeline.group)
    source = pipeline.source()
    topics = source.topic_ids()
    check_topic_ids(recorded, topics)
    questions = source.questions()
    _check_kept(questions, topics)
    sources = sorted(questions.partitions(sorted(topics)))
    _check_ends(questions, sources, recorded)
    router, wanted = pipeline.router(), None if asked is None else frozenset(asked)

    @cache
    def targets(table: TableName) -> tuple[str, ...]:
        names = (str(route.name) for route in router.targets(table))
        return tuple(name for name in names if wanted is None or name in wanted)

    with command_schemas(pipeline.registry) as schemas:
        formats = _formats(pipeline, topics, schemas)
        reader = source.reader()
        try:
            side, expected = _held_side(pipeline, minutes), _expected(pipeline, minutes)
            against = None if expected is None else Against(minutes, targets, expected)
            scan = Scan(
                minutes, targets, formats, questions, reader, sources, schemas, side, against
            )
            found = scan.run()
            if against is not None:
                found = with_said(found, recorded, against, minutes.stop * 60_000)
            return found, recorded
        except DatabaseAway:
            raise
        except (NoAnswer, DatabaseError, Unreadable) as error:
            raise CountsRefused(str(error)) from error


def _held_side(pipeline: PipelineConfig, minutes: range) -> HeldSide | None:
    """None where the pipeline counts nothing. Raises NoAnswer, Unreadable."""
    if pipeline.section.counts is None:
        return None
    table = CountsTable(pipeline, TargetName.parse(pipeline.section.counts))
    index = read_index(pipeline)
    if index.damage:
        raise Unreadable(f"a dead letter can't be read: {index.damage[0]}")
    return HeldSide(minutes, table.rows, Standings(index).at)


def _expected(pipeline: PipelineConfig, minutes: range) -> ExpectedCounts | None:
    """What is said beside the log; None where nobody is asked. Before the log is read: what was
    committed by then comes there. Raises as ``counts_of_topic`` and ``counts_of_query``."""
    section = pipeline.section.expected_counts
    if section is None:
        return None
    if section.topic:
        return counts_of_topic(pipeline.counts_topic(section), minutes)
    return counts_of_query(pipeline, section, minutes)


def _check_kept(questions: Questions, topics: Collection[str]) -> None:
    """A compacted topic has lost changes, and so would its counts."""
    for topic, how in sorted(questions.compacted(sorted(topics)).items()):
        raise CountsRefused(
            f"topic {topic!r} {how}: changes of a key that changed again may be gone"
        )


def _check_ends(questions: Questions, sources: list[TopicPartition], recorded: Snapshot) -> None:
    for source, marks in questions.watermarks(sources).items():
        state = recorded.partitions.get(source)
        if state is not None and state.frontier > marks.high:
            raise CountsRefused(
                f"{source} ends at {marks.high}, below the committed position {state.frontier}: "
                "the log was cut or replaced"
            )


def _formats(
    pipeline: PipelineConfig, topics: Collection[str], schemas: CommandSchemas | None
) -> Mapping[str, Format]:
    """By topic; under ``auto`` none of a topic that nothing is known of, and that is empty. Raises
    CountsRefused, NotAnswered, LogUnreadable, StoreError."""
    format_ = format_of(pipeline, None if schemas is None else schemas.registry)
    auto = detector(format_)
    if auto is None:
        return dict.fromkeys(topics, format_)
    found: dict[str, Format] = {}
    for topic in sorted(topics):
        if auto.topics.of(topic) is not None:
            found[topic] = format_
            continue
        newest = look_up(pipeline.topics().log(topic), Where(last=NEWEST), None, NEWEST)
        one, said = format_of_records(topic, pipeline, schemas, newest)
        if one is not None:
            found[topic] = one
        elif newest:
            raise CountsRefused(f"topic {topic!r}: {said}")
    return found
