"""Opens a pipeline's source, and topics beside it. Kafka is the only adapter; another is one more
line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sources.base.configuration import Configuration
from sources.base.port import Source
from sources.base.topics import Cluster, Topics
from sources.kafka.cluster import KafkaCluster
from sources.kafka.logs import KafkaLogs
from sources.kafka.topics import KafkaTopics

ADAPTERS: dict[str, Callable[[Configuration, str], Source]] = {"kafka": KafkaLogs}
"""The adapters by the configuration's name of the kind."""


def open_cluster(settings: Mapping[str, str | int | float | bool], answer_s: float) -> Cluster:
    """What holds topics, by a client's settings. Sends no query yet; each takes ``answer_s``."""
    return KafkaCluster(settings, answer_s)


def open_source(config: Configuration, pipeline: str) -> Source:
    """The source that a pipeline reads. Sends no query yet. Any thread."""
    return ADAPTERS["kafka"](config, pipeline)


def open_topics(config: Configuration, pipeline: str | None = None) -> Topics:
    """Topics beside the logs, with the settings of a pipeline or, without one, the daemon's."""
    return KafkaTopics(config.kafka if pipeline is None else config.kafka_of(pipeline))


def topics_at(settings: Mapping[str, str | int | float | bool]) -> Topics:
    """Topics by a client's settings, where no configuration names the broker."""
    return KafkaTopics(settings)
