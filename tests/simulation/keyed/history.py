"""A database with a past whose tables are spread over many partitions, each key in one."""

from __future__ import annotations

import random
from dataclasses import dataclass

from offsets.position import TopicPartition
from tests.simulation.keyed.stream import TOPIC, KeyedSource
from tests.simulation.loads.history import History, TableThen, Version
from tests.simulation.shape import Shape
from tests.simulation.source import target_of
from tests.simulation.stream import Stream, lay_out


@dataclass
class KeyedHistory(History):
    """``grown_at``: the first commit of a producer that knows of more partitions."""

    grown_at: int | None = None


def keyed_history(
    rng: random.Random,
    before: int,
    steps: int,
    partitions: int,
    tables: int = 2,
    *,
    grown: int = 0,
    grows_at: int = -1,
) -> KeyedHistory:
    """Tables with a past, of which the log tells the later part. At the step ``grows_at`` the topic
    gets ``grown`` partitions."""
    source = KeyedSource(rng, partitions, tables)
    for _ in range(before):
        source.step()
    source.made.clear()
    stream = Stream(Shape(keyed=partitions, quarantine=rng.random() < 0.5), {})
    history = KeyedHistory(stream, [_version(source)])
    source.after_each.append(lambda: history.versions.append(_version(source)))
    for step in range(steps):
        if step == grows_at:
            source.grow(grown)
            history.grown_at = len(source.made)
        source.step()
    history.commits = [TopicPartition(TOPIC, message.partition) for message in source.made]
    for number in range(max(partitions, grown)):
        found = [message for message in source.made if message.partition == number]
        lay_out(rng, stream, TopicPartition(TOPIC, number), found)
    for name, rows in source.rows.items():
        stream.tables[target_of(name)] = {
            (str(key),): {"id": str(key), **row} for key, row in rows.items()
        }
    return history


def _version(source: KeyedSource) -> Version:
    return {
        name: TableThen(
            tuple(source.columns[name]),
            {(key,): {"id": str(key), **row} for key, row in rows.items()},
            0,
        )
        for name, rows in source.rows.items()
    }
