"""What is a collector's in the embedded broker: its position, and the history of the schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from collector.connector.config import connector_name, history_topic, topic_of
from collector.memory import CollectorMemory
from collector.topics import DATA, KEPT
from daemon.config.config import Config
from daemon.state.edits import EditRefused
from offsets.position import TopicPartition
from settings.shell import quoted
from sources.base.port import LogRecord, Outgoing, TopicMissing
from sources.base.topics import TopicLog
from sources.opening import open_topics

_COMPACTED = {"cleanup.policy": "compact"}
"""Connect starts with no other topic of positions."""


@dataclass(frozen=True, slots=True)
class Carried:
    """Of one collector. ``positions``: Connect's own records, by their keys; ``history``: its
    topic, None where its source needs none."""

    name: str
    positions: Mapping[bytes, bytes]
    history: str | None

    @property
    def shown(self) -> str:
        """Its position as a person reads it."""
        return ", ".join(value.decode(errors="replace") for value in self.positions.values())


def offsets_topic(config: Config) -> str:
    """Where the embedded worker has its connectors' positions."""
    return f"{config.connect.group}-offsets"


def carried(old: Config, refusals: list[str]) -> list[Carried]:
    """What is to be carried over, of each collector that has begun. Adds why one can't be. Raises
    NotAnswered, LogUnreadable, OSError."""
    found: list[Carried] = []
    topics = open_topics(old)
    for name, section in old.collector.items():
        memory = CollectorMemory(old.daemon.state_dir, name)
        memory.load()
        if not section.is_embedded:
            refusals.append(
                f"collector {name}: its connector is in {section.connect}, which has its position: "
                "move that cluster's topics by its own means"
            )
        elif memory.now.lost:
            refusals.append(
                f"collector {name}: its position is gone ({memory.now.lost}): with embedded = "
                f"true, `binlogd collector reset {quoted(name)} --execute`"
            )
        elif not memory.now.removed and (memory.now.begun or memory.now.identity):
            topic = topic_of(name, section)
            positions = _positions(topics.log(offsets_topic(old)), name, topic)
            if not positions:
                refusals.append(f"collector {name}: Connect has no position of it under {topic!r}")
            history = history_topic(name, section)
            there = bool(partitions_of(topics.log(history)))
            found.append(Carried(name, positions, history if there else None))
    return found


def _positions(log: TopicLog, name: str, topic: str) -> dict[bytes, bytes]:
    """The newest record of each of a connector's keys, ``["NAME", {"server": TOPIC}]``."""
    newest: dict[bytes, bytes | None] = {}
    for record in _records(log):
        if record.key is not None and _is_of(record.key, connector_name(name), topic):
            newest[record.key] = record.value
    return {key: value for key, value in newest.items() if value is not None}


def _is_of(key: bytes, connector: str, topic: str) -> bool:
    try:
        name, partition = json.loads(key)
        return bool(name == connector and partition.get("server") == topic)
    except (ValueError, TypeError, AttributeError):
        return False


def carry(old: Config, new: Config, one: Carried) -> int:
    """Carry one over: the history first, for a position without it would know no table. Gives the
    history's records. May be repeated. Raises EditRefused, UnfitTopic, NotSent, NotAnswered,
    LogUnreadable."""
    before, topics = open_topics(old), open_topics(new)
    count = 0
    if one.history is not None:
        topics.of_collectors().keep(one.history, {**KEPT, **DATA}, KEPT)
        count = topics.sender().send(_missing(before.log(one.history), topics.log(one.history)))
    positions = offsets_topic(new)
    topics.of_collectors().keep(positions, _COMPACTED, _COMPACTED)
    topics.sender().send(
        Outgoing(positions, 0, key, value, ()) for key, value in one.positions.items()
    )
    return count


def _missing(old: TopicLog, new: TopicLog) -> Iterator[Outgoing]:
    """What the new one is short of. It holds the first records of the old one, or none."""
    have = _records(new)
    for record in _records(old):
        there = next(have, None)
        if there is None:
            yield Outgoing(new.topic, 0, record.key, record.value, record.headers)
        elif (there.key, there.value, there.headers) != (record.key, record.value, record.headers):
            raise _of_another(new, there)
    if (there := next(have, None)) is not None:
        raise _of_another(new, there)


def _of_another(log: TopicLog, record: LogRecord) -> EditRefused:
    return EditRefused(
        f"topic {log.topic!r} is there already, and {record.offset} is a record of another "
        "collector. Remove it there, if nobody needs it"
    )


def _records(log: TopicLog) -> Iterator[LogRecord]:
    """All that a topic holds now."""
    for source in partitions_of(log):
        at = log.questions().watermarks([source])[source]
        if at.low < at.high:
            yield from log.reader().read(source, at.low, at.high - 1)


def partitions_of(log: TopicLog) -> list[TopicPartition]:
    """Empty where the topic is not there. Raises NotAnswered."""
    try:
        return log.describe()[1]
    except TopicMissing:
        return []
