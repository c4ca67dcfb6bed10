"""What Connect has forgotten, and tables that a collector did not read before: never in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from collector.position import stop
from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from demo.servers.postgres import Postgres
from tests.collector.running import rows, running
from tests.collector.sources import test_postgres
from tests.collector.sources.test_mariadb import made, source

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


def test_a_position_that_connect_has_lost_stops_it_by_name(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """Removed by hand, or with all of Connect's topics: without a word the reader would begin at
    the present. After a reset it reads on, and its tables are loaded. A connector that is removed
    has its position still, and is made again."""
    made(mariadb, name)
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        with capture_logs() as logs:
            it.rest.remove("binlogd-shop")
            it.until(when=lambda _: any(one["event"] == "collector_created" for one in logs))
        shop = it.collectors.of("shop")
        assert shop is not None
        with shop.hands.lock:  # the round that made it has resumed it by then
            stop(it.rest, "binlogd-shop")
            it.rest.remove_offsets("binlogd-shop")
            it.rest.resume("binlogd-shop")
        assert "has no position of it any more" in it.until("lost")["reason"]
        it.until("lost", lambda f: it.rest.state("binlogd-shop").connector == "STOPPED")
        shop.hands.reset()
        it.until("running", lambda f: bool(it.loads))
    with running(
        tmp_path, broker, source(mariadb), f"{name}.*", topic=name, group=f"{name}-other"
    ) as it:
        assert "has no position of it any more" in it.until("lost")["reason"]
        assert not mariadb.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
        shop = it.collectors.of("shop")
        assert shop is not None
        shop.hands.restart()
        it.until("lost")
        shop.hands.reset()
        it.until("running", lambda f: it.loads == [(f"{name}.*",)])
        assert not mariadb.run([f"INSERT INTO {name}.t VALUES (2, 2)"])
        it.until("running", lambda f: bool(rows(broker, name, "t")))


def test_another_topic_is_another_position(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """Debezium keeps positions by the topics' prefix: under another it would begin at the present.
    By choice the tables are loaded; the former slot is not left behind."""
    test_postgres.made(postgres, name)
    login, other = test_postgres.source(postgres, name), f"{name}x"
    with running(tmp_path, broker, login, "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
    assert not postgres.run(name, ["INSERT INTO t VALUES (1, 1)"])
    chosen = 'on_lost_position = "load"'
    with running(tmp_path, broker, login, "public.*", chosen, topic=other, group=name) as it:
        it.until("running", lambda f: ("public.*",) in it.loads)
        slots = postgres.ask("SELECT slot_name FROM pg_replication_slots").rows
        assert (f"binlogd_{other}",) in slots
        assert (f"binlogd_{name}",) not in slots


def test_tables_that_were_left_out_before_are_read_and_loaded(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """Their changes until then were skipped, also where they had been read before that."""
    made(mariadb, name)
    assert not mariadb.run([f"CREATE TABLE {name}.u (id INT PRIMARY KEY)"])
    both, one = f'tables = ["{name}.t", "{name}.u"]', f'tables = ["{name}.t"]'
    chosen = ((both, []), (one, []), (both, [(f"{name}.u",)]))
    for number, (collector, loads) in enumerate(chosen, 1):
        with running(tmp_path, broker, source(mariadb), f"{name}.*", collector, topic=name) as it:
            it.until("running", lambda f: bool(f["position"]))
            wanted = len(collector.split(","))
            it.until("running", lambda f, n=wanted: _listed(it.rest) == n)
            it.until("running", lambda f, some=loads: it.loads == some)
            at = len(rows(broker, name, "u"))
            assert not mariadb.run([
                f"INSERT INTO {name}.u VALUES ({wanted}{at})",
                f"INSERT INTO {name}.t VALUES ({number}, 1)",
            ])  # fmt: skip
            it.until("running", lambda f, n=number: len(rows(broker, name, "t")) == n)
            it.until("running", lambda f, n=at + wanted - 1: len(rows(broker, name, "u")) == n)


def _listed(rest: object) -> int:
    config = rest.config("binlogd-shop")  # type: ignore[attr-defined]
    return len(config["table.include.list"].split(","))


def test_a_schema_history_that_is_gone_stops_it_by_name(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """An empty one in its place knows no table: its rows would be left out, or read by a later
    definition. A reset makes it anew."""
    made(mariadb, name)
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        wiring = it.collectors.of("shop").hands.wiring  # type: ignore[union-attr]
    wiring.topics().remove([f"binlogd-history-{name}"])
    assert not mariadb.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        found = it.until("failed")
        assert "binlogd collector reset shop" in found["reason"]
        assert not rows(broker, name, "t")
        it.collectors.of("shop").hands.reset()  # type: ignore[union-attr]
        it.until("running", lambda f: bool(it.loads))
        assert not mariadb.run([f"INSERT INTO {name}.t VALUES (2, 2)"])
        it.until("running", lambda f: bool(rows(broker, name, "t")))
