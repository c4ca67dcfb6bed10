"""Opens a pipeline's source. Kafka is the only adapter; another is one more line here."""

from __future__ import annotations

from collections.abc import Callable

from daemon.config.config import Config
from daemon.kafka.logs import KafkaLogs
from daemon.source.port import Source

ADAPTERS: dict[str, Callable[[Config, str], Source]] = {"kafka": KafkaLogs}
"""The adapters by the configuration's name of the kind."""


def open_source(config: Config, pipeline: str) -> Source:
    """The source that a pipeline reads. Sends no query yet. Any thread."""
    return ADAPTERS["kafka"](config, pipeline)
