"""A pipeline is stopped, changed and started again inside a daemon that goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from daemon.admin.logs import set_up_logs
from daemon.config.file import load
from daemon.state.edits import Change
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from settings.exit import Exit
from sources.base.port import NotAnswered
from sources.kafka.admin import Admin
from tests.integration.rig import Rig, canal
from tests.integration.test_group import Gated, Log, Member


class Edited(Member):
    """A daemon in this process whose pipelines are edited."""

    def edit(self, pipeline: str, change: Change) -> Future[None]:
        return self._service.edit(pipeline, change)


@pytest.fixture
def log(rig: Rig) -> Iterator[Log]:
    made = Log(rig.log_file)
    yield made
    made.close()


def insert(rig: Rig, *keys: int, table: str = "orders") -> list[bytes]:
    rows = ({"id": key, "name": f"n{key}", "qty": key} for key in keys)
    return [canal(f"{rig.db}.{table}", "INSERT", [row]) for row in rows]


def two_pipelines(rig: Rig) -> Path:
    """``p`` on the rig's topic and ``q`` on another, each with a changelog."""
    rig.create_topic(f"{rig.topic}-q")
    other = rig.pipeline(
        topics=[f"{rig.topic}-q"], group=f"q-{rig.db}", target="lake.{database}.q_{table}"
    )
    return rig.write_config(p=rig.pipeline(target=f"lake.{rig.db}.log", mode="append"), q=other)


@pytest.mark.timeout(300)
def test_one_pipeline_starts_again_and_the_other_never_stops(rig: Rig, log: Log) -> None:
    """The other writes while it is stopped; its changelog has each offset once over both lives."""
    config = two_pipelines(rig)
    set_up_logs(load(config).log)
    rig.produce(*insert(rig, 1, 2))
    member = Edited(rig, config)
    log.written(f"lake.{rig.db}.log")
    seen: list[Snapshot] = []

    def look(snapshot: Snapshot) -> Snapshot:
        seen.append(snapshot)
        rig.produce(*insert(rig, 1), topic=f"{rig.topic}-q")
        log.written(f"lake.{rig.db}.q_orders")
        return snapshot

    member.edit("p", look).result(120)
    rig.produce(*insert(rig, 3))
    log.of("p", "assigned", start=2)
    log.written(f"lake.{rig.db}.log")
    assert member.stop() is Exit.OK
    assert seen[0].partitions[TopicPartition(rig.topic, 0)].frontier == 2
    offsets = rig.spark.sql(f"SELECT _offset FROM lake.`{rig.db}`.log ORDER BY 1").collect()
    assert [row[0] for row in offsets] == [0, 1, 2]
    assert [row[0] for row in rig.rows("q_orders")] == [1]
    assert [event["pipeline"] for event in rig.events("assigned")].count("q") == 1


def away_once(ask: Callable[..., Any]) -> Callable[..., Any]:
    """The question, to which at first nobody answers."""
    errors = [NotAnswered("no Kafka broker answers", away=True)]

    def asked(*about: object) -> Any:
        if errors:
            raise errors.pop()
        return ask(*about)

    return asked


@pytest.mark.timeout(300)
def test_a_broker_that_is_away_for_a_moment_ends_no_pipeline_that_is_changed(
    rig: Rig, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again: else the pipeline would stand still for good, and be the daemon's end."""
    config = rig.write_config(p=rig.pipeline())
    set_up_logs(load(config).log)
    rig.produce(*insert(rig, 1))
    member = Edited(rig, config)
    log.of("p", "assigned")
    log.wait_for("written")
    monkeypatch.setattr(Admin, "selected", away_once(Admin.selected))
    monkeypatch.setattr(Admin, "reach", away_once(Admin.reach))
    member.edit("p", lambda snapshot: snapshot).result(90)
    rig.produce(*insert(rig, 2))
    log.of("p", "assigned", start=1)
    log.wait_for("written")
    assert member.stop() is Exit.OK
    assert len(rig.events("broker_away")) == 2


@pytest.mark.timeout(300)
def test_an_edit_waits_for_a_write_that_outlives_the_drain(rig: Rig, log: Log) -> None:
    """Its answer must not reach the actors of the next life, which know nothing of it."""
    config = rig.write_config()
    config.write_text(config.read_text().replace("drain_timeout_s = 60", "drain_timeout_s = 1"))
    set_up_logs(load(config).log)
    rig.produce(*insert(rig, 1, 2))
    tier = Gated(rig)
    member = Edited(rig, config, tier)
    assert tier.begun.acquire(timeout=90)
    seen: list[Snapshot] = []

    def look(snapshot: Snapshot) -> Snapshot:
        assert tier.gate.is_set()
        seen.append(snapshot)
        return snapshot

    done = member.edit("p", look)
    log.wait_for("drain_deadline_passed")
    assert not done.done()
    tier.gate.set()
    done.result(90)
    rig.produce(*insert(rig, 3))
    log.of("p", "assigned", start=0)
    log.wait_for("replay_dropped")
    log.wait_for("written")
    assert member.stop() is Exit.OK
    assert seen[0].partitions[TopicPartition(rig.topic, 0)].frontier == 0
    assert [row[0] for row in rig.rows("orders")] == [1, 2, 3]
