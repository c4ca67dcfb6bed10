"""What goes wrong with a database: the target is whole, each write once, and the reason is told."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changes.model.errors import SinkAway, SinkUnavailable, TargetRefused
from changes.model.model import Column, TableSchema
from databases.base.errors import Cause, DatabaseError, database_error
from databases.base.url import parse_url
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.connect import connect
from sparkwriter.sql.store import JdbcStore
from tests.sparkwriter.conftest import LANE, Staging
from tests.sparkwriter.databases import JdbcTables, Server, running
from tests.sparkwriter.sql.waiting import in_thread, until


@pytest.fixture
def asking(server: Server) -> Any:
    """SQL of another connection that stays open."""
    session = server.connect()
    yield session
    session.close()


class Losing:
    """A session whose server commits, and whose answer gets lost."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def commit(self) -> None:
        self._session.commit()
        self._session.cut()
        raise database_error(Cause.AWAY, "the answer is lost")


def test_an_answer_to_the_commit_that_is_lost(server, table, rows_of, orders) -> None:
    """The ledger tells that it has landed; nothing is written twice."""
    lives = iter([lambda: Losing(server.connect())])
    store = JdbcStore(lambda: next(lives, server.connect)(), "binlogd")
    writer = LedgeredWriter(store)
    batch = table.batch(orders(("U", 1, "z", 1)), 2)
    with pytest.raises(SinkUnavailable, match="the answer is lost"):
        writer.write(batch)
    assert writer.write(batch).covered
    assert rows_of() == [(1, "z", 1), (2, "b", 20)]
    store.close()


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_a_server_that_is_killed_comes_back(kind, tmp_path, target, orders) -> None:
    """A transaction that was open is gone, one that was committed is there."""
    columns = (Column("id", pa.int64()), Column("note", pa.string()), Column("n", pa.int32()))
    staging = Staging(tmp_path, target, TableSchema(columns, ("id",)))
    with running(kind) as server:
        tables = JdbcTables(server)
        writer = LedgeredWriter(tables.store())
        writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
        second = staging.batch(orders(("U", 2, "b", 2)), 2)

        class Killing(Losing):
            def commit(self) -> None:
                ends = ""
                if server.is_postgres:  # its sessions' processes see late that it is gone
                    ((ends,),) = self._session.rows("SELECT pg_backend_pid()")
                server.program.program.kill()
                if ends:
                    os.kill(int(ends), signal.SIGKILL)
                self._session.commit()

        dying = LedgeredWriter(JdbcTables(server, lambda: Killing(server.connect())).store())
        with pytest.raises(SinkUnavailable):
            dying.write(second)
        with pytest.raises(SinkUnavailable):
            writer.write(second)
        server.program.start()
        assert not writer.write(second).covered
        assert sorted(tables.read(target)["id"].to_pylist()) == [1, 2]
        tables.close()


def test_a_session_that_an_administrator_ends(
    table, writer, tables, asking, rows_of, orders
) -> None:
    """The next call has another."""
    session = writer.tables.session
    if tables.server.is_postgres:
        ((pid,),) = session.rows("SELECT pg_backend_pid()")
        asking.rows(f"SELECT pg_terminate_backend({pid})")
    else:
        ((pid,),) = session.rows("SELECT CONNECTION_ID()")
        asking.run(f"KILL {pid}")
    batch = table.batch(orders(("U", 1, "z", 1)), 2)
    with pytest.raises(SinkUnavailable):
        writer.write(batch)
    writer.write(batch)
    assert rows_of()[0] == (1, "z", 1)


def test_a_server_that_takes_no_writes(table, writer, tables, rows_of, orders) -> None:
    """It is a replica now, or read-only: no other target could be written either."""
    mine = " CHARACTERISTICS AS" if tables.server.is_postgres else ""
    writer.tables.session.run(f"SET SESSION{mine} TRANSACTION READ ONLY")
    batch = table.batch(orders(("U", 1, "z", 1)), 2)
    with pytest.raises(SinkAway):
        writer.write(batch)
    writer.write(batch)
    assert rows_of()[0] == (1, "z", 1)


def waits(server: Server, asking: Any) -> Callable[[], bool]:
    """Whether a session waits for a lock."""
    query = (
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        if server.is_postgres
        else "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
    )
    return lambda: bool(asking.rows(query))


def test_a_deadlock_is_tried_again(server, table, writer, asking, rows_of, orders, target) -> None:
    """Whoever of the two is ended: the batch lands, whole."""
    name = f"shop.{target.table}"
    watching = server.connect()
    if not server.is_postgres:  # by default a server that is slow to look for deadlocks takes 50 s
        writer.tables.session.run("SET innodb_lock_wait_timeout = 3")
    asking.run("BEGIN")
    asking.run(f"UPDATE {name} SET n = 21 WHERE id = 2")
    batch = table.batch(orders(("U", 1, "z", 1), ("U", 2, "z", 2)), 2)
    thread, raised = in_thread(lambda: writer.write(batch))
    waiting = waits(server, watching)
    until(lambda: waiting() or not thread.is_alive())
    try:
        asking.run(f"UPDATE {name} SET n = 11 WHERE id = 1")
        asking.run("COMMIT")
    except DatabaseError:
        asking.run("ROLLBACK")
    thread.join()
    if raised:
        assert isinstance(raised[0], SinkUnavailable)
        # A server that is slow to look for deadlocks ends the wait by its bound.
        assert re.search("[Dd]eadlock|Lock wait timeout", str(raised[0]))
        writer.write(batch)
    assert rows_of() == [(1, "z", 1), (2, "z", 2)]
    watching.close()


