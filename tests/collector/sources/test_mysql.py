"""Collectors of a real MySQL with GTIDs; also in a Connect cluster that exists."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.runtime.program_keeper import ProgramKeeper
from actors.runtime.programs import ProgramMissing
from collector.connect.clients import java_settings
from collector.connect.files import WorkerFiles
from collector.connect.section import ConnectSection
from collector.connect.worker import ConnectWorker, worker_clients
from daemon.app.collectors import connect_jars
from demo.broker import DevBroker
from tests.collector.running import FAST, records, rows, running
from tests.live.mysql import MySql

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def mysql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    try:
        server = MySql(tmp_path_factory.mktemp("y"))
    except ProgramMissing as error:
        pytest.skip(str(error))
    server.start()
    made = ["CREATE USER reader@'%' IDENTIFIED BY 'first'", "GRANT ALL ON *.* TO reader@'%'"]
    assert not server.run(made)
    yield server
    server.program.kill()


def source(mysql: MySql) -> str:
    return f'url = "mysql://127.0.0.1:{mysql.port}/"\nuser = "reader"\npassword = "first"'


def made(mysql: MySql, name: str) -> None:
    assert not mysql.run([
        f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)",
    ])  # fmt: skip


def test_a_table_that_is_created_again_has_the_former_columns(
    tmp_path: Path, broker: DevBroker, mysql: MySql, name: str
) -> None:
    """As MariaDB's (``test_renamed``): its CREATE TABLE has no ``tableChanges``. Nor has IF NOT
    EXISTS of a table that is there, which MySQL logs."""
    made(mysql, name)
    with running(tmp_path, broker, source(mysql), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not mysql.run([
            f"ALTER TABLE {name}.t RENAME TO {name}.u", f"INSERT INTO {name}.u VALUES (1, 1)"
        ])  # fmt: skip
        it.until("running", lambda f: len(rows(broker, name, "u")) == 1)
        starts = it.keeper.figures()[0].starts
        it.kill_worker()
        it.until("running", lambda f: it.keeper.figures()[0].starts > starts)
        assert not mysql.run([
            f"CREATE TABLE {name}.t (id INT PRIMARY KEY, x INT)",
            f"CREATE TABLE IF NOT EXISTS {name}.u (id INT PRIMARY KEY, x INT)",
            f"INSERT INTO {name}.t VALUES (5, 10)",
        ])  # fmt: skip
        it.until("running", lambda f: bool(rows(broker, name, "t")))
        told = [one for one in records(broker, name) if "CREATE TABLE" in one.get("ddl", "")]
        assert [one["tableChanges"] for one in told[-2:]] == [[], []]
        assert rows(broker, name, "t")[-1]["after"] == {"id": 5, "v": 10}


def test_each_row_is_there_once_through_kills(
    tmp_path: Path, broker: DevBroker, mysql: MySql, name: str
) -> None:
    """In the topic itself, read committed, in order."""
    made(mysql, name)
    with running(tmp_path, broker, source(mysql), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        for count in range(1, 81):
            assert not mysql.run(["BEGIN", f"INSERT INTO {name}.t VALUES ({2 * count}, 1)",
                f"INSERT INTO {name}.t VALUES ({2 * count + 1}, 1)", "COMMIT"])  # fmt: skip
            if count in (20, 60):
                starts = it.keeper.figures()[0].starts
                it.kill_worker()
                it.until(None, lambda f, n=starts: it.keeper.figures()[0].starts > n)
        assert not mysql.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
        it.until(
            "running", lambda f: [r["after"]["id"] for r in rows(broker, name, "t")][-1:] == [1]
        )
        assert [r["after"]["id"] for r in rows(broker, name, "t")] == [*range(2, 162), 1]


def test_purged_transactions_stop_it_by_name(
    tmp_path: Path, broker: DevBroker, mysql: MySql, name: str
) -> None:
    """By GTIDs: the server's purged set is no part of what was read."""
    made(mysql, name)
    with running(tmp_path, broker, source(mysql), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        shop = it.collectors.of("shop")
        assert shop is not None
        shop.hands.pause()
        it.until("paused")
        assert not mysql.run([f"INSERT INTO {name}.t VALUES (5, 5)", "FLUSH BINARY LOGS",
            f"INSERT INTO {name}.t VALUES (6, 6)", "FLUSH BINARY LOGS"])  # fmt: skip
        last = mysql.ask("SHOW BINARY LOGS").rows[-1][0]
        assert not mysql.run([f"PURGE BINARY LOGS TO '{last}'"])
        assert "gtid_purged" in it.until("lost")["reason"]


@pytest.fixture
def cluster(tmp_path: Path, broker: DevBroker, name: str) -> Iterator[ConnectWorker]:
    """A Connect cluster that somebody else has running."""
    files = WorkerFiles(tmp_path / "theirs")
    clients = worker_clients(java_settings({"bootstrap.servers": broker.bootstrap}))
    section = ConnectSection(group=f"theirs-{name}")
    worker = ConnectWorker(files, section, lambda: clients, connect_jars, list, lambda: "theirs")
    files.open()
    files.keep_secrets("shop", {"password": "first"})
    keeper = ProgramKeeper([worker], FAST)
    keeper.open()
    assert keeper.await_up("Kafka Connect", 120)
    yield worker
    keeper.close()


def test_a_connect_cluster_that_exists_is_adopted(
    tmp_path: Path, broker: DevBroker, mysql: MySql, name: str, cluster: ConnectWorker
) -> None:
    """By its login and its own way to keep secrets; without the login nothing is told or done."""
    made(mysql, name)
    assert cluster.rest is not None
    url, auth = cluster.rest.url, cluster.rest.auth
    path = tmp_path / "theirs" / "connect" / "secrets" / "shop.properties"
    adopted = (
        f'connect = "{url}"\nconnect_auth = "{auth}"\n'
        f'references = {{ "database.password" = "file:{path}:password" }}'
    )
    wrong = adopted.replace(auth, f"binlogd:{secrets.token_hex(8)}")
    with running(tmp_path / "w", broker, source(mysql), f"{name}.*", wrong, topic=name) as it:
        assert "refuses the login" in it.until("unfit")["reason"]
    assert cluster.rest.config("binlogd-shop") is None
    with running(tmp_path / "a", broker, source(mysql), f"{name}.*", adopted, topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not mysql.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
        it.until("running", lambda f: bool(rows(broker, name, "t")))
    assert cluster.rest.state("binlogd-shop").runs  # it goes on without the daemon
