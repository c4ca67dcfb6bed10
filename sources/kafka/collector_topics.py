"""Topics that a collector writes, and the group of its workers, in Kafka; topics that go on in
another cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from settings.counted import counted
from sources.base.port import GroupMember, NotAnswered, TopicMissing
from sources.base.topics import UnfitTopic
from sources.kafka.admin import ANSWER_TIMEOUT_S, Admin
from sources.kafka.answers import asking, said_by, when_settled
from sources.kafka.log_reader import LogReader
from sources.kafka.settings import connection_settings

_AT_ONCE = 50_000
"""Empty records that are handed to the client together."""

_TELL_EVERY = 5_000_000

_FLUSH_WITHIN_S = 120.0


class KafkaCollectorTopics:
    """See ``sources.base.topics.CollectorTopics``."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """``settings`` are those of ``[kafka]``."""
        self._settings = settings
        self._admin: Admin | None = None

    def keep(
        self, topic: str, settings: Mapping[str, str], must: Mapping[str, str] | None = None
    ) -> None:
        """See ``sources.base.topics.CollectorTopics``."""
        admin = self._asked()
        admin.make(topic, settings)
        # One that was created a moment ago is not known everywhere yet.
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        when_settled(lambda: _judge(admin, topic, must or {}), deadline)

    def remove(self, topics: Sequence[str]) -> list[str]:
        """See ``sources.base.topics.CollectorTopics``."""
        there = sorted(set(self._asked().names()) & set(topics))
        if there:
            client = AdminClient(connection_settings(self._settings))
            with asking():
                answers = client.delete_topics(there, operation_timeout=ANSWER_TIMEOUT_S)
                for answer in answers.values():
                    answer.result(ANSWER_TIMEOUT_S)
        return there

    def workers(self, group: str) -> list[GroupMember]:
        """See ``sources.base.topics.CollectorTopics``."""
        try:
            # The newer question is for groups of consumers alone.
            client = AdminClient(connection_settings(self._settings))
            found = client.list_groups(group, timeout=ANSWER_TIMEOUT_S)
        except KafkaException as error:
            raise NotAnswered(said_by(error), away=True) from error
        members = (member for each in found for member in each.members)
        return [GroupMember(one.client_id or "", one.client_host or "", None) for one in members]

    def _asked(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(self._settings)
        return self._admin


def _judge(admin: Admin, topic: str, must: Mapping[str, str]) -> None:
    """Raises UnfitTopic, NotAnswered."""
    partitions = len(admin.partitions([topic]))
    if partitions != 1:
        raise UnfitTopic(
            f"topic {topic!r} has {partitions} partitions, and records keep their order in one"
        )
    found = admin.settings_of([topic])[topic] if must else {}
    for name, value in must.items():
        if found.get(name) != value:
            raise UnfitTopic(f"topic {topic!r}: {name} is {found.get(name)}: set it to {value}")


class KafkaContinuedTopic:
    """See ``ContinuedTopic``. A log's offsets can't be chosen, so it is filled with empty records
    up to the offset at which it is to begin, and then cut there: nobody reads them."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        """``settings`` are those of ``[kafka]``. Asks nothing yet."""
        self._settings, self._topic = settings, topic
        self._source = TopicPartition(topic, 0)
        self._admin = Admin(settings)

    def lacks(self, at: int) -> int:
        """See ``ContinuedTopic``."""
        try:
            _, sources = self._admin.described([self._topic])[self._topic]
        except TopicMissing:
            return at
        if len(sources) != 1:
            raise UnfitTopic(
                f"topic {self._topic!r} has {counted(len(sources), 'partition')} there, not one"
            )
        log = self._watermarks()
        if log.high > at:
            raise UnfitTopic(
                f"topic {self._topic!r} is there already, and holds {log.low}..{log.high}, beyond "
                f"{at}: somebody writes it. Remove it there, if nobody needs it"
            )
        if log.low < log.high:
            self._check_empty(log)
        return at - log.high

    def _check_empty(self, log: Watermarks) -> None:
        """What it holds are empty records of an earlier attempt."""
        reader = LogReader({**self._settings, "isolation.level": "read_uncommitted"})
        for record in reader.read(self._source, log.low, log.high - 1):
            if record.key is not None or record.value is not None:
                raise UnfitTopic(
                    f"topic {self._topic!r} is there already, and {record.offset} is a record of "
                    "somebody else. Remove it there, if nobody needs it"
                )

    def begin(
        self, at: int, settings: Mapping[str, str], tell: Callable[[int], None] = lambda _: None
    ) -> str:
        """See ``ContinuedTopic``."""
        left = self.lacks(at)
        self._admin.make(self._topic, settings)
        # One that was created a moment ago is not known everywhere yet.
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        when_settled(self._watermarks, deadline)
        self._fill(left, tell)
        log = self._watermarks()
        if log.high > at:
            raise UnfitTopic(
                f"topic {self._topic!r} ends at {log.high}, and not at {at}: somebody writes it"
            )
        if log.high < at:
            raise NotAnswered(
                f"topic {self._topic!r} ends at {log.high} so far, and is to begin at {at}: "
                "the broker did not take all", away=True,
            )  # fmt: skip
        self._cut(at)
        return self._admin.ids([self._topic])[self._topic]

    def _watermarks(self) -> Watermarks:
        return self._admin.watermarks([self._source])[self._source]

    def _fill(self, count: int, tell: Callable[[int], None]) -> None:
        """Write so many empty records; the log's end says how many arrived."""
        if not count:
            return
        producer = Producer({
            **connection_settings(self._settings),
            "enable.idempotence": True,
            "linger.ms": 50,
            "batch.num.messages": 100_000,
            "batch.size": 900_000,
            "queue.buffering.max.messages": 500_000,
            "compression.type": "lz4",
        })  # fmt: skip
        done = 0
        while done < count:
            records: list[dict[str, Any]] = [{} for _ in range(min(_AT_ONCE, count - done))]
            try:
                taken = producer.produce_batch(self._topic, records, partition=0)
            except KafkaException as error:
                raise NotAnswered(error.args[0].str(), away=False) from error
            producer.poll(0 if taken else 0.05)
            if (done + taken) // _TELL_EVERY > done // _TELL_EVERY:
                tell(done + taken)
            done += taken
        producer.flush(_FLUSH_WITHIN_S)

    def _cut(self, at: int) -> None:
        """Remove what is below."""
        if self._watermarks().low == at:
            return
        client = AdminClient(connection_settings(self._settings))
        with asking("DELETE"):
            place = KafkaPartition(self._topic, 0, at)
            (answer,) = client.delete_records(
                [place], request_timeout=ANSWER_TIMEOUT_S, operation_timeout=ANSWER_TIMEOUT_S
            ).values()
            answer.result(2 * ANSWER_TIMEOUT_S)
