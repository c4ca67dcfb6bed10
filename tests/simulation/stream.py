"""A random change stream and, beside it, what must come of it."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from offsets.position import TopicPartition
from tests.simulation.parts import cut
from tests.simulation.several import joined
from tests.simulation.shape import PLAIN, Shape
from tests.simulation.source import CHANGELOG, Message, Source, target_of

SOURCES = (TopicPartition("binlog", 0), TopicPartition("binlog", 1))

Log = dict[TopicPartition, list[tuple[int, bytes]]]


@dataclass(frozen=True, slots=True)
class Due:
    """What a message asks for before it counts as done.

    ``targets`` must show its offset, ``bad`` must hold it as a dead letter.
    """

    offset: int
    targets: tuple[str, ...]
    bad: tuple[str | None, ...]


@dataclass
class Stream:
    """A change stream and, beside it, the tables and the changelog that it must lead to.

    ``messages`` are the whole ones, each at its last part's offset; ``log`` has the parts.
    """

    shape: Shape
    log: Log
    end: dict[TopicPartition, int] = field(default_factory=dict)
    messages: Log = field(default_factory=dict)
    due: dict[TopicPartition, list[Due]] = field(default_factory=dict)
    tables: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)
    doubted: set[str] = field(default_factory=set)
    """Targets whose stored rows a statement may have changed at the source alone."""
    kept: set[str] = field(default_factory=set)
    """Targets whose tables are gone in the source; the policy says what a sink has of them."""
    changelog: dict[TopicPartition, list[tuple[str, int, int, int]]] = field(default_factory=dict)
    letters: set[tuple[TopicPartition, int, str | None]] = field(default_factory=set)


def random_stream(
    rng: random.Random, messages: int, tables: int = 4, shape: Shape = PLAIN
) -> Stream:
    """Inserts, updates, deletes, key changes over two partitions, gaps between the offsets.

    A table's changes are all in one partition, unless ``shape.lanes``; the changelog takes in both.
    """
    source = Source(rng, shape, tables)
    made: dict[int, list[Message]] = {0: [], 1: []}
    for _ in range(messages):
        message = source.next()
        if message is not None:
            made[message.partition].append(message)
    stream = Stream(shape, {})
    for place, found in zip(SOURCES, made.values(), strict=True):
        lay_out(rng, stream, place, _packed(rng, found, shape.several))
    for name, table in source.tables.items():
        stream.tables[target_of(name)] = {
            (key,): {"id": key, **row} for key, row in table.rows.items()
        }
    stream.doubted = {target_of(name) for name, table in source.tables.items() if table.doubted}
    stream.kept = {target_of(name) for name in source.dropped}
    return stream


def _packed(rng: random.Random, found: list[Message], several: float) -> list[Message]:
    """Pack some messages together. One that can't be applied would take the others along."""
    left, packed = deque(found), []
    while left:
        group = [left.popleft()]
        if not group[0].bad and rng.random() < several:
            size = rng.choice((2, 3, 6))
            while left and len(group) < size and not left[0].bad:
                group.append(left.popleft())
            letters = tuple(letter for message in group for letter in message.letters)
            targets = tuple(dict.fromkeys(name for each in group for name in each.targets))
            value = joined([message.value for message in group])
            group = [Message(group[0].partition, value, letters, targets)]
        packed += group
    return packed


def lay_out(
    rng: random.Random, stream: Stream, source: TopicPartition, found: list[Message]
) -> None:
    """Give messages their offsets, in their order; parts of some stand among those before it."""
    stream.log[source], stream.messages[source] = [], []
    stream.changelog[source], stream.due[source] = [], []
    offset = 0
    for value, whole in _pieces(rng, found, stream.shape.split):
        offset += rng.choice((0, 0, 0, 1, 3))
        stream.log[source].append((offset, value))
        if whole is not None:
            _expect(stream, source, offset, whole)
        offset += 1
    stream.end[source] = offset + rng.randrange(3)


def _pieces(
    rng: random.Random, found: list[Message], split: float
) -> list[tuple[bytes, Message | None]]:
    """What the log has: whole messages and parts, each with the message that it completes.

    A producer (a stream of parts) sends one message after another; now and then it begins one anew.
    """
    placed: list[tuple[float, bytes, Message | None]] = []
    free = dict.fromkeys("abc", -1.0)
    for number, message in enumerate(found):
        if rng.random() >= split:
            placed.append((number, message.value, message))
            continue
        producer = rng.choice(sorted(free))
        begin = max(free[producer], number - rng.choice((0.5, 2.5, 6.5)))
        values = cut(rng, message.value, rng.choice((1, 2, 3)), producer)
        if rng.random() < 0.2:
            values = values[: rng.randrange(len(values))] + values
        step = (number - begin) / len(values)
        for place, value in enumerate(values, 1):
            last = place == len(values)
            at = number if last else begin + place * step
            placed.append((at, value, message if last else None))
        free[producer] = number
    placed.sort(key=lambda piece: piece[0])
    return [(value, message) for _, value, message in placed]


def _expect(stream: Stream, source: TopicPartition, offset: int, message: Message) -> None:
    stream.messages[source].append((offset, message.value))
    stream.changelog[source] += [
        (letter, source.partition, offset, index)
        for index, letter in enumerate(message.letters)
        if CHANGELOG in message.targets
    ]
    stream.due[source].append(Due(offset, message.targets, message.bad))
    stream.letters |= {(source, offset, target) for target in message.bad}
