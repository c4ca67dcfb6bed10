"""Opens a pipeline's source. Kafka is the only adapter; another is one more line here."""

from __future__ import annotations

from collections.abc import Callable

from sources.base.configuration import Configuration
from sources.base.port import Source
from sources.kafka.logs import KafkaLogs

ADAPTERS: dict[str, Callable[[Configuration, str], Source]] = {"kafka": KafkaLogs}
"""The adapters by the configuration's name of the kind."""


def open_source(config: Configuration, pipeline: str) -> Source:
    """The source that a pipeline reads. Sends no query yet. Any thread."""
    return ADAPTERS["kafka"](config, pipeline)
