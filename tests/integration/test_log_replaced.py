"""A log that was cut and has grown past the recorded position again is not taken for the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from demo.broker import DevBroker
from offsets.position import LogEpoch, TopicPartition
from offsets.snapshot import PartitionState
from settings.exit import Exit
from tests.integration.rig import Rig, canal

pytestmark = pytest.mark.long


@pytest.fixture
def own(lake_conf: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
    """A rig whose broker may be taken down."""
    with DevBroker(tmp_path / "broker") as broker:
        yield Rig(broker, lambda: request.getfixturevalue("spark"), lake_conf, tmp_path)


def insert(rig: Rig, *keys: int) -> list[bytes]:
    rows = ({"id": key, "name": f"n{key}", "qty": key} for key in keys)
    return [canal(f"{rig.db}.orders", "INSERT", [row]) for row in rows]


def test_a_broker_that_lost_its_disk_is_refused_by_the_leader_epoch(own: Rig) -> None:
    """Topic id and watermarks look right, and what lies below the position was never read."""
    own.produce(*insert(own, 1, 2))
    assert own.run() is Exit.OK
    source = TopicPartition(own.topic, 0)
    assert own.snapshot().partitions[source].log == LogEpoch(0, 2)
    own.broker.stop()
    shutil.rmtree(own.broker.data / "logs" / f"{own.topic}-0")
    own.broker.start()
    own.produce(*insert(own, 3, 4, 5))
    assert own.run() is Exit.PIPELINE_FAILED
    assert f"{source}: the log was cut below the recorded position 2" in own.stderr
    assert [row[0] for row in own.rows("orders")] == [1, 2]
    assert own.snapshot().partitions[source].frontier == 2


@pytest.mark.parametrize("in_transaction", [True, False])
def test_a_log_of_which_nothing_is_left_is_read_on(rig: Rig, in_transaction: bool) -> None:
    """Retention took all, the marker behind the last message too: that is no log that was cut."""
    produce = rig.produce_in_transaction if in_transaction else rig.produce
    produce(*insert(rig, 1, 2))
    assert rig.run() is Exit.OK
    source = TopicPartition(rig.topic, 0)
    (end,) = rig.log_ends(rig.topic).values()
    assert rig.snapshot().partitions[source] == PartitionState(end, end, LogEpoch(0, 2), begin=0)
    cut = KafkaPartition(rig.topic, 0, end)
    client = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
    client.delete_records([cut])[cut].result(20)
    produce(*insert(rig, 3))
    assert rig.run() is Exit.OK, rig.stderr
    assert [row[0] for row in rig.rows("orders")] == [1, 2, 3]


def test_a_broker_that_only_restarted_is_read_on(own: Rig) -> None:
    """Its leader epoch is another, the log is the same."""
    own.produce(*insert(own, 1, 2))
    assert own.run() is Exit.OK
    own.broker.stop()
    own.broker.start()
    own.produce(*insert(own, 3))
    assert own.run() is Exit.OK
    assert [row[0] for row in own.rows("orders")] == [1, 2, 3]
    log = own.snapshot().partitions[TopicPartition(own.topic, 0)].log
    assert log is not None
    assert log.epoch > 0
