"""A source of transactions over ten tables, as Debezium writes them, and what it knows it made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Producer

from offsets.counts import RowCounts

TABLES = [f"t{number}" for number in range(10)]
_ROWS = 20
"""Row events of a transaction, over two tables."""


class Source:
    """Each row of the stream is an insert, an update or a delete; ``made`` counts them."""

    def __init__(self, db: str, begins_ms: int) -> None:
        self.db, self.now_ms = db, begins_ms
        self.made: dict[tuple[str, int], Counter[str]] = {}
        self._row, self._transaction = 0, 0

    def transactions(self, rows: int, step_ms: float, lost: int = -1) -> Iterator[tuple[int, str]]:
        """Time and value of each message. ``step_ms``: between two transactions. Row ``lost`` of
        these is made, and not written."""
        begun, clock = self._row, float(self.now_ms)
        while self._row < begun + rows:
            self._transaction += 1
            first = TABLES[self._transaction % 10], TABLES[(self._transaction + 3) % 10]
            clock += step_ms
            self.now_ms = int(clock)
            yield self.now_ms, self._bound("BEGIN", None)
            for number in range(_ROWS):
                value = self._change(first[number % 2], number // 2 + 1)
                if self._row - 1 - begun != lost:
                    yield self.now_ms, value
            yield self.now_ms, self._bound("END", first)

    def _bound(self, status: str, tables: tuple[str, ...] | None) -> str:
        counts = "null" if tables is None else "[" + ",".join(
            f'{{"data_collection":"{self.db}.{table}","event_count":{_ROWS // 2}}}'
            for table in tables
        ) + "]"  # fmt: skip
        total = "null" if tables is None else _ROWS
        return (
            f'{{"status":"{status}","id":"g-{self._transaction}","event_count":{total},'
            f'"data_collections":{counts},"ts_ms":{self.now_ms}}}'
        )

    def _change(self, table: str, order: int) -> str:
        place, key = self._row % 10, self._row
        op, letter = ("c", "I") if place < 6 else ("u", "U") if place < 9 else ("d", "D")
        key -= 0 if op == "c" else 6
        self._row += 1
        minute = self.now_ms // 60_000
        self.made.setdefault((table, minute), Counter())[letter] += 1
        row = f'{{"id":{key},"v":"row {self._row}"}}'
        before, after = ("null", row) if op == "c" else (row, "null") if op == "d" else (row, row)
        return (
            f'{{"before":{before},"after":{after},"source":{{"connector":"mariadb","name":"one",'
            f'"db":"{self.db}","table":"{table}","ts_ms":{self.now_ms},"snapshot":null}},'
            f'"op":"{op}","ts_ms":{self.now_ms},"transaction":{{"id":"g-{self._transaction}",'
            f'"total_order":{order},"data_collection_order":{order}}}}}'
        )


def write(bootstrap: str, topic: str, messages: Iterator[tuple[int, str]]) -> None:
    """Have the topic hold them, in order, with their times."""
    producer = Producer({
        "bootstrap.servers": bootstrap, "linger.ms": 20, "enable.idempotence": True,
        "queue.buffering.max.messages": 200_000,
    })  # fmt: skip
    for at_ms, value in messages:
        while True:
            try:
                producer.produce(topic, value.encode(), partition=0, timestamp=at_ms)
                break
            except BufferError:
                producer.poll(1.0)
    assert producer.flush(120) == 0


def found_in(document: Any, db: str) -> dict[tuple[str, int], RowCounts]:
    """What ``binlogd counts --json`` found, by table and minute."""
    return {
        (each["table"].removeprefix(f"lake.{db}."), each["minute"]): RowCounts(
            each["inserted"], each["updated"], each["deleted"]
        )
        for each in document["counts"]
    }
