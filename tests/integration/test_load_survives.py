"""What may happen to a load that is under way, at a real MariaDB beside real changes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from daemon.operations.engine.record import State
from offsets.position import TopicPartition as Place
from tests.databases.base.conftest import folder
from tests.databases.base.servers import Server, as_server, users
from tests.integration.rig import Rig, canal
from tests.integration.test_load import Life, Writer, in_source, next_of, prepared
from tests.integration.test_process import run
from tests.live.mariadb import MariaDb
from tests.live.program import LiveError
from tests.needs import missing

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

OTHER = [{"id": 1, "name": "x", "qty": 1}]


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDb]:
    with folder() as where:
        try:
            started = MariaDb(where / "mariadb")
        except LiveError as error:
            missing("mariadb", str(error))
        started.start()
        assert started.run(users(("SELECT, PROCESS, BINLOG MONITOR",))) == ""
        try:
            yield started
        finally:
            started.program.kill()


@pytest.fixture
def server(mariadb: MariaDb) -> Server:
    return as_server(mariadb)


def begun(rig: Rig, config: str, writer: Writer) -> Life:
    """A daemon, and a load that has begun to read beside the writer's changes."""
    rig.produce(canal(f"{rig.db}.other", "INSERT", OTHER))
    life = Life(rig, rig.folder / config)
    writer.start()
    loaded(rig, life, 2)
    return life


def loaded(rig: Rig, life: Life, ranges: int) -> None:
    """Another load, until so many ranges are there."""
    count = len(life.jobs())
    status, said = run("tables", "load", f"{rig.db}.orders", "--config", config_of(rig))
    assert status == 0, said
    life.await_job("rows", lambda job: len(life.jobs()) > count and next_of(job, rig) >= ranges)


def config_of(rig: Rig) -> str:
    return str(rig.folder / "config.toml")


def ended(life: Life, rig: Rig, writer: Writer, server: Server) -> None:
    """The load is done, and once all changes are applied the table is equal."""
    job = life.await_job("its end", lambda job: job.state.is_final)
    assert job.state is State.DONE, job.message
    writer.stop()
    rig.produce(canal(f"{rig.db}.other", "INSERT", OTHER))
    life.stop()
    assert rig.run(rig.folder / "config.toml").value == 0
    assert rig.rows("orders") == in_source(rig, server)
    assert not rig.snapshot().rebuilds


def kill_a_reader(writer: Writer) -> None:
    """End a session that reads a range just now."""
    end = time.monotonic() + 60
    connection = writer.connected()
    with connection, connection.cursor() as cursor:
        while not (found := _readers(cursor)):
            assert time.monotonic() < end
        with contextlib.suppress(pymysql.OperationalError):  # it has ended by itself meanwhile
            cursor.execute(f"KILL CONNECTION {found[0][0]}")


def _readers(cursor: Any) -> Any:
    cursor.execute(
        "SELECT id FROM information_schema.processlist"
        " WHERE user = 'jobs' AND command = 'Query' AND info LIKE '%orders%'"
    )
    return cursor.fetchall()


def test_connections_and_the_server_go_and_the_log_is_cut_off(
    rig: Rig, mariadb: MariaDb, server: Server
) -> None:
    """A session that reads is killed, the server is killed and comes again, Kafka loses all that
    the pipeline has read, and the daemon is killed; one row changes all the time."""
    prepared(rig, server, load="rows_per_s = 5000\n")
    writer = Writer(rig, server, per_s=100)
    life = begun(rig, "config.toml", writer)
    life.await_job("a step is repeated", lambda job: job.attempts > 0 or kill_a_reader(writer))
    life.await_job("it goes on", lambda job: next_of(job, rig) >= 4)
    with writer.held():
        mariadb.program.kill()
        life.await_job("it waits", lambda job: job.state is State.WAITING and job.attempts > 0)
        mariadb.start()
    life.await_job("it goes on again", lambda job: next_of(job, rig) >= 6)
    frontier = rig.snapshot().partitions[Place(rig.topic, 0)].frontier
    admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
    cut = admin.delete_records([TopicPartition(rig.topic, 0, frontier)])
    assert [future.result(30).low_watermark for future in cut.values()] == [frontier]
    assert frontier > 0
    life.kill()
    ended(life, rig, writer, server)


def test_statements_that_take_too_long_are_asked_again(
    rig: Rig, mariadb: MariaDb, server: Server
) -> None:
    """A table that is locked is not read within the statement's time: the job says so, and goes on
    once it can."""
    prepared(rig, server, statement_timeout_s=1.0)
    writer = Writer(rig, server, per_s=50)
    life = begun(rig, "config.toml", writer)
    lock = writer.connected()
    with lock, lock.cursor() as cursor:
        cursor.execute(f"LOCK TABLES {rig.db}.orders WRITE")
        job = life.await_job("its time is up", lambda job: "max_statement_time" in job.message)
        assert not job.state.is_final
    ended(life, rig, writer, server)


def test_started_twice_verified_cancelled_and_its_table_dropped(rig: Rig, server: Server) -> None:
    """A second one is refused by name; a verification leaves the table out, and says why; cancelled
    the table stays and gets what came meanwhile; a table that is gone fails the load by name."""
    config = str(prepared(rig, server, load="rows_per_s = 10000\n"))
    writer = Writer(rig, server, per_s=50)
    life = begun(rig, "config.toml", writer)
    first = life.jobs()[0].id
    status, said = run("tables", "load", f"{rig.db}.orders", "--config", config)
    assert (status, f"it is being loaded by job {first} already" in said) == (2, True), said
    life.await_job("its end", lambda job: job.state is State.DONE)

    loaded(rig, life, 2)
    status, said = run("tables", "verify", f"{rig.db}.orders", "--config", config)
    assert status == 1, said
    verified = life.jobs("verify")[-1].result["tables"]
    assert [one["skipped"] for one in verified] == ["it is being rebuilt or loaded"]
    status, said = run("jobs", "cancel", life.jobs()[-1].id, "--config", config)
    assert status == 0, said
    life.await_job("cancelled", lambda job: job.state is State.CANCELLED)

    loaded(rig, life, 2)
    writer.stop()
    source = in_source(rig, server)
    server.run([f"DROP TABLE {rig.db}.orders"])
    job = life.await_job("failed", lambda job: job.state.is_final)
    assert job.state is State.FAILED
    # Found by the next range's plan, or by a read that was under way.
    missing_table = (f"{rig.db}.orders: no such table", f"Table '{rig.db}.orders' doesn't exist")
    assert any(said in job.message for said in missing_table), job.message
    rig.produce(canal(f"{rig.db}.other", "INSERT", OTHER))
    life.stop()
    assert rig.run(rig.folder / "config.toml").value == 0
    assert rig.rows("orders") == source
    assert not rig.snapshot().rebuilds
