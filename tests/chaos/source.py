"""A database under load: transactions in a topic, and what the tables and the changelog must be.

Committed and aborted transactions alternate, so the log has control markers and aborted records;
each transaction also carries a heartbeat under one key, which compaction takes out: gaps.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.rig import canal

Row = tuple[str, int]
Place = tuple[int, int]
"""Partition and offset of a message."""

TOPIC = {
    "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "2000",
    "max.compaction.lag.ms": "2000", "min.compaction.lag.ms": "0", "delete.retention.ms": "100",
}  # fmt: skip


@dataclass
class Source:
    """Made, started and stopped by one thread; produces on one of its own."""

    bootstrap: str
    topic: str
    db: str
    seed: int
    tables: int = 4
    partitions: int = 1
    pause_s: float = 0.05
    rows: dict[str, dict[int, Row]] = field(default_factory=dict)
    changes: dict[str, list[Place]] = field(default_factory=dict)
    """Of each table the place of every committed message, in order."""
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._keys = 0
        self.rows = {f"t{number}": {} for number in range(self.tables)}
        self.changes = {name: [] for name in self.rows}

    def start(self) -> None:
        """Make the topic and begin."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topic = NewTopic(self.topic, self.partitions, 1, config=TOPIC)
        admin.create_topics([topic])[self.topic].result(20)
        self._thread.start()

    def stop(self) -> None:
        """End with the transaction in hand. Raises what went wrong."""
        self._stopping.set()
        self._thread.join(120)
        if self.error is not None:
            raise self.error

    @property
    def count(self) -> int:
        """Committed messages."""
        return sum(map(len, self.changes.values()))

    def _run(self) -> None:
        try:
            producer = Producer(
                {"bootstrap.servers": self.bootstrap, "transactional.id": f"tx-{self.topic}",
                 "transaction.timeout.ms": 60_000, "linger.ms": 2}
            )  # fmt: skip
            producer.init_transactions(60)
            while not self._stopping.wait(self.pause_s):
                self._transaction(producer)
        except BaseException as error:
            self.error = error

    def _transaction(self, producer: Producer) -> None:
        """A few messages; one in six is aborted. The broker may go away and come back meanwhile."""
        sent: list[tuple[str, int, Row | None, Message]] = []
        after = {name: dict(table) for name, table in self.rows.items()}
        producer.begin_transaction()
        for _ in range(self._rng.randrange(1, 12)):
            self._change(producer, after, sent)
        producer.produce(self.topic, _HEARTBEAT, key=b"heartbeat", partition=0)
        try:
            if self._rng.random() < 1 / 6:
                producer.flush(60)
                _again(producer.abort_transaction)
                return
            _again(producer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            _again(producer.abort_transaction)
            return
        self.rows = after
        for name, _key, _row, message in sent:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.changes[name].append((partition, offset))

    def _change(
        self,
        producer: Producer,
        after: dict[str, dict[int, Row]],
        sent: list[tuple[str, int, Row | None, Message]],
    ) -> None:
        number = self._rng.randrange(self.tables)
        name = f"t{number}"
        rows, table = after[name], f"{self.db}.t{number}"
        kind = self._rng.choice(("INSERT", "INSERT", "UPDATE", "UPDATE", "DELETE"))
        if kind == "INSERT" or not rows:
            self._keys += 1
            key, row = self._keys, (f"n{self._rng.randrange(10**6)}", self._rng.randrange(1000))
            value = canal(table, "INSERT", [_canal(key, row)])
            rows[key] = row
        else:
            key = self._rng.choice(list(rows)[-50:])
            before = rows.pop(key)
            if kind == "DELETE":
                value = canal(table, "DELETE", [_canal(key, before)])
            else:
                rows[key] = row = (f"n{self._rng.randrange(10**6)}", before[1] + 1)
                old = [{"name": before[0], "qty": str(before[1])}]
                value = canal(table, "UPDATE", [_canal(key, row)], old=old)

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                sent.append((name, key, rows.get(key), message))

        # Keys of their own: compaction takes none of these.
        place = f"{name}-{len(self.changes[name])}-{self._rng.random()}".encode()
        producer.produce(
            self.topic, value, key=place, partition=number % self.partitions, on_delivery=delivered
        )


_HEARTBEAT = canal("", "MHEARTBEAT", [])


def _canal(key: int, row: Row) -> dict[str, object]:
    return {"id": key, "name": row[0], "qty": row[1]}


def _again(call: object) -> None:
    """Commit or abort; where the broker is away for a while the client says to try again."""
    for attempt in range(20):
        try:
            call(30)  # type: ignore[operator]
            return
        except KafkaException as error:
            if not error.args[0].retriable() or attempt == 19:
                raise
