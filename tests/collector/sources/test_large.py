"""Large rows and transactions, by the worker's default heap."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from demo.servers.postgres import Postgres
from tests.collector.running import committed, rows, running
from tests.collector.sources import test_mariadb
from tests.collector.sources.test_postgres import made, source

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


def test_a_row_of_20_mb_before_and_after(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """Both images in one record, by the worker's default heap, which does not end by it."""
    made(postgres, name)
    with running(tmp_path, broker, source(postgres, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not postgres.run(name, [
            "CREATE TABLE big (id int PRIMARY KEY, v text)",
            "ALTER TABLE big REPLICA IDENTITY FULL",
        ])  # fmt: skip
        it.until("running", lambda f: bool(it.loads))
        assert not postgres.run(name, [
            "INSERT INTO big VALUES (1, repeat('a', 20000000))",
            "UPDATE big SET v = repeat('b', 20000000)", "INSERT INTO t VALUES (1, 1)",
        ])  # fmt: skip
        it.until("running", lambda f: bool(rows(broker, name, "t")), 100)
        found = rows(broker, name, "big")
        assert [len(one["after"]["v"]) for one in found] == [20_000_000] * 2
        assert len(found[1]["before"]["v"]) == 20_000_000
        assert it.keeper.figures()[0].starts == 1


ROWS = 100_000


def test_a_transaction_of_100_mb_is_there_once_through_kills(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """Two of them, amid its rows: the topic, read committed, has each once and in order."""
    test_mariadb.made(mariadb, name)
    assert not mariadb.run([f"CREATE TABLE {name}.big (id INT PRIMARY KEY, v VARCHAR(1000))"])
    source_of = test_mariadb.source(mariadb)
    with running(tmp_path, broker, source_of, f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        filled = f"SELECT seq, repeat('x', 1000) FROM seq_1_to_{ROWS}"
        assert not mariadb.run([f"USE {name}", f"INSERT INTO {name}.big {filled}"])
        assert not mariadb.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
        for least in (ROWS // 5, ROWS // 2):
            it.until(None, lambda _, n=least: written(broker, name) > n)
            starts = it.keeper.figures()[0].starts
            it.kill_worker()
            it.until(None, lambda _, n=starts: it.keeper.figures()[0].starts > n)
            assert written(broker, name) < ROWS
        it.until("running", lambda _: written(broker, name) > ROWS)
        it.until("running", lambda f: f["beyond_bytes"] == 0)
        found = [
            (one["source"]["table"], one["after"]["id"])
            for one in committed(broker.bootstrap, name)
            if "op" in one
        ]
        assert found == [*(("big", key) for key in range(1, ROWS + 1)), ("t", 1)]


def written(broker: DevBroker, topic: str) -> int:
    """How far a topic of one partition has come."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "ends", "log_level": 0})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)[1]
    finally:
        consumer.close()
