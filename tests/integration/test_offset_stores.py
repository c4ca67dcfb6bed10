"""The daemon on other stores than the default ones: it finds its positions again, or replays."""

from __future__ import annotations

from typing import Any

import pytest

from daemon.app.startup import Unusable
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from settings.exit import Exit
from sources.base.topic_selection import TopicSelection
from sources.kafka.commit_store import KafkaCommitStore
from sources.kafka.topic_store import KafkaTopicStore
from tests.integration.rig import Rig, canal


def insert(rig: Rig, *ids: int) -> None:
    rig.produce(*[canal(f"{rig.db}.t", "INSERT", [{"id": n, "name": "x", "qty": n}]) for n in ids])


def origins(rig: Rig) -> list[Any]:
    """Whose word each start was."""
    return [event["origin"] for event in rig.events("start_position")]


def committed(rig: Rig) -> int | None:
    """The group's commit."""
    settings = {"bootstrap.servers": rig.broker.bootstrap}
    store = KafkaCommitStore(settings, TopicSelection((rig.topic,)), "p", f"g-{rig.db}")
    store.start()
    found = store.get().snapshot
    store.stop()
    return None if found is None else found.partitions[TopicPartition(rig.topic, 0)].frontier


def in_topic(rig: Rig, topic: str) -> Snapshot | None:
    settings = {"bootstrap.servers": rig.broker.bootstrap}
    store = KafkaTopicStore(settings, topic, "p", f"g-{rig.db}")
    store.start()
    found = store.get().snapshot
    store.stop()
    return found


def run_twice(rig: Rig, stores: list[str]) -> None:
    """Two runs with changes before each; every row is there, once."""
    more = {"offset_stores": stores, "offset_topic": f"offsets-{rig.db}", "mode": "append"}
    config = rig.write_config(p=rig.pipeline(**more))
    insert(rig, 1, 2)
    assert rig.run(config) is Exit.OK
    insert(rig, 3)
    assert rig.run(config) is Exit.OK
    found = rig.spark.sql(f"SELECT id FROM lake.`{rig.db}`.t ORDER BY id").collect()
    assert [row.id for row in found] == [1, 2, 3]


def test_positions_in_a_topic_alone(rig: Rig) -> None:
    """No file, no commit: the second run goes on where the topic says."""
    run_twice(rig, ["kafka-topic"])
    assert origins(rig) == ["configured: earliest", "file"]
    assert committed(rig) is None
    found = in_topic(rig, f"offsets-{rig.db}")
    assert found is not None
    assert found.partitions[TopicPartition(rig.topic, 0)].frontier == 3
    assert found.targets[f"lake.{rig.db}.t"].hwms == {TopicPartition(rig.topic, 0): 2}
    assert not (rig.folder / "state" / "p.offsets.json").exists()


def test_all_stores_in_their_order(rig: Rig) -> None:
    """Each holds the frontier at the end, the group's commit too."""
    run_twice(rig, ["file", "kafka-topic", "kafka-commit"])
    source = TopicPartition(rig.topic, 0)
    found = in_topic(rig, f"offsets-{rig.db}")
    assert found is not None
    assert rig.snapshot().partitions[source].frontier == 3
    assert (found.partitions[source].frontier, committed(rig)) == (3, 3)


def test_a_lost_file_is_recovered_from_the_topic(rig: Rig) -> None:
    """A new machine with nothing but the configuration."""
    run_twice(rig, ["file", "kafka-topic"])
    (rig.folder / "state" / "p.offsets.json").unlink()
    (rig.folder / "state" / "p.offsets.previous.json").unlink()
    run_again = rig.folder / "config.toml"
    assert rig.run(run_again) is Exit.OK
    assert rig.events("assigned")[-1]["start"] == 3
    assert rig.snapshot().partitions[TopicPartition(rig.topic, 0)].frontier == 3


@pytest.mark.parametrize("stores", [["memory"], ["kafka-commit"]])
def test_without_a_snapshot_the_marks_drop_what_is_read_again(rig: Rig, stores: list[str]) -> None:
    """Memory forgets and the log is read from its start; nothing is applied twice."""
    run_twice(rig, stores)
    expected = "configured: earliest" if stores == ["memory"] else "broker"
    assert origins(rig) == ["configured: earliest", expected]
    assert committed(rig) == (None if stores == ["memory"] else 3)


def test_a_topic_that_is_not_compacted_stops_the_start(rig: Rig) -> None:
    """One line, before Spark."""
    rig.create_topic(f"offsets-{rig.db}")
    more = {"offset_stores": ["kafka-topic"], "offset_topic": f"offsets-{rig.db}"}
    with pytest.raises(Unusable, match=r"^pipeline\.p: kafka-topic: .* cleanup\.policy=delete"):
        rig.run(rig.write_config(p=rig.pipeline(**more)))
