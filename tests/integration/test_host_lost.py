"""The machine is gone with its disk: docs/runbook/host-lost.md, from Kafka and the sink alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from demo.broker import DevBroker
from tests.integration.test_process import ended
from tests.upgrade.history import TOPIC, World, insert, make

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    with DevBroker(tmp_path_factory.mktemp("lost-broker")) as started:
        yield started


@pytest.fixture
def world(broker: DevBroker, tmp_path: Path) -> Iterator[World]:
    """A table with rows, one in quarantine with a spill, an open dead letter in a file, a job that
    has begun; then the daemon is killed, and its disk is gone. The file of tables is elsewhere."""
    made = World(tmp_path, broker)
    make(made)
    with made.running() as (process, _):
        made.produce(*insert("t", 31))
        process.kill()
    made.command("tables", "rebuild", "copy.shop.t")
    letters = json.loads(made.command("dead-letters", "list", "--json"))
    assert sorted(letter["state"] for letter in letters) == ["open", "replayed"]
    for folder in ("state", "staging"):
        shutil.rmtree(tmp_path / folder)
    yield made
    made.remove()


def keys(world: World, table: str) -> list[object]:
    return [row[0] for row in world.sql(f'SELECT id FROM "shop.{table}" ORDER BY id')]


def events(world: World, name: str) -> list[dict[str, str]]:
    lines = (world.folder / "binlogd.log").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == name]


def test_the_log_and_the_sink_have_all_but_letters_and_jobs(world: World) -> None:
    """The group's commit is at the first spilled message, so a spill is made again from the log.
    What is gone is said at the start."""
    checked = world.start("check-config", "--connect").communicate(timeout=120)[1]
    assert "pipeline.p: its group has read binlog-shop:0 up to 35, and nothing is" in checked
    assert ended(world.start("run", "--until-caught-up"), 180) == (0, "")
    (said,) = events(world, "start_position")
    assert "no local file" in said["remark"]
    assert "so were the dead letters in its files, and jobs" in said["remark"]
    listed = world.command("tables", "list")
    assert "copy.shop.u" in listed
    assert "quarantined" in listed
    assert json.loads(world.command("dead-letters", "list", "--json")) == []
    assert json.loads(world.command("jobs", "list", "--json")) == []
    world.sql("DROP INDEX one_name")
    with world.running() as (_, log):
        world.produce(*insert("t", 32), *insert("u", 5))
        world.command("tables", "retry", "copy.shop.u")
        log.wait_for("released")
    assert ended(world.start("run", "--until-caught-up"), 180) == (0, "")
    assert keys(world, "t") == [*range(33)]
    assert keys(world, "u") == [*range(6)]
    assert keys(world, "v") == [1]
    offsets = [row[0] for row in world.sql('SELECT _offset FROM "shop.t_log"')]
    assert len(offsets) == len(set(offsets)) == 33


def test_a_spill_that_the_log_has_no_more_is_named(world: World) -> None:
    """Nothing is read on above what is missing."""
    place = TopicPartition(TOPIC, 0, 37)
    admin = AdminClient({"bootstrap.servers": world.broker.bootstrap})
    admin.delete_records([place])[place].result(20)
    status, said = ended(world.start("run", "--until-caught-up"), 180)
    assert status == 1
    assert "the position 35 (broker) is outside the log, which holds 37.." in said
    assert "the changes between are gone from Kafka" in said
    assert keys(world, "u") == [0]
