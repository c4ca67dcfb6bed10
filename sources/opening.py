"""Opens a pipeline's source, and topics beside it. Kafka is the only adapter; another is one more
line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sources.base.configuration import Configuration
    from sources.base.port import Source
    from sources.base.topics import Cluster, Topics


# The client is imported where a source is opened: who only reads a configuration does without.


def _kafka(config: Configuration, pipeline: str) -> Source:
    from sources.kafka.logs import KafkaLogs

    return KafkaLogs(config, pipeline)


ADAPTERS: dict[str, Callable[[Configuration, str], Source]] = {"kafka": _kafka}
"""The adapters by the configuration's name of the kind."""


def open_cluster(settings: Mapping[str, str | int | float | bool], answer_s: float) -> Cluster:
    """What holds topics, by a client's settings. Sends no query yet; each takes ``answer_s``."""
    from sources.kafka.cluster import KafkaCluster

    return KafkaCluster(settings, answer_s)


def open_source(config: Configuration, pipeline: str) -> Source:
    """The source that a pipeline reads. Sends no query yet. Any thread."""
    return ADAPTERS["kafka"](config, pipeline)


def open_topics(config: Configuration, pipeline: str | None = None) -> Topics:
    """Topics beside the logs, with the settings of a pipeline or, without one, the daemon's."""
    return topics_at(config.kafka if pipeline is None else config.kafka_of(pipeline))


def topics_at(settings: Mapping[str, str | int | float | bool]) -> Topics:
    """Topics by a client's settings, where no configuration names the broker."""
    from sources.kafka.topics import KafkaTopics

    return KafkaTopics(settings)
