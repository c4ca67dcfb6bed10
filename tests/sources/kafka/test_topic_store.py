"""The compacted topic: its policy, its records, compaction itself, other members."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from demo.broker import DevBroker
from offsets import position
from offsets.store import Loaded, StoreError
from sources.kafka.topic_store import KafkaTopicStore
from tests.daemon.state.kits import GROUP, PIPELINE, TopicKit, batch

pytestmark = pytest.mark.integration
WITHIN_S = 30.0


@pytest.fixture
def kit(store_broker: DevBroker) -> TopicKit:
    """A topic of the test's own, not made yet."""
    return TopicKit(store_broker.bootstrap)


def admin(kit: TopicKit) -> AdminClient:
    """Kept by the kit: without its client an answer that is waited for never comes."""
    if kit.admin is None:
        kit.admin = AdminClient(kit.settings)
    return kit.admin


def configured(kit: TopicKit) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, kit.offset_topic)
    found = admin(kit).describe_configs([resource])[resource].result(20)
    return {name: entry.value for name, entry in found.items()}


def alter(kit: TopicKit, kind: ResourceType, name: str, **settings: str) -> None:
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin(kit).incremental_alter_configs([resource])[resource].result(20)


def make_topic(kit: TopicKit, **config: str) -> None:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    new = NewTopic(kit.offset_topic, 1, 1, config=settings)
    admin(kit).create_topics([new])[kit.offset_topic].result(20)


def write(kit: TopicKit, key: str, value: str | None) -> None:
    """A record by another hand."""
    producer = Producer(kit.settings)
    producer.produce(kit.offset_topic, value, key)
    assert producer.flush(WITHIN_S) == 0


def records(kit: TopicKit) -> list[tuple[bytes, bytes | None]]:
    """All that stands in the topic."""
    consumer = Consumer({**kit.settings, "group.id": "look", "enable.partition.eof": True})
    consumer.assign([TopicPartition(kit.offset_topic, 0, OFFSET_BEGINNING)])
    found: list[tuple[bytes, bytes | None]] = []
    while (message := consumer.poll(WITHIN_S)) is not None and message.error() is None:
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        assert not isinstance(value, str)
        found.append((key, value))
    consumer.close()
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == KafkaError._PARTITION_EOF
    return found


def started(kit: TopicKit) -> KafkaTopicStore:
    store = kit.make()
    store.start()
    return store


def frontier(found: Loaded, number: int) -> int | None:
    assert found.snapshot is not None
    state = found.snapshot.partitions.get(position.TopicPartition(kit_topic, number))
    return None if state is None else state.frontier


kit_topic = TopicKit.topic


def test_a_missing_topic_is_made_compacted_with_one_partition(kit: TopicKit) -> None:
    """By age its records would go, and positions with them."""
    store = started(kit)
    assert configured(kit)["cleanup.policy"] == "compact"
    found = admin(kit).list_topics(kit.offset_topic, timeout=20).topics[kit.offset_topic]
    assert len(found.partitions) == 1
    store.stop()


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_that_is_not_compacted_is_refused_by_name(kit: TopicKit, policy: str) -> None:
    """Somebody made it by hand, or the broker by itself."""
    make_topic(kit, cleanup_policy=policy)
    with pytest.raises(
        StoreError, match=rf"^kafka-topic: topic '{kit.offset_topic}' .*cleanup\.policy=.*delete"
    ):
        kit.make().start()


def test_members_that_start_together_make_one_topic(kit: TopicKit) -> None:
    """Who comes second finds it made."""
    stores = [kit.make() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(store.start) for store in stores]:
            future.result(WITHIN_S)
    stores[0].set(batch(kit.topic, {0: 5})).result(WITHIN_S)
    assert [frontier(store.get(), 0) for store in stores] == [5] * 4
    for store in stores:
        store.stop()


def test_a_tombstone_takes_an_entry_away(kit: TopicKit) -> None:
    """At once, and for those that start later; the set of the others is not undone."""
    store = started(kit)
    store.set(batch(kit.topic, {0: 5, 1: 7})).result(WITHIN_S)
    write(kit, f'["{PIPELINE}","{GROUP}","partition","{kit.topic}:1"]', None)
    assert (frontier(store.get(), 0), frontier(store.get(), 1)) == (5, None)
    later = started(kit)
    assert (frontier(later.get(), 0), frontier(later.get(), 1)) == (5, None)
    store.set(batch(kit.topic, {1: 7})).result(WITHIN_S)
    assert frontier(later.get(), 1) == 7
    store.stop()
    later.stop()


