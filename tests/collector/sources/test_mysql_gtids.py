"""A MySQL's GTIDs: with tags, in compressed transactions, and where their mode changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.broker import DevBroker
from tests.collector.running import Running, records, rows, running
from tests.collector.sources.test_mysql import made, mysql, source
from tests.live.mysql import MySql

__all__ = ["mysql"]
pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


def insert(name: str, *ids: int) -> str:
    return f"INSERT INTO {name}.t VALUES " + ",".join(f"({one}, 1)" for one in ids)


def keys(broker: DevBroker, name: str) -> list[int]:
    return [one["after"]["id"] for one in rows(broker, name, "t")]


def replace_worker(it: Running) -> None:
    starts = it.keeper.figures()[0].starts
    it.kill_worker()
    it.until(None, lambda _: it.keeper.figures()[0].starts > starts)


def test_tagged_and_compressed_transactions_are_there_once(
    tmp_path: Path, broker: DevBroker, mysql: MySql, name: str
) -> None:
    """Through a kill of the worker: with their GTIDs, and each row in its order."""
    made(mysql, name)
    with running(tmp_path, broker, source(mysql), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        wanted: list[int] = []
        for number in range(6):
            session = []
            if number % 2:
                session.append("SET gtid_next = 'AUTOMATIC:tag'")
            if number % 3:
                session.append("SET binlog_transaction_compression = ON")
            ids = range(4000 * number + 1, 4000 * number + 4001)
            wanted += ids
            statements = [insert(name, *ids[at : at + 500]) for at in range(0, 4000, 500)]
            assert not mysql.run([*session, "BEGIN", *statements, "COMMIT"])
            if number == 3:
                replace_worker(it)
        assert not mysql.run([insert(name, 0)])
        it.until("running", lambda _: keys(broker, name)[-1:] == [0])
        assert keys(broker, name) == [*wanted, 0]
        begun = [one["id"] for one in records(broker, name) if one.get("status") == "BEGIN"]
        assert any(":tag:" in one for one in begun)


@pytest.fixture
def modes(mysql: MySql) -> Iterator[MySql]:
    """A server whose mode is ON again afterwards."""
    yield mysql
    now = mysql.ask("SELECT @@gtid_mode").rows[0][0]
    steps = ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]
    turn(mysql, *steps[steps.index(now) + 1 :])


def turn(mysql: MySql, *steps: str) -> None:
    assert not mysql.run([f"SET GLOBAL gtid_mode = {step}" for step in steps])


def test_a_step_down_and_up_under_a_reader_is_nothing(
    tmp_path: Path, broker: DevBroker, modes: MySql, name: str
) -> None:
    """ON, ON_PERMISSIVE and ON: it reads on by GTIDs, and a restart afterwards repeats nothing."""
    made(modes, name)
    with running(tmp_path, broker, source(modes), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not modes.run([insert(name, 1)])
        it.until("running", lambda _: keys(broker, name) == [1])
        turn(modes, "ON_PERMISSIVE")
        assert not modes.run([insert(name, 2), insert(name, 3)])
        it.until("running", lambda _: keys(broker, name) == [1, 2, 3])
        turn(modes, "ON")
        assert not modes.run([insert(name, 4)])
        it.until("running", lambda _: keys(broker, name) == [1, 2, 3, 4])
        replace_worker(it)
        assert not modes.run([insert(name, 5)])
        it.until("running", lambda _: keys(broker, name) == [1, 2, 3, 4, 5])


def test_what_was_read_by_file_is_not_read_again_by_gtids(
    tmp_path: Path, broker: DevBroker, modes: MySql, name: str
) -> None:
    """ON, ON_PERMISSIVE, a restart there, and ON: Debezium has left the GTIDs of its position as
    they were, and is stopped by name before it goes by them. ON_PERMISSIVE leads out without a
    load; a reset leads to GTIDs."""
    made(modes, name)
    with running(tmp_path, broker, source(modes), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not modes.run([insert(name, 1), insert(name, 2)])
        it.until("running", lambda _: keys(broker, name) == [1, 2])
        turn(modes, "ON_PERMISSIVE")
        replace_worker(it)
        assert not modes.run([insert(name, 3), insert(name, 4), insert(name, 5)])
        it.until("running", lambda _: keys(broker, name) == [1, 2, 3, 4, 5])
        turn(modes, "ON")
        found = it.until("lost", lambda _: it.rest.state("binlogd-shop").connector == "STOPPED")
        assert "it was read by file" in found["reason"]
        assert not modes.run([insert(name, 6)])
        turn(modes, "ON_PERMISSIVE")
        shop = it.collectors.of("shop")
        assert shop is not None
        shop.hands.restart()
        it.until("running", lambda _: keys(broker, name) == [1, 2, 3, 4, 5, 6])
        assert not it.loads
        turn(modes, "ON")
        it.until("lost")
        shop.hands.reset()
        it.until("running", lambda _: bool(it.loads))
        assert not modes.run([insert(name, 7)])
        it.until("running", lambda _: keys(broker, name) == [1, 2, 3, 4, 5, 6, 7])
        assert rows(broker, name, "t")[-1]["source"]["gtid"]


def test_transactions_without_gtids_are_not_left_out(
    tmp_path: Path, broker: DevBroker, modes: MySql, name: str
) -> None:
    """Written while it slept, under OFF_PERMISSIVE: no GTIDs tell that they were not read."""
    made(modes, name)
    with running(tmp_path, broker, source(modes), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not modes.run([insert(name, 1)])
        it.until("running", lambda _: keys(broker, name) == [1])
        shop = it.collectors.of("shop")
        assert shop is not None
        shop.hands.pause()
        it.until("paused")
        turn(modes, "ON_PERMISSIVE", "OFF_PERMISSIVE")
        assert not modes.run([insert(name, 2)])
        turn(modes, "ON_PERMISSIVE", "ON")
        assert not modes.run([insert(name, 3)])
        assert "gtid_mode is ON" in it.until("lost")["reason"]
        turn(modes, "ON_PERMISSIVE")
        shop.hands.restart()
        it.until("running", lambda _: keys(broker, name) == [1, 2, 3])
