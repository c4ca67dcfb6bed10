"""Where the logs are: brokers that the file names, or the embedded one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from collector.broker.home import BrokerHome, BrokerUnusable, ClientSettings
from collector.section import BrokerSection
from daemon.config.pipelines import PipelineSection
from daemon.config.sections import JobsSection
from sources.base.topic_selection import is_pattern

_CONNECTING = ("bootstrap.", "security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.")
"""Prefixes of librdkafka's settings that say where a broker is and how one enters."""

EMBEDDED_HINT = (
    " (the embedded broker, which runs only while the daemon does: start it by `binlogd run`; "
    "where it runs, `binlogd status` says what is wrong)"
)


def unfit_brokers(
    kafka: Mapping[str, Any], pipelines: Mapping[str, PipelineSection], broker: BrokerSection
) -> Iterator[str]:
    """What is wrong with ``[kafka]``, the pipelines' own ``kafka`` and ``[broker]`` together."""
    if broker.embedded:
        own = {f"pipeline.{name}.kafka": section.kafka for name, section in pipelines.items()}
        tables: dict[str, Mapping[str, Any]] = {"kafka": kafka, **own}
        for at, table in tables.items():
            for key in connecting(table):
                yield (
                    f"{at}.{key}: the embedded broker ([broker] embedded = true) has an "
                    "address and a secret of its own: leave this out, or set embedded = false"
                )
        return
    brokers = kafka.get("bootstrap.servers")
    if brokers is None:
        yield (
            'kafka: "bootstrap.servers" is missing; without a Kafka of your own: '
            "[broker] embedded = true"
        )
    elif not isinstance(brokers, str) or not brokers.strip():
        yield f'kafka.bootstrap.servers: "host:port" is required, not {brokers!r}'


def connecting(settings: Mapping[str, Any]) -> list[str]:
    """The settings that say where a broker is and how one enters."""
    return [key for key in settings if key.startswith(_CONNECTING)]


def embedded_settings(broker: BrokerSection, state_dir: Path, lenient: bool) -> ClientSettings:
    """What clients need for the embedded broker. Where its files can't be read, ``lenient`` gives
    settings by which nobody answers; otherwise raises BrokerUnusable."""
    home = BrokerHome(state_dir, broker.port)
    try:
        return home.client_settings()
    except BrokerUnusable:
        if not lenient:
            raise
    return {"bootstrap.servers": "127.0.0.1:1"}


def named_topics(pipelines: Mapping[str, PipelineSection], jobs: JobsSection) -> frozenset[str]:
    """Those of all pipelines' topics that are names, with those of counts, and the jobs' own."""
    read = {topic for each in pipelines.values() for topic in each.topics}
    counts = (each.expected_counts for each in pipelines.values())
    read |= {each.topic for each in counts if each is not None and not connecting(each.kafka)}
    named = {topic for topic in read if not is_pattern(topic)}
    return frozenset((named | {jobs.signals_topic, jobs.notifications_topic}) - {""})
