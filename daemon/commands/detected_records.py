"""What a format is given of a record that the log has: as the consumer would give it."""

from __future__ import annotations

from changes.formats.auto import AUTO, detector, make_format
from changes.formats.base import Format, pack
from changes.formats.recognise import TopicFormats
from daemon.commands.offset_transfer import export_snapshot
from daemon.config.pipelines import Config
from daemon.source.port import LogRecord


def as_consumed(format_: Format, topic: str, record: LogRecord) -> bytes | None:
    """The value, the packed record where the format wants that, with its mark under ``auto``."""
    if not format_.keyed:
        return record.value
    packed = pack(record.key, record.value, record.headers)
    auto = detector(format_)
    if auto is None or auto.topics.of(topic) is None:
        return packed
    return auto.marked(topic, packed)


def topics_format(format_: Format, topic: str) -> Format:
    """The format of one topic's records: under ``auto`` the one that was told, else itself."""
    auto = detector(format_)
    name = None if auto is None else auto.topics.of(topic)
    return format_ if auto is None or name is None else auto.named(name)


def format_of(config: Config, pipeline: str) -> Format:
    """A pipeline's format for a command; under ``auto`` by what is recorded of its topics.

    Raises StoreError where that can't be read.
    """
    section = config.pipeline[pipeline]
    topics = None
    if section.format == AUTO:
        recorded = export_snapshot(config, pipeline).snapshot
        topics = TopicFormats({} if recorded is None else recorded.formats)
    return make_format(section.format, section.format_options(), topics)
