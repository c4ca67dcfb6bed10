"""What ``binlogd check-config`` says of gates: what they would do; and of topics that
binlogd tells things to, whether they are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from daemon.config.config import Config
from daemon.config.gates import topic_settings
from sources.base.port import NotAnswered, TopicMissing
from sources.opening import topics_at


def planned_gates(config: Config) -> Iterator[str]:
    """A line for each."""
    for name, gate in config.gates.items():
        told = f"; told: {', '.join(gate.ways)}" if gate.ways else ""
        yield f"gate {name}: every {gate.every:g} s of {', '.join(gate.tables)}{told}"


def own_topics_missing(config: Config) -> Iterator[str]:
    """A line for each topic of jobs, gates and counts that is not there."""
    found = [
        (f"jobs.{key}", getattr(config.jobs, key), config.kafka)
        for key in ("notifications_topic", "signals_topic")
    ]
    for name, gate in config.gates.items():
        found.append((f"gates.{name}.topic", gate.topic, topic_settings(gate, config.kafka)))
    for name, pipeline in config.pipeline.items():
        if (counts := pipeline.expected_counts) is not None:
            settings = counts.settings(config.kafka_of(name))
            found.append((f"pipeline.{name}.expected_counts.topic", counts.topic, settings))
    for key, topic, settings in found:
        if topic:
            try:
                topics_at(settings).log(topic).describe()
            except (NotAnswered, TopicMissing) as error:
                yield f"{key}: {error}"


def gate_warnings(config: Config) -> Iterator[str]:
    """Gates whose marks can't be left now."""
    for name, gate in config.gates.items():
        if gate.success and not Path(gate.success).is_dir():
            yield f"gates.{name}.success: {gate.success} is no folder: it is not made by binlogd"
