"""What is not at rest: it would be lost with the embedded broker, or is of its log alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence

from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.store import JobStore
from daemon.operations.reset.mark_moves import has_moves
from daemon.state.dead_letters.open import OpenLetters
from daemon.state.signals import stored_place
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from settings.counted import counted
from settings.shell import quoted
from sources.base.port import LogGone, Questions, Reader, TopicMissing
from sources.opening import open_topics

OPEN_WITHIN_S = 120.0
"""What a killed writer left open, its broker ends after a minute, and looks every ten seconds."""

_LOOK_EVERY_S = 1.0

APPLIED = (
    "with embedded = true, `binlogd run` and `binlogd collector pause` for each collector, then "
    "stop it, and `binlogd run --until-caught-up` applies all that there is"
)


def ends(questions: Questions, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """Where the logs end, once no transaction is open there; of one where it stays open, -1. Raises
    NotAnswered."""
    deadline, pause = time.monotonic() + OPEN_WITHIN_S, threading.Event()
    while True:
        whole = {source: log.high for source, log in questions.watermarks(sources).items()}
        committed = questions.committed_ends(sources)
        if whole == committed:
            return whole
        if time.monotonic() > deadline:
            return {source: at if committed[source] == at else -1 for source, at in whole.items()}
        pause.wait(_LOOK_EVERY_S)


def jobs_under_way(config: Config) -> Iterator[str]:
    """A line for each job that has not ended, or that can't be read. Raises OSError."""
    found = JobStore(config.daemon.state_dir).load()
    yield from found.damage
    for job in found.jobs:
        if not job.state.is_final:
            yield (
                f"job {job.id} ({job.wanted.kind}) is {job.state.value}: wait until it has ended, "
                f"or `binlogd jobs cancel {quoted(job.id)}`"
            )


def signals_open(old: Config) -> Iterator[str]:
    """A line where signals were sent that nobody has carried out. Raises NotAnswered."""
    topic, place = old.jobs.signals_topic, stored_place(old.daemon.state_dir)
    if not topic or place is None or place.topic != topic:
        return
    log = open_topics(old).log(topic)
    try:
        id_, sources = log.describe()
    except TopicMissing:
        return
    until = log.questions().committed_ends(sources)
    if id_ == place.topic_id and any(place.offsets.get(s.partition, 0) < until[s] for s in sources):
        yield f"topic {topic!r} has signals that were not carried out: {APPLIED}"


def not_kept(pipeline: PipelineConfig, recorded: Snapshot) -> Iterator[str]:
    """Why what a pipeline has recorded does not suffice, or is not settled. Raises NotKept."""
    name, section = pipeline.name, pipeline.section
    if "file" not in section.offset_stores or "kafka-topic" in section.offset_stores:
        yield (
            f'pipeline {name}: positions move by the file alone: offset_stores = ["file", '
            '"kafka-commit"], and one start with it before the move'
        )
    for target in sorted(recorded.spills):
        word = quoted(target)
        yield (
            f"{target} is in quarantine or away, with messages of its own: release it "
            f"(`binlogd tables retry {word}`) or give it up (`binlogd tables discard {word}`)"
        )
    for target in sorted(recorded.rebuilds):
        yield f"{target}: a rebuild of it is not over: start the daemon, which ends it"
    if has_moves(recorded):
        yield f"pipeline {name}: a reset is recorded and not carried out yet: start the daemon"
    if section.dead_letter_topic is not None and (count := OpenLetters(pipeline)()):
        yield (
            f"pipeline {name}: {counted(count, 'dead letter is', 'dead letters are')} open in "
            f"{section.dead_letter_topic!r}, which stays with the embedded broker: "
            "`binlogd dead-letters replay` or `discard` them"
        )


def unread(
    pipeline: str,
    recorded: Snapshot,
    reader: Reader,
    logs: Mapping[TopicPartition, tuple[int, int]],
) -> Iterator[str]:
    """A line for each log, as begin and end, that holds what was not applied, or has lost some of
    it. Raises LogUnreadable."""
    for source, (low, high) in sorted(logs.items()):
        state = recorded.partitions.get(source)
        frontier = low if state is None else state.frontier
        if high < frontier:
            yield (
                f"pipeline {pipeline}: {source} ends at {high}, and {frontier} is recorded: the "
                "embedded broker has lost its end"
            )
            continue
        try:
            found = next(reader.read(source, frontier, high - 1), None) if frontier < high else None
        except LogGone as error:
            yield f"pipeline {pipeline}: not all was applied, and it is gone: {error}"
            continue
        if found is not None:
            yield (
                f"pipeline {pipeline}: {source} has messages that are not applied, from "
                f"{found.offset} on: {APPLIED}"
            )
