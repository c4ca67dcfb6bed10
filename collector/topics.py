"""The topics of a collector, made before its connector is."""

from __future__ import annotations

from collector.connector.config import LARGEST_RECORD, history_topic, topic_of
from collector.connector.patterns import group_topic
from collector.wiring import Wiring

DATA = {"max.message.bytes": str(LARGEST_RECORD)}
"""Of a topic with changes."""

KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Of the schema history: one statement that is gone, and no later row can be read."""


def keep_topics(wiring: Wiring) -> None:
    """Make those that are missing. Raises UnfitTopic where one that is there would lose records or
    their order; NotAnswered."""
    topics = wiring.topics()
    for each in data_topics(wiring):
        topics.keep(each, DATA)
    for each in history_topics(wiring):
        topics.keep(each, KEPT, KEPT)


def data_topics(wiring: Wiring) -> list[str]:
    """Those with changes whose names are known beforehand: a table's own topic is Connect's."""
    topic = topic_of(wiring.name, wiring.section)
    return [topic, *(group_topic(topic, group) for group in wiring.section.groups)]


def history_topics(wiring: Wiring) -> list[str]:
    """That of the statements; PostgreSQL's log needs none."""
    if wiring.database is not None and wiring.database.address.kind == "postgresql":
        return []
    return [history_topic(wiring.name, wiring.section)]
