"""What Kafka does not let its user do, for ``binlogd check-config --connect``."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.config.config import Config
from offsets.store import StoreError
from sources.base.port import NotAllowed, NotAnswered, Source, TopicMissing, committed
from sources.opening import open_source


def check_rights(config: Config) -> tuple[list[str], list[str]]:
    """Problems and warnings. That a broker or topics do not answer is ``check``'s to say."""
    problems: list[str] = []
    warnings: list[str] = []
    for name in config.pipeline:
        source = open_source(config, name)
        try:
            topics = sorted(source.topic_ids())
            problems += (f"pipeline.{name}{line}" for line in _missing(source, topics))
            warnings += (f"pipeline.{name}: {line}" for line in _hidden(source, topics))
        except (NotAnswered, TopicMissing):
            continue
    return problems, warnings


def _missing(source: Source, topics: list[str]) -> Iterator[str]:
    """What reading needs."""
    for topic in source.questions().unreadable(topics):
        yield f".topics: {topic!r}: the Kafka user may describe it, but lacks READ on the topic"
    try:
        source.members()
    except NotAllowed as error:
        try:
            committed(source)  # what reading needs, where a service denies the question above alone
        except StoreError:
            yield f".group: {error}"


def _hidden(source: Source, topics: list[str]) -> Iterator[str]:
    """What alerts and some operations need."""
    said = source.questions().compacted(topics[:1]).get(topics[0] if topics else "", "")
    if said not in ("", "is compacted"):
        yield (
            f"topic {topics[0]!r} {said}. How long it keeps records is not known either: the "
            "alerts on retention can't fire, alert on binlogd_pipeline_lag_seconds instead"
        )
