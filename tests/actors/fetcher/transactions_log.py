"""A log of several partitions as Debezium writes it, with the ends of its transactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from offsets.position import TopicPartition
from tests.changes.formats.debezium.messages import MYSQL, envelope, record

ENDS = TopicPartition("ends", 0)
DATA = tuple(TopicPartition("t", number) for number in range(3))
T0 = 1_589_373_515_000


def event(name: str | None, order: int, time_ms: int = T0, op: str = "c") -> bytes:
    """A row's change."""
    told = None if name is None else {"id": name, "total_order": order, "data_collection_order": 1}
    source = {**MYSQL, "ts_ms": time_ms}
    return record(envelope(op, {"id": 1}, source=source, transaction=told), {"id": 1})


def begin(name: str, time_ms: int = T0) -> bytes:
    """The begin of a transaction."""
    told = {"status": "BEGIN", "id": name, "ts_ms": time_ms}
    return record({**told, "event_count": None, "data_collections": None}, {"id": name})


def end(name: str, events: int, time_ms: int | None = T0, *, others: int = 0) -> bytes:
    """The end of a transaction. ``others``: events that are of no table."""
    tables = [{"data_collection": "shop.orders", "event_count": events}] if events else []
    if others:
        tables.append({"data_collection": "io.debezium.message", "event_count": others})
    told = {"status": "END", "id": name, "ts_ms": time_ms, "event_count": events + others}
    return record({**told, "data_collections": tables}, {"id": name})


@dataclass
class TransactionsLog:
    """``places``: of each transaction, in the order of their commits, the offset behind each of
    its events, by partition."""

    values: dict[TopicPartition, list[bytes]] = field(
        default_factory=lambda: {source: [] for source in (*DATA, ENDS)}
    )
    places: list[dict[TopicPartition, list[int]]] = field(default_factory=list)

    def add(self, random: Random, commit_ms: int, *, ends: TopicPartition = ENDS) -> None:
        """A transaction. Its statements are older than its commit, in no order."""
        name = f"0-1-{len(self.places)}"
        self.values[ends].append(begin(name, commit_ms - 100))
        count = random.choice((0, 1, 2, 2, 3, 8))
        places: dict[TopicPartition, list[int]] = {}
        for order in range(1, count + 1):
            source = random.choice(DATA)
            self.values[source].append(event(name, order, commit_ms - random.randrange(90)))
            places.setdefault(source, []).append(len(self.values[source]))
            if random.random() < 0.1:
                self.values[source].append(record(None, {"id": 1}))  # a tombstone
        self.values[ends].append(end(name, count, commit_ms))
        self.places.append(places)

    def divided(self, positions: dict[TopicPartition, int]) -> str | None:
        """What is wrong with a cut there; None: it goes between two transactions."""
        within = [
            [
                offset <= positions[source]
                for source, offsets in places.items()
                for offset in offsets
            ]
            for places in self.places
        ]
        for number, events in enumerate(within):
            if any(events) and not all(events):
                return f"transaction {number} is divided"
        whole = [all(events) for events in within if events]
        return (
            None if whole == sorted(whole, reverse=True) else "one is in it before an earlier one"
        )
