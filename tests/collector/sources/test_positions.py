"""A collector's position proves that all of the source's log is in its topics, without a change
that comes later."""

from __future__ import annotations

from pathlib import Path

import pytest

from databases.opening import open_database
from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from tests.collector.running import rows, running
from tests.collector.sources.test_mariadb import made, source

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]


def test_an_idle_source_is_read_to_its_end_and_one_that_is_ahead_is_not(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """Also where the account may not see whether the server replicates another one. A change counts
    once the server's own heartbeat has shown that it is over, within a minute."""
    made(mariadb, name)
    login = source(mariadb).replace('"reader"', f'"{name}"')
    rights = "SELECT, REPLICATION SLAVE, BINLOG MONITOR, RELOAD, LOCK TABLES"
    assert not mariadb.run([
        f"CREATE USER {name}@'%' IDENTIFIED BY 'first'", f"GRANT {rights} ON *.* TO {name}@'%'",
    ])  # fmt: skip
    with running(tmp_path, broker, login, f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        collector = it.collectors.of("shop")
        assert collector is not None
        database = open_database(it.config, "shop")
        try:
            end = database.log_end()
            assert "GRANT REPLICA MONITOR" in end.unlike([])
            assert (end.is_of(collector.position()), end.was_read(collector.position())) == (
                True, True,
            )  # fmt: skip
            it.kill_worker()
            assert not mariadb.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
            end = database.log_end()
            assert not end.was_read(collector.position())
            it.until("running", lambda f: end.was_read(collector.position()))
            assert [row["after"]["id"] for row in rows(broker, name, "t")] == [1]
        finally:
            database.close()