def test_a_lock_that_somebody_holds_is_told(
    server, table, writer, asking, rows_of, orders, target
) -> None:
    """After a while; the batch lands once the lock is gone."""
    asking.run("BEGIN")
    asking.run(f"UPDATE shop.{target.table} SET n = 21 WHERE id = 2")
    setting = "lock_timeout = '200ms'" if server.is_postgres else "innodb_lock_wait_timeout = 1"
    writer.tables.session.run(f"SET {setting}")
    batch = table.batch(orders(("U", 2, "z", 2)), 2)
    with pytest.raises(SinkUnavailable, match=r"(?i)lock"):
        writer.write(batch)
    asking.run("ROLLBACK")
    writer.write(batch)
    assert rows_of()[1] == (2, "z", 2)


def test_a_server_that_hangs_is_cut_off(server, table, orders) -> None:
    """After the time that a call may take."""
    store = JdbcStore(server.connect, "binlogd", timeout_s=1.0)
    writer = LedgeredWriter(store)
    batch = table.batch(orders(("U", 2, "z", 2)), 2)
    if server.is_postgres:
        ((pid,),) = store.session.rows("SELECT pg_backend_pid()")
    else:
        ((file,),) = store.session.rows("SELECT @@pid_file")
        pid = int(Path(file).read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(SinkUnavailable):
            writer.write(batch)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert writer.write(batch).hwms == {LANE: 2}
    store.close()


@pytest.fixture
def limited(server: Server, sql: Any) -> Any:
    """A user without the rights of an administrator; gives what connects as it."""
    if server.is_postgres:
        sql(
            "DROP ROLE IF EXISTS writer",
            "CREATE ROLE writer LOGIN",
            "GRANT ALL ON DATABASE postgres TO writer",
            "GRANT ALL ON SCHEMA binlogd, shop TO writer",
            "GRANT ALL ON ALL TABLES IN SCHEMA binlogd TO writer",
        )
    else:
        sql(
            "DROP USER IF EXISTS writer@'127.0.0.1'",
            "CREATE USER writer@'127.0.0.1'",
            "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX,"
            " CREATE TEMPORARY TABLES ON *.* TO writer@'127.0.0.1'",
        )
    yield lambda: connect(parse_url(server.url), "writer", None)
    if server.is_postgres:
        sql("DROP OWNED BY writer", "DROP ROLE writer")
    else:
        sql("DROP USER writer@'127.0.0.1'")


def test_a_server_that_became_read_only(server, table, limited, sql, orders, target) -> None:
    """Another connection is made, which may go to the server that took over."""
    on, off = (
        (
            ["ALTER ROLE writer SET default_transaction_read_only = on"],
            ["ALTER ROLE writer SET default_transaction_read_only = off"],
        )
        if server.is_postgres
        else (["SET GLOBAL read_only = 1"], ["SET GLOBAL read_only = 0"])
    )
    store = JdbcStore(limited, "binlogd")
    writer = LedgeredWriter(store)
    own = Staging(table.folder, target._replace(table=f"{target.table}_own"), table.schema)
    writer.write(own.batch(orders(("U", 1, "a", 1)), 1))
    sql(*on)
    store.close()
    batch = own.batch(orders(("U", 1, "b", 1)), 2)
    with pytest.raises(SinkUnavailable, match=r"(?i)read.only"):
        writer.write(batch)
    hosts = server.url.replace("127.0.0.1", f"127.0.0.1:{server.program.port},127.0.0.1", 1)
    with pytest.raises(DatabaseError, match=r"is read-only; .* is read-only"):
        connect(parse_url(hosts), "writer", None)
    sql(*off)
    assert writer.write(batch).hwms == {LANE: 2}
    store.close()


def test_no_connection_is_left(server, table, limited, sql, orders, target) -> None:
    """The reason is told, and it is tried again."""
    limit = (
        "ALTER ROLE writer CONNECTION LIMIT 1"
        if server.is_postgres
        else "ALTER USER writer@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1"
    )
    sql(limit)
    taken = limited()
    store = JdbcStore(limited, "binlogd")
    own = Staging(table.folder, target._replace(table=f"{target.table}_own"), table.schema)
    batch = own.batch(orders(("U", 1, "a", 1)), 1)
    with pytest.raises(SinkUnavailable, match=r"(?i)connections"):
        LedgeredWriter(store).write(batch)
    taken.close()

    def written() -> bool:
        try:
            return LedgeredWriter(store).write(batch).hwms == {LANE: 1}
        except SinkUnavailable:
            return False  # the server has not yet seen the other one end

    until(written)
    store.close()


def test_a_right_that_is_missing_is_named(server, table, limited, orders) -> None:
    """Of one table: the others go on."""
    if not server.is_postgres:
        return
    store = JdbcStore(limited, "binlogd")
    with pytest.raises(TargetRefused, match="permission denied for table"):
        LedgeredWriter(store).write(table.batch(orders(("U", 1, "b", 1)), 2))
    store.close()
