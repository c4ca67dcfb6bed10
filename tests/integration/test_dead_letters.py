"""Poison records on the real broker: stored and passed over, in a file or in a topic."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition

from daemon.lifecycle import Exit
from offsets.position import TopicPartition
from tests.integration.rig import Rig, canal


def poisoned(rig: Rig) -> None:
    """Good rows with a record without a key and one that is no message between them."""
    t = f"{rig.db}.orders"
    rig.produce(
        canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        canal(t, "INSERT", [{"name": "no key"}]),
        b"garbage",
        canal(t, "INSERT", [{"id": 2, "name": "b", "qty": 2}]),
    )


def letters(rig: Rig) -> list[dict[str, Any]]:
    path = rig.folder / "state" / "p.dead-letters.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_poison_records_are_stored_and_the_rest_goes_on(rig: Rig) -> None:
    """Those that name no table too; the frontier is behind all of them."""
    poisoned(rig)
    config = rig.write_config(p=rig.pipeline(on_bad_record="dead-letter"))
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [(1, "a", 1), (2, "b", 2)]
    assert sorted(letter["offset"] for letter in letters(rig)) == [1, 2]
    assert rig.snapshot().partitions[TopicPartition(rig.topic, 0)].frontier == 4


def test_poison_records_go_to_a_topic_as_they_were(rig: Rig) -> None:
    """With their place and the reason as headers."""
    poisoned(rig)
    topic = f"{rig.topic}-dead"
    rig.create_topic(topic)
    config = rig.write_config(
        p=rig.pipeline(on_bad_record="dead-letter", dead_letters=f"topic:{topic}")
    )
    assert rig.run(config) is Exit.OK
    consumer = Consumer({"bootstrap.servers": rig.broker.bootstrap, "group.id": "reads-letters"})
    consumer.assign([KafkaPartition(topic, 0, 0)])
    found = consumer.consume(2, 20)
    consumer.close()
    by_offset = {dict(m.headers() or ())["binlogd.offset"]: m for m in found}
    assert by_offset.keys() == {b"1", b"2"}
    assert by_offset[b"2"].value() == b"garbage"
    assert b"not a Canal message" in dict(by_offset[b"2"].headers() or ())["binlogd.reason"]


def test_too_many_bad_records_stop_the_pipeline(rig: Rig) -> None:
    """And nothing passes the one that was too many."""
    rig.produce(*[b"garbage"] * 5)
    section = rig.pipeline(on_bad_record="dead-letter", max_bad_records_per_hour=3)
    assert rig.run(rig.write_config(p=section)) is Exit.PIPELINE_FAILED
    assert "too many bad records" in rig.stderr
    assert len(letters(rig)) == 3
    assert rig.snapshot().partitions[TopicPartition(rig.topic, 0)].frontier <= 3
