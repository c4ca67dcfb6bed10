"""What a binary log has and no row tells, or tells and never was: it is said by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from tests.collector.running import rows, running
from tests.collector.sources import test_mariadb
from tests.collector.sources.test_mysql import made, mysql, source
from tests.live.mysql import MySql

__all__ = ["mysql"]
pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


def keys(broker: DevBroker, name: str) -> list[int]:
    return [one["after"]["id"] for one in rows(broker, name, "t") if one["after"]]


@pytest.mark.parametrize(
    ("setting", "value", "back"),
    [
        ("binlog_format", "STATEMENT", "ROW"),
        ("binlog_row_value_options", "PARTIAL_JSON", ""),
        ("binlog_row_image", "MINIMAL", "FULL"),
    ],
)
def test_a_setting_of_the_log_that_was_changed_stops_it(
    tmp_path: Path, broker: DevBroker, mysql: MySql, name: str, setting: str, value: str, back: str
) -> None:
    """Debezium looks at its start alone, and passes over such changes, or fails by them. What was
    passed over is loaded by a reset, which ``on_lost_position`` makes once the setting is right."""
    made(mysql, name)
    chosen = 'on_lost_position = "load"'
    with running(tmp_path, broker, source(mysql), f"{name}.*", chosen, topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        try:
            assert not mysql.run([f"SET GLOBAL {setting} = '{value}'"])
            assert f"{setting} is {value}" in it.until("lost")["reason"]
            assert not mysql.run([f"INSERT INTO {name}.t (id) VALUES (1)"])
        finally:
            assert not mysql.run([f"SET GLOBAL {setting} = '{back}'"])
        it.until("running", lambda _: it.loads == [(f"{name}.*",)])
        assert not mysql.run([f"INSERT INTO {name}.t VALUES (2, 2)"])
        it.until("running", lambda _: keys(broker, name) == [2])


def test_a_log_that_was_reset_is_another_history(
    tmp_path: Path, broker: DevBroker, mysql: MySql, name: str
) -> None:
    """GTIDs count from 1 again: soon the server has executed what was read, by their numbers."""
    made(mysql, name)
    assert not mysql.run(["FLUSH BINARY LOGS", "FLUSH BINARY LOGS"])
    with running(tmp_path, broker, source(mysql), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not mysql.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
        it.until("running", lambda _: keys(broker, name) == [1])
        shop = it.collectors.of("shop")
        assert shop is not None
        shop.hands.pause()
        it.until("paused")
        more = [f"INSERT INTO {name}.t VALUES ({key}, 1)" for key in range(2, 200)]
        assert not mysql.run(["RESET BINARY LOGS AND GTIDS", *more])
        assert "it was reset" in it.until("lost")["reason"]


def test_rows_of_a_transaction_that_was_rolled_back_are_said(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """XA: the log has them from XA PREPARE on. The line stays until somebody has seen to it."""
    test_mariadb.made(mariadb, name)
    source_of = test_mariadb.source(mariadb)
    with running(tmp_path, broker, source_of, f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]) and not f["reason"])
        assert not mariadb.run([
            "XA START 'x'", f"INSERT INTO {name}.t VALUES (5, 5)", "XA END 'x'", "XA PREPARE 'x'",
            "XA ROLLBACK 'x'", f"INSERT INTO {name}.t VALUES (6, 6)",
        ])  # fmt: skip
        it.until("running", lambda f: "an XA transaction was rolled back" in f["reason"])
        it.until("running", lambda _: keys(broker, name) == [5, 6])
        shop = it.collectors.of("shop")
        assert shop is not None
        shop.hands.restart()
        it.until("running", lambda f: not f["reason"])
