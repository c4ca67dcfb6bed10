"""Turns a log's record into what its format gets, as the consumer does."""

from __future__ import annotations

from changes.formats.auto import AUTO, detector, make_format
from changes.formats.base import Format, pack
from changes.formats.recognise import TopicFormats
from daemon.commands.offset_transfer import export_snapshot
from daemon.config.config import Config
from daemon.source.port import LogRecord


def as_consumed(format_: Format, topic: str, record: LogRecord) -> bytes | None:
    """The value, or the packed record if the format needs that, with its mark under ``auto``."""
    if not format_.keyed:
        return record.value
    packed = pack(record.key, record.value, record.headers)
    auto = detector(format_)
    if auto is None or auto.topics.of(topic) is None:
        return packed
    return auto.marked(topic, packed)


def topics_format(format_: Format, topic: str) -> Format:
    """The format of one topic's records: the detected one under ``auto``, else the format
    itself."""
    auto = detector(format_)
    name = None if auto is None else auto.topics.of(topic)
    return format_ if auto is None or name is None else auto.named(name)


def format_of(config: Config, pipeline: str) -> Format:
    """A pipeline's format for a command. Under ``auto`` it uses the recorded formats of its topics.

    Raises StoreError if they can't be read.
    """
    section = config.pipeline[pipeline]
    topics = None
    if section.format == AUTO:
        recorded = export_snapshot(config, pipeline).snapshot
        topics = TopicFormats({} if recorded is None else recorded.formats)
    return make_format(section.format, section.format_options(), topics)