@pytest.mark.timeout(120)
def test_compaction_leaves_the_newest_of_each(kit: TopicKit) -> None:
    """The log shrinks under a running store; who starts afterwards reads the same."""
    store = started(kit)
    alter(kit, ResourceType.BROKER, "1", log_cleaner_backoff_ms="200")
    alter(
        kit, ResourceType.TOPIC, kit.offset_topic,
        segment_ms="100", min_cleanable_dirty_ratio="0.001", delete_retention_ms="1",
        min_compaction_lag_ms="0",
    )  # fmt: skip
    for n in range(60):
        store.set(batch(kit.topic, {0: n, 1: 2 * n})).result(WITHIN_S)
    write(kit, f'["{PIPELINE}","{GROUP}","partition","{kit.topic}:1"]', None)
    deadline = time.monotonic() + 90
    n = 60
    while len(records(kit)) > 30:
        # Compaction is the broker's own doing: a segment is closed by the next record.
        assert time.monotonic() < deadline, len(records(kit))
        threading.Event().wait(0.5)
        store.set(batch(kit.topic, {0: n})).result(WITHIN_S)
        n += 1
    later = started(kit)
    assert later.get() == store.get()
    assert (frontier(later.get(), 0), frontier(later.get(), 1)) == (n - 1, None)
    store.stop()
    later.stop()


def test_pipelines_and_groups_share_a_topic_without_meeting(kit: TopicKit) -> None:
    """The keys tell them apart; what is no entry of ours is left alone."""
    store = started(kit)
    other = KafkaTopicStore(kit.settings, kit.offset_topic, "stock", GROUP)
    other.start()
    store.set(batch(kit.topic, {0: 5})).result(WITHIN_S)
    write(kit, "something else", "x")
    write(kit, '["shop"]', "x")
    assert other.get() == Loaded(None)
    assert store.get() == Loaded(batch(kit.topic, {0: 5}))
    store.stop()
    other.stop()


@pytest.mark.parametrize(
    ("value", "said"),
    [("{", "Input data was truncated"), ('{"version":9}', "version 9, this binlogd reads 1"),
     ('{"version":1,"frontier":"x","confirmed":null}', "Expected `int`")],
)  # fmt: skip
def test_a_damaged_entry_is_told_with_its_place(kit: TopicKit, value: str, said: str) -> None:
    """The other entries stand; the next set repairs it."""
    store = started(kit)
    store.set(batch(kit.topic, {0: 5, 1: 7})).result(WITHIN_S)
    write(kit, f'["{PIPELINE}","{GROUP}","partition","{kit.topic}:1"]', value)
    found = store.get()
    (damage,) = found.damage
    assert damage.startswith(f"{kit.offset_topic}:0 offset ")
    assert said in damage
    assert (frontier(found, 0), frontier(found, 1)) == (5, None)
    store.set(batch(kit.topic, {1: 7})).result(WITHIN_S)
    assert (store.get().damage, frontier(store.get(), 1)) == ((), 7)
    store.stop()


def test_only_what_is_new_is_written(kit: TopicKit) -> None:
    """A commit every 5 s with thousands of targets must not write them all."""
    store = started(kit)
    store.set(batch(kit.topic, {0: 5, 1: 7})).result(WITHIN_S)
    store.get()
    before = len(records(kit))
    store.set(batch(kit.topic, {0: 6, 1: 7})).result(WITHIN_S)
    keys = [key for key, _ in records(kit)[before:]]
    assert [key.split(b'"')[5] for key in keys] == [b"partition", b"target"]
    store.stop()


def test_an_old_mark_is_not_written_over_another_members_new_one(kit: TopicKit) -> None:
    """Both publish into one target: who has nothing new of it to say is silent."""
    store = started(kit)
    store.set(batch(kit.topic, {0: 5})).result(WITHIN_S)
    other = started(kit)
    other.set(batch(kit.topic, {0: 9})).result(WITHIN_S)
    old = batch(kit.topic, {0: 5})
    more = batch(kit.topic, {1: 1})
    store.set(type(old)(PIPELINE, GROUP, old.topic_ids, more.partitions, old.targets)).result(
        WITHIN_S
    )
    found = other.get().snapshot
    assert found is not None
    assert found.targets["lake.s.t0"].version == "v9"
    store.stop()
    other.stop()


def test_a_topic_made_again_under_a_running_store_is_told(kit: TopicKit) -> None:
    """What the old one said is not there; recording on as if it were would lose the rest."""
    store = started(kit)
    for n in range(5):
        store.set(batch(kit.topic, {0: n, 1: 7})).result(WITHIN_S)
    store.get()
    admin(kit).delete_topics([kit.offset_topic])[kit.offset_topic].result(20)
    deadline = time.monotonic() + WITHIN_S
    while kit.offset_topic in admin(kit).list_topics(timeout=20).topics:
        assert time.monotonic() < deadline  # each look is a question to the broker
    make_topic(kit, cleanup_policy="compact")
    said: list[str] = []
    while not any("recreated" in text for text in said):
        # Until all of the broker knows the new one, its answers vary.
        assert time.monotonic() < deadline, said
        error = store.set(batch(kit.topic, {0: time.monotonic_ns()})).exception(WITHIN_S)
        said += [str(error)] if error else []
    with pytest.raises(StoreError, match=f"topic '{kit.offset_topic}' .* recreated"):
        store.get()
    store.stop()
