"""Tables are filled from a real MariaDB beside a stream of changes: kills included, all of it real.

The stream is ours: one session changes the database and writes Canal's messages in the order of its
commits, so the log has what the binary log would have.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest
from confluent_kafka import Producer

from daemon.operations.engine.record import Job, State
from daemon.operations.engine.store import JobStore
from tests.databases.base.conftest import folder
from tests.databases.base.servers import PASSWORD, Server, mariadb
from tests.integration.rig import MYSQL_TYPES, Rig, canal, ddl
from tests.integration.test_process import Follower, daemon, run
from tests.live.program import HOST
from tests.needs import needed

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

ROWS = 60_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with folder() as where, needed(), mariadb(where / "mariadb") as started:
        yield started


class Writer(threading.Thread):
    """Changes rows, and tells of each change once it is committed, until it is stopped."""

    def __init__(self, rig: Rig, server: Server, per_s: float) -> None:
        super().__init__(daemon=True)
        self._rig, self._pause_s = rig, 1 / per_s
        self._rng = random.Random(4711)
        self._port = server.port
        self._connection = self.connected()
        self._producer = Producer({"bootstrap.servers": rig.broker.bootstrap, "linger.ms": 5})
        self._ended = threading.Event()
        self.changes = 0
        self.statements: list[str] = []
        self._lock = threading.Lock()

    def connected(self) -> Any:
        """A session of its own."""
        return pymysql.connect(
            host=HOST, port=self._port, user="live", password="live", autocommit=True
        )

    def run(self) -> None:
        while not self._ended.wait(self._pause_s):
            with self._lock:
                self._change()
                self._touch(1)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nothing changes inside, and the server may go and come again."""
        with self._lock:
            self._connection.close()
            yield
            self._connection = self.connected()

    def stop(self) -> int:
        """Ends; how many changes there were."""
        self._ended.set()
        self.join()
        assert self._producer.flush(30) == 0
        return self.changes

    def state(self, sql: str, kind: str = "ALTER") -> None:
        """A statement between two changes, in the log as well."""
        with self._lock, self._connection.cursor() as cursor:
            cursor.execute(f"USE {self._rig.db}")
            cursor.execute(sql)
            self._tell(ddl(f"{self._rig.db}.orders", kind, sql))

    def _touch(self, key: int) -> None:
        """A row that changes all the time."""
        table = f"{self._rig.db}.orders"
        with self._connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table} SET qty = qty + 1 WHERE id = %s", (key,))
            if (new := self._row(cursor, key)) is not None:
                self._tell(self._message("UPDATE", new, {"qty": str(new["qty"] - 1)}))

    def _change(self) -> None:
        rng, table = self._rng, f"{self._rig.db}.orders"
        key, fate = rng.randrange(1, ROWS * 11 // 10), rng.random()
        name, qty = f"w{self.changes}", rng.randrange(10**9)
        with self._connection.cursor() as cursor:
            old = self._row(cursor, key)
            if old is None:
                cursor.execute(
                    f"INSERT INTO {table} (id, name, qty) VALUES (%s, %s, %s)", (key, name, qty)
                )
                self._tell(self._message("INSERT", self._row(cursor, key)))
            elif fate < 0.2:
                cursor.execute(f"DELETE FROM {table} WHERE id = %s", (key,))
                self._tell(self._message("DELETE", old))
            elif fate < 0.3:
                new = ROWS * 2 + self.changes
                cursor.execute(f"UPDATE {table} SET id = %s WHERE id = %s", (new, key))
                self._tell(self._message("UPDATE", old | {"id": new}, {"id": str(key)}))
            else:
                cursor.execute(f"UPDATE {table} SET name = %s WHERE id = %s", (name, key))
                self._tell(self._message("UPDATE", old | {"name": name}, {"name": old["name"]}))
        self.changes += 1

    def _row(self, cursor: Any, key: int) -> dict[str, Any] | None:
        cursor.execute(f"SELECT * FROM {self._rig.db}.orders WHERE id = %s", (key,))
        found = cursor.fetchone()
        names = [column[0] for column in cursor.description]
        return None if found is None else dict(zip(names, found, strict=True))

    def _message(
        self, kind: str, row: dict[str, Any] | None, old: dict[str, Any] | None = None
    ) -> bytes:
        assert row is not None
        types = {name: MYSQL_TYPES.get(name, "varchar(20)") for name in row}
        more: dict[str, Any] = {"es": int(time.time()) * 1000, "mysqlType": types}
        more |= {"old": None if old is None else [old], "sqlType": dict.fromkeys(row, 12)}
        return canal(f"{self._rig.db}.orders", kind, [row], **more)

    def _tell(self, message: bytes) -> None:
        self._producer.produce(self._rig.topic, message, partition=0)
        self._producer.poll(0)


def prepared(rig: Rig, server: Server, load: str = "", **database: object) -> Path:
    """The table with its rows, and a configuration that names the database.

    ``load``: more lines of ``[load]``; ``database``: more keys of ``[database.shop]``.
    """
    server.run(
        [
            f"CREATE DATABASE {rig.db}",
            f"CREATE TABLE {rig.db}.orders (id INT PRIMARY KEY, name VARCHAR(255), qty BIGINT)",
            f"USE {rig.db}",
            f"INSERT INTO {rig.db}.orders SELECT seq, CONCAT('n', seq), seq * 7"
            f" FROM seq_1_to_{ROWS}",
        ]
    )
    config = rig.write_config(p=rig.pipeline(database="shop"))
    section = (
        f'[database.shop]\nurl = "jdbc:mariadb://{HOST}:{server.port}"\nuser = "jobs"\n'
        f"password = {json.dumps(PASSWORD)}\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in database.items())
        + f"[load]\nmargin_s = 2.0\nchunk_rows = 5000\n{load}"
    )
    config.write_text(section + config.read_text())
    return config


def in_source(rig: Rig, server: Server) -> list[tuple[Any, ...]]:
    connection = pymysql.connect(host=HOST, port=server.port, user="live", password="live")
    with connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {rig.db}.orders ORDER BY id")
        return [tuple(row) for row in cursor.fetchall()]


class Life:
    """A daemon's process, and the job's file beside it."""

    def __init__(self, rig: Rig, config: Path) -> None:
        self._rig, self._config = rig, config
        self.process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        process = daemon("run", "--config", str(self._config))
        follower = Follower(self._rig.log_file)
        follower.wait_for("running", times=self._runs() + 1)
        follower.close()
        return process

    def _runs(self) -> int:
        return len(self._rig.events("running")) if self._rig.log_file.exists() else 0

    def kill(self, then: Callable[[], None] = lambda: None) -> None:
        """``then``: what is done while none runs."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
        then()
        self.process = self._started()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.communicate(timeout=120)[1] is not None

    def jobs(self, kind: str = "load") -> list[Job]:
        """Those of a kind, oldest first."""
        found = JobStore(self._rig.folder / "state").load().jobs
        return [job for job in found if job.wanted.kind == kind]

    def await_job(self, what: str, reached: Any, within_s: float = 400) -> Any:
        """Look at the last load's file until it is so."""
        end = time.monotonic() + within_s
        while True:
            jobs = self.jobs()
            if jobs and reached(jobs[-1]):
                return jobs[-1]
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < end, (what, jobs)
            threading.Event().wait(0.05)


def next_of(job: Any, rig: Rig) -> int:
    targets = job.memory.get("targets", {})
    return int(targets.get(f"lake.{rig.db}.orders", {}).get("next", 0))


def test_a_load_with_kills_and_a_statement_beside_changes_is_equal(
    rig: Rig, server: Server
) -> None:
    """Killed while rows are read and while the stream is applied over them; a column is added in
    the middle, so it begins again by itself."""
    config = prepared(rig, server)
    writer = Writer(rig, server, per_s=300)
    rig.produce(canal(f"{rig.db}.other", "INSERT", [{"id": 1, "name": "x", "qty": 1}]))
    life = Life(rig, config)
    writer.start()
    status, said = run("tables", "load", f"{rig.db}.orders", "--config", str(config))
    assert status == 0, said
    life.await_job("rows", lambda job: next_of(job, rig) >= 2)
    life.kill()
    life.await_job("more rows", lambda job: next_of(job, rig) >= 4)
    writer.state("ALTER TABLE orders ADD COLUMN note VARCHAR(20) DEFAULT 'd'")
    life.await_job("another attempt", lambda job: "rebuild" in str(job.memory) and again(job, rig))
    life.await_job("rows again", lambda job: next_of(job, rig) >= 3)
    life.kill()
    life.await_job("its end", lambda job: job.state in (State.DONE, State.FAILED))
    job = life.await_job("done", lambda job: job.state.is_final)
    assert job.state is State.DONE, job.message
    changes = writer.stop()
    rig.produce(canal(f"{rig.db}.other", "INSERT", [{"id": 2, "name": "end", "qty": 1}]))
    life.stop()
    assert rig.run(config).value == 0
    assert changes > 500
    assert rig.rows("orders") == in_source(rig, server)
    assert not rig.snapshot().rebuilds


def again(job: Any, rig: Rig) -> bool:
    number = job.memory["targets"][f"lake.{rig.db}.orders"].get("number", 0)
    return bool(number >= 2)
