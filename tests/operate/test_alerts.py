"""The alerts caused for real: a daemon with what goes wrong, and a Prometheus that scrapes it."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from demo.broker import DevBroker
from tests.deploy.prometheus_server import Prometheus
from tests.integration.rig import Rig, ddl
from tests.integration.test_process import CHECKOUT
from tests.operate.watched import World

pytestmark = pytest.mark.integration

DASHBOARD = CHECKOUT / "deploy/grafana/binlogd.json"

ALERTS_OF_A_STANDSTILL = (
    "BinlogdLagGrowing", "BinlogdNothingWritten", "BinlogdFrontierHeld", "BinlogdTargetFailing",
    "BinlogdRetentionHalf", "BinlogdRetentionLow",
)  # fmt: skip


@pytest.fixture
def world(fragile_rig: Rig) -> Iterator[World]:
    with watched(World(fragile_rig)) as made:
        yield made


@contextmanager
def watched(made: World) -> Iterator[World]:
    """The daemon and its Prometheus run."""
    made.start()
    made.prometheus.start()
    try:
        yield made
    finally:
        made.prometheus.stop()
        if made.daemon is not None:
            made.daemon.kill()
            print(made.daemon.communicate()[1])


@pytest.fixture
def fragile_rig(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """With a broker that the test may kill."""
    with DevBroker(tmp_path_factory.mktemp("alerts-broker")) as broker:
        yield Rig(broker, lambda: pytest.fail("no Spark here"), {}, tmp_path)


def _a_good_morning(world: World) -> None:
    """A certificate that ends tomorrow is told at once, and nothing else is."""
    see = world.prometheus
    for _ in range(20):
        world.insert()
    see.until(lambda: see.series('binlogd_target_rows_written_total{pipeline="p"} == 20') != [])
    see.fire("BinlogdCredentialEnds", "BinlogdCredentialEndsSoon")
    assert see.firing() == {"BinlogdCredentialEnds", "BinlogdCredentialEndsSoon"}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_page_and_two_tickets_are_told_and_their_ends_too(world: World) -> None:
    """The core of what follows."""
    _a_good_morning(world)
    _records_and_tables(world)
    world.stop()
    world.prometheus.fire("BinlogdDown")
    world.start()
    world.prometheus.end("BinlogdDown")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_only_pipeline_that_stops_is_told_while_its_daemon_stays(fragile_rig: Rig) -> None:
    """No alert says that the daemon is down: it is up, and a reload starts the pipeline again."""
    with watched(World(fragile_rig, single=True)) as world:
        _a_good_morning(world)
        see = world.prometheus
        world.rig.produce(b"{")
        see.fire("BinlogdPipelineFailed")
        see.fire("BinlogdNotReady")
        assert "BinlogdDown" not in see.firing()
        world.dead_letters()
        world.command("reload")
        see.end("BinlogdPipelineFailed", "BinlogdNotReady")
        world.insert()
        see.until(lambda: see.series('binlogd_target_rows_written_total{pipeline="p"} == 1') != [])


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_each_cause_is_told_and_its_end_too(world: World) -> None:
    """One daemon's bad day, cause by cause."""
    see = world.prometheus
    _a_good_morning(world)
    _records_and_tables(world)
    _standstill(world)
    _stores(world)
    _a_pipeline_that_failed(world)
    _dashboard(see)
    _broker_away(world)
    world.stop()
    _events(world)
    see.fire("BinlogdDown")
    world.start()
    see.end("BinlogdDown")


def _records_and_tables(world: World) -> None:
    see = world.prometheus
    world.rig.produce(b"{")
    see.fire("BinlogdDeadLetters")
    world.insert("u")
    see.until(lambda: see.series('binlogd_target_rows_written_total{target=~".*u"} == 1') != [])
    world.sql(f'CREATE UNIQUE INDEX one_name ON "{world.rig.db}.u" (name)')
    world.insert("u")
    see.fire("BinlogdQuarantine")
    world.sql("DROP INDEX one_name")
    world.command("tables", "retry", f"copy.{world.rig.db}.u")
    narrower = "ALTER TABLE t MODIFY COLUMN qty int"
    world.rig.produce(ddl(f"{world.rig.db}.t", "ALTER", narrower))
    see.end("BinlogdDeadLetters", "BinlogdQuarantine")
    see.fire("BinlogdRowsMayDiffer")


def _standstill(world: World) -> None:
    """Another program holds the file: nothing can be written, until it lets go."""
    see = world.prometheus
    file = sqlite3.connect(world.file, isolation_level=None)
    file.execute("BEGIN EXCLUSIVE")
    for _ in range(10):
        world.insert()
    see.fire(*ALERTS_OF_A_STANDSTILL, within_s=180)
    place = TopicPartition(world.rig.topic, 0, -1)
    for answer in world.admin.delete_records([place]).values():
        answer.result(20)
    see.fire("BinlogdChangesLost")
    file.execute("ROLLBACK")
    file.close()
    world.insert()
    # What was read before is written: the start of the log was passed by nothing that was not read.
    see.end(*ALERTS_OF_A_STANDSTILL, "BinlogdChangesLost", within_s=180)


def _stores(world: World) -> None:
    """A folder stands where the file of positions is made."""
    see = world.prometheus
    in_the_way = world.rig.folder / "state" / "p.offsets.json.new"
    in_the_way.unlink(missing_ok=True)
    in_the_way.mkdir()
    world.insert()
    see.fire("BinlogdOffsetStoreFailing")
    in_the_way.rmdir()
    see.end("BinlogdOffsetStoreFailing")


def _a_pipeline_that_failed(world: World) -> None:
    """A record that can't be read, which a reset leaves behind."""
    see = world.prometheus
    world.rig.produce(b"{", topic=world.other)
    see.fire("BinlogdPipelineFailed")
    world.command(
        "offsets", "reset", "--pipeline", "q", "--to", "offset", "--at", "1",
        "--force", "--execute",
    )  # fmt: skip
    see.end("BinlogdPipelineFailed")


def _broker_away(world: World) -> None:
    see = world.prometheus
    world.rig.broker.kill()
    see.fire("BinlogdBrokerUnreachable", "BinlogdLagUnknown", "BinlogdNotReady", within_s=180)
    world.rig.broker.start()
    see.end("BinlogdBrokerUnreachable", "BinlogdLagUnknown", "BinlogdNotReady", within_s=180)


def _events(world: World) -> None:
    """Those without Prometheus were told the same, as far as it lasted for a while."""
    lines = (world.rig.folder / "events.jsonl").read_text().splitlines()
    told = {(event["event"], event["kind"]) for event in map(json.loads, lines)}
    assert told >= {
        ("begun", "dead_letters"), ("begun", "rows_may_differ"), ("begun", "retention"),
        ("ended", "retention"),
    }  # fmt: skip


def _dashboard(see: Prometheus) -> None:
    """Each expression of each panel gives series."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    empty = []
    for panel in panels:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "5m")
            for variable in ("$instance", "$pipeline"):
                expression = expression.replace(variable, ".*")
            assert not re.search(r"\$\w", expression), expression
            if not see.series(expression):
                empty.append(f"{panel['title']}: {expression}")
    assert empty == []
