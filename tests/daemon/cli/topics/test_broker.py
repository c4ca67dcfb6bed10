"""``binlogd topics peek`` on a real broker: it ends, and leaves nothing behind."""

from __future__ import annotations

import json
import uuid

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from demo.broker import DevBroker


def offsets(topic: str, *words: str) -> list[int]:
    done = CliRunner().invoke(app, ["topics", "peek", topic, "--json", *words])
    assert done.exit_code == 0, done.output
    return [each["offset"] for each in json.loads(done.stdout)]


def test_committed_records_alone_are_shown_and_an_open_transaction_is_not_waited_for(
    store_broker: DevBroker,
) -> None:
    """Offsets 0 to 2, one of the commit, 4 and 5 that are taken back, and 7, which is open."""
    broker, topic = store_broker.bootstrap, f"peek-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    producer = Producer({"bootstrap.servers": broker, "transactional.id": topic})
    producer.init_transactions(30)
    for count, end in ((3, producer.commit_transaction), (2, producer.abort_transaction)):
        producer.begin_transaction()
        for n in range(count):
            producer.produce(topic, f"record {n}", partition=0)
        producer.flush(20)
        end(30)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    producer.flush(20)
    words = ("--broker", broker)
    assert offsets(topic, *words) == [0, 1, 2]
    assert offsets(topic, *words, "--from", "-2") == [1, 2]
    assert offsets(topic, *words, "--from", "earliest", "--count", "1") == [0]
    assert offsets(topic, *words, "--from", "5") == []
    assert offsets(topic, *words, "--from", "2000-01-01T00:00:00Z") == [0, 1, 2]
    producer.abort_transaction(30)
    groups = admin.list_consumer_groups().result(20).valid
    assert "binlogd-reads-again" not in {group.group_id for group in groups}
