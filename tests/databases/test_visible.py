"""A commit is in the log before others see it: what real servers say between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pymysql
import pytest

from changes.model.places import Place
from databases.base.database import Database
from databases.base.log_end import BinlogEnd, LogEnd, NoEnd, WalEnd
from tests.databases.base.conftest import folder
from tests.databases.base.servers import SERVERS, Server, as_server, replicated, within
from tests.live.program import HOST
from tests.needs import needed

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

HELD_S = 4


@pytest.fixture(params=["mariadb", "mysql", "postgresql"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with folder() as where, needed(), SERVERS[request.param](where / request.param) as started:
        yield started


def connected(server: Server) -> Any:
    if server.kind == "postgresql":
        return psycopg.connect(
            host=HOST, port=server.port, user="postgres", dbname="postgres", autocommit=True
        )
    return pymysql.connect(
        host=HOST, port=server.port, user="live", password="live", autocommit=True
    )


def done(server: Server, *statements: str) -> None:
    """Each by a session of its own: some may be in no transaction."""
    for statement in statements:
        server.run([statement])


@contextmanager
def held(server: Server) -> Iterator[None]:
    """Inside a commit waits for somebody who is not there, when its log has it already."""
    hold = {
        "mariadb": (
            "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'",
            f"SET GLOBAL rpl_semi_sync_master_timeout = {HELD_S * 1000}",
            "SET GLOBAL rpl_semi_sync_master_enabled = ON",
        ),
        "mysql": (
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
            f"SET GLOBAL rpl_semi_sync_source_timeout = {HELD_S * 1000}",
            "SET GLOBAL rpl_semi_sync_source_enabled = ON",
        ),
        "postgresql": (
            "ALTER SYSTEM SET synchronous_standby_names = 'nobody'",
            "SELECT pg_reload_conf()",
        ),
    }[server.kind]
    done(server, *hold)
    session = connected(server)
    if server.kind == "postgresql":
        with session.cursor() as cursor:
            within(10, lambda: cursor.execute("SHOW synchronous_standby_names").fetchone()[0] != "")
    insert = threading.Thread(target=lambda: session.cursor().execute("INSERT INTO s.t VALUES (2)"))
    insert.start()
    try:
        yield
    finally:
        if server.kind == "postgresql":
            done(
                server,
                "ALTER SYSTEM RESET synchronous_standby_names",
                "SELECT pg_reload_conf()",
            )
        insert.join(30)
        session.close()
    assert not insert.is_alive()


def rows(database: Database) -> int:
    return int(str(database.ask("SELECT COUNT(*) FROM s.t")[0][0]))


def is_in_commit(database: Database, before: LogEnd) -> bool:
    """Whether the log has more than at that end."""
    end = database.log_end()
    if isinstance(end, BinlogEnd):
        assert isinstance(before, BinlogEnd)
        return (end.file, end.pos) > (before.file, before.pos)
    return bool(end.committing)


def test_what_is_being_committed_is_not_shown_until_reads_see_it(server: Server) -> None:
    """While it waits its end says so, and a message of it may be in the topic."""
    word = "SCHEMA" if server.kind == "postgresql" else "DATABASE"
    done(server, f"CREATE {word} s", "CREATE TABLE s.t (id INT PRIMARY KEY)")
    database = server.open()
    try:
        with following(server):
            before = database.log_end()
            assert not isinstance(before, NoEnd), before
            with held(server):
                within(10, lambda: is_in_commit(database, before))
                end = database.log_end()
                assert not database.shows(end)
                assert rows(database) == 0
                assert database.shows(before)
            within(20, lambda: database.shows(end))
            assert rows(database) == 1
            if isinstance(end, BinlogEnd):
                domain, number = next(iter(end.last.items()))
                gtid = f"{end.server}:{number}"
                if end.mariadb:
                    gtid = f"{domain}-{end.server}-{number}"
                assert end.unlike([Place(gtid, end.file, end.pos - 1)]) == ""
                assert isinstance(before, BinlogEnd)
                assert before.is_before(Place(gtid, end.file, before.pos))
            else:
                assert isinstance(end, WalEnd)
                assert isinstance(before, WalEnd)
                assert end.lsn > before.lsn
    finally:
        database.close()


@contextmanager
def following(server: Server) -> Iterator[None]:
    """Of PostgreSQL somebody who reads its log."""
    if server.kind != "postgresql":
        yield
        return
    no_reader = server.open()
    assert "no slot reads the log" in no_reader.log_end().unlike([])
    no_reader.close()
    options = "user=postgres dbname=postgres replication=database"
    reader = psycopg.connect(f"host={HOST} port={server.port} {options}", autocommit=True)
    with reader:
        reader.execute("CREATE_REPLICATION_SLOT s TEMPORARY LOGICAL test_decoding")
        yield


@pytest.mark.parametrize("server", ["mariadb", "mysql"], indirect=True)
def test_a_server_of_mysql_s_kind_says_why_its_position_tells_nothing(server: Server) -> None:
    """A right that lacks, XA transactions: then a load waits for the margin."""
    database = server.open()
    try:
        assert isinstance(database.log_end(), BinlogEnd)
        mariadb = server.kind == "mariadb"
        right = "REPLICA MONITOR" if mariadb else "REPLICATION CLIENT"
        done(server, f"REVOKE {right} ON *.* FROM jobs@'%'")
        database.close()
        assert f"GRANT {right}" in database.log_end().unlike([])
        done(server, f"GRANT {right} ON *.* TO jobs@'%'")
        database.close()
        assert isinstance(database.log_end(), BinlogEnd)
        server.run([
            "CREATE DATABASE x", "CREATE TABLE x.t (id INT PRIMARY KEY)", "XA START 'x'",
            "INSERT INTO x.t VALUES (1)", "XA END 'x'", "XA PREPARE 'x'",
        ])  # fmt: skip
        assert database.log_end().unlike([]) == "it has XA transactions"
        server.run(["XA COMMIT 'x'"])
        assert database.log_end().unlike([]) == "it has XA transactions"
    finally:
        database.close()


def test_a_replica_says_that_it_is_one() -> None:
    """Though it is configured as the primary."""
    with folder() as where, needed(), replicated(where) as (primary, replica):
        for one, why in ((primary, "tell no GTID"), (replica, "it replicates another server")):
            database = as_server(one).open()
            assert why in database.log_end().unlike([])
            database.close()
