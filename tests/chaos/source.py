"""A database under load: transactions in a topic, and what the tables and the changelog must be.

Committed and aborted transactions alternate, so the log has control markers and aborted records;
each transaction also carries a heartbeat under one key, which compaction takes out: gaps. The last
table's columns come, go and get other names; now and then a record is one that nobody can apply.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.chaos.tables import Table
from tests.integration.rig import canal

Place = tuple[int, int]
"""Partition and offset of a message."""

TOPIC = {
    "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "2000",
    "max.compaction.lag.ms": "2000", "min.compaction.lag.ms": "0", "delete.retention.ms": "100",
}  # fmt: skip

_HEARTBEAT = canal("", "MHEARTBEAT", [])


@dataclass(frozen=True, slots=True)
class _Sent:
    """A message on its way, and what becomes of its place when its transaction is committed."""

    note: Callable[[Place], object]
    message: Message


@dataclass
class Source:
    """Made, started and stopped by one thread; produces on one of its own."""

    bootstrap: str
    topic: str
    db: str
    seed: int
    count_of_tables: int = 4
    partitions: int = 1
    pause_s: float = 0.1
    alter_every: int = 60
    bad_every: int = 40
    """Transactions, of which ten come in a second. Each statement and each bad record ends the
    batches of two targets: more often, and on a busy machine the daemon gets to nothing else."""
    frontiers: Callable[[], Mapping[int, int]] = dict
    """Of each partition how far it is applied; called by the source's thread."""
    most_waiting: int = 3000
    """With so many messages not applied it waits: a daemon that is down must catch up again."""
    tables: list[Table] = field(init=False)
    changes: dict[str, list[Place]] = field(init=False)
    """Of each table the place of every committed change, in order."""
    bad: list[Place] = field(default_factory=list)
    """The place of every committed record that can't be applied."""
    statements: int = 0
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        names = [f"t{number}" for number in range(self.count_of_tables)]
        self.tables = [Table(self.db, name, self._rng) for name in names]
        self.changes = {name: [] for name in names}
        self._transactions = 0
        self._ends: dict[int, int] = {}
        self._look_again_at = 0.0
        self._held = False

    def start(self) -> None:
        """Make the topic and begin."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topic = NewTopic(self.topic, self.partitions, 1, config=TOPIC)
        admin.create_topics([topic])[self.topic].result(20)
        self._thread.start()

    def stop(self) -> None:
        """End with the transaction in hand. Raises what went wrong."""
        self.close()
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """End, whatever went wrong."""
        self._stopping.set()
        self._thread.join(120)

    @property
    def count(self) -> int:
        """Committed changes."""
        return sum(map(len, self.changes.values()))

    def _run(self) -> None:
        try:
            # The broker is killed now and then; that it can't be reached is no news.
            producer = Producer(
                {"bootstrap.servers": self.bootstrap, "transactional.id": f"tx-{self.topic}",
                 "transaction.timeout.ms": 60_000, "linger.ms": 2, "log_level": 0}
            )  # fmt: skip
            producer.init_transactions(60)
            while not self._stopping.wait(self.pause_s):
                if not self._too_many_wait():
                    self._transaction(producer)
        except BaseException as error:
            self.error = error

    def _too_many_wait(self) -> bool:
        """Looked at twice a second: it is read from a file."""
        if (now := time.monotonic()) >= self._look_again_at:
            self._look_again_at = now + 0.5
            applied = self.frontiers()
            waiting = (end - applied.get(place, 0) for place, end in self._ends.items())
            self._held = sum(waiting) > self.most_waiting
        return self._held

    def _transaction(self, producer: Producer) -> None:
        """A few messages; one in six is aborted. The broker may go away and come back meanwhile."""
        sent: list[_Sent] = []
        self._transactions += 1
        producer.begin_transaction()
        for _ in range(self._rng.randrange(1, 12)):
            number = self._rng.randrange(len(self.tables))
            table = self.tables[number]
            self._send(producer, number, table.change(), self.changes[table.name].append, sent)
        if self._transactions % self.bad_every == self.bad_every // 2:
            self._send(producer, 0, self.tables[0].bad(), self.bad.append, sent)
        if self._transactions % self.alter_every == self.alter_every // 2:
            last = len(self.tables) - 1
            self._send(producer, last, self.tables[last].alter(), self._altered, sent)
        producer.produce(self.topic, _HEARTBEAT, key=b"heartbeat", partition=0)
        if self._commit(producer):
            for one in sent:
                partition, offset = one.message.partition(), one.message.offset()
                assert partition is not None
                assert offset is not None
                one.note((partition, offset))
                self._ends[partition] = offset + 1
        for table in self.tables:
            table.undo.clear()

    def _altered(self, _place: Place) -> None:
        self.statements += 1

    def _commit(self, producer: Producer) -> bool:
        """Commit or abort; whether it is committed. What is aborted never was."""
        try:
            if self._rng.random() >= 1 / 6:
                _again(producer.commit_transaction)
                return True
            producer.flush(60)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        _again(producer.abort_transaction)
        for table in self.tables:
            table.roll_back()
        return False

    def _send(
        self,
        producer: Producer,
        number: int,
        value: bytes,
        note: Callable[[Place], object],
        sent: list[_Sent],
    ) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                sent.append(_Sent(note, message))

        # Keys of their own: compaction takes none of these.
        key = f"{number}-{self._rng.random()}".encode()
        place = number % self.partitions
        producer.produce(self.topic, value, key=key, partition=place, on_delivery=delivered)


def _again(call: Callable[[float], None]) -> None:
    """Commit or abort; where the broker is away for a while the client says to try again."""
    for attempt in range(20):
        try:
            call(30)
            return
        except KafkaException as error:
            if not error.args[0].retriable() or attempt == 19:
                raise
