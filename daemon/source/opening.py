"""Opens a pipeline's source. Kafka is the one adapter; another is a line here."""

from __future__ import annotations

from collections.abc import Callable

from daemon.config.pipelines import Config
from daemon.kafka.logs import KafkaLogs
from daemon.source.port import Source

ADAPTERS: dict[str, Callable[[Config, str], Source]] = {"kafka": KafkaLogs}
"""How a kind of source is opened, by the configuration's word for it."""


def open_source(config: Config, pipeline: str) -> Source:
    """The source that a pipeline reads. Asks nobody yet. Any thread."""
    return ADAPTERS["kafka"](config, pipeline)
