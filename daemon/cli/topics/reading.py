"""As what commands read a topic: the pipeline that reads it, and the format of its records."""

from __future__ import annotations

from changes.formats import AUTO, make_format
from changes.formats.detector import detector
from changes.formats.engine.format import Format, Packed, pack
from changes.model.model import FormatOptions
from daemon.cli.base.detected_format import FormatUnclear, detected_format
from daemon.cli.base.options import refuse
from daemon.cli.topics.stretch import Found
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.command_schemas import CommandSchemas
from daemon.state.offset_transfer import format_of
from sources.base.consumed import topics_format
from sources.base.topics import Topics
from sources.opening import open_topics, topics_at


def topics_as(broker: str | None, settings: Config | None, reads: PipelineConfig | None) -> Topics:
    if settings is None:
        return topics_at({"bootstrap.servers": broker or ""})
    return open_topics(settings, None if reads is None else reads.name)


def reader_of(settings: Config, topic: str, name: str | None) -> PipelineConfig | None:
    """The pipeline as which the topic is read: the named one, or the one that reads it."""
    if name is not None:
        if name not in settings.pipeline:
            refuse(f"there is no pipeline {name!r}; have: {', '.join(sorted(settings.pipeline))}")
        return PipelineConfig(settings, name)
    readers = [each for each in settings.pipeline if settings.topics_of(each).reads(topic)]
    if len(readers) > 1:
        refuse(f"several pipelines read {topic!r}: --pipeline {'|'.join(sorted(readers))}")
    return PipelineConfig(settings, readers[0]) if readers else None


def format_of_records(
    topic: str, reads: PipelineConfig | None, schemas: CommandSchemas | None, found: Found
) -> tuple[Format | None, str]:
    """The format of the records, and in words which one it is, or why there is none. Raises
    StoreError."""
    who = f"pipeline {reads.name}" if reads else "no pipeline reads the topic"
    if reads is None:
        format_ = make_format(AUTO, FormatOptions())
    else:
        format_ = format_of(reads, None if schemas is None else schemas.registry)
    format_ = topics_format(format_, topic)
    if (auto := detector(format_)) is None:
        return format_, f"{format_.name}, {who}"
    records = [Packed(each.key, each.value, each.headers) for _, each in found]
    if schemas is not None:
        schemas.fetch(pack(*each) for each in records)
    try:
        detected = detected_format(auto, records)
    except FormatUnclear as unclear:
        return None, f"{str(unclear).removesuffix('. --format names one')} ({who})"
    return detected, "" if detected is None else f"{detected.name}, detected, {who}"
