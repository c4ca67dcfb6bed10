"""Jobs that can't end, by a real daemon, source and sink: their table alone is concerned, and each
way out that the documentation names leads out."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pymysql
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from daemon.operations.engine.record import Job, State
from databases.base.errors import DatabaseError
from offsets.position import TopicPartition as Place
from tests.databases.base.conftest import folder
from tests.databases.base.servers import PASSWORD, Server, mariadb, within
from tests.integration.loads.orders import beat, read
from tests.integration.rig import Rig, canal
from tests.integration.test_jobs import send
from tests.integration.test_load import Life
from tests.integration.test_process import run
from tests.live.program import HOST
from tests.needs import needed
from tests.sparkwriter.databases import Server as Sink
from tests.sparkwriter.databases import running

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def source() -> Iterator[Server]:
    with folder() as where, needed(), mariadb(where / "mariadb") as started:
        yield started


@pytest.fixture(scope="module")
def postgres() -> Iterator[Sink]:
    with running("postgres") as started:
        yield started


class Copy(NamedTuple):
    """A sink of any kind: its section, its SQL, and what refuses an exchange there."""

    section: list[str]
    sql: Callable[[str], Rows]
    name: Callable[[str], str]
    block: str
    free: str


def in_postgres(sink: Sink, schema: str) -> Copy:
    session = sink.connect()

    def sql(text: str) -> Rows:
        return session.rows(text) if text.startswith("SELECT") else [(session.run(text),)]

    return Copy(
        ['kind = "jdbc"', f'url = "{sink.url}"', f'user = "{sink.user}"'],
        sql,
        lambda table: f"{schema}.{table}",
        f"CREATE VIEW {schema}.v AS SELECT id FROM {schema}.orders",
        f"DROP VIEW {schema}.v",
    )


def in_mariadb(source: Server, schema: str) -> Copy:
    connection = pymysql.connect(
        host=HOST, port=source.port, user="live", password="live", autocommit=True
    )

    def sql(text: str) -> Rows:
        with connection.cursor() as cursor:
            cursor.execute(text)
            return [tuple(row) for row in cursor.fetchall()]

    return Copy(
        ['kind = "jdbc"', f'url = "jdbc:mariadb://{HOST}:{source.port}/"', 'user = "live"',
         'password = "live"'],
        sql,
        lambda table: f"{schema}.{table}",
        f"CREATE TABLE {schema}.child (a INT, FOREIGN KEY (a) REFERENCES {schema}.orders (id))",
        f"DROP TABLE {schema}.child",
    )  # fmt: skip


def in_sqlite(path: Path, schema: str) -> Copy:
    def sql(text: str) -> Rows:
        with sqlite3.connect(path, isolation_level=None, timeout=60) as file:
            found = file.execute(text).fetchall()
        file.close()
        return found

    return Copy(
        ['kind = "sqlite"', f'path = "{path}"'],
        sql,
        lambda table: f'"{schema}.{table}"',
        f'CREATE TRIGGER tells AFTER INSERT ON "{schema}.orders" BEGIN SELECT 1; END',
        "DROP TRIGGER tells",
    )


class World:
    """A source with rows of which the target has but one, a daemon, and another table."""

    def __init__(self, rig: Rig, source: Server, copy: Copy) -> None:
        self.rig, self.copy = rig, copy
        self.target = f"copy.{rig.db}_c.orders"
        self.signals = f"signals-{rig.db}"
        self.others = 0
        rig.create_topic(self.signals)
        source.run(
            [
                f"CREATE DATABASE {rig.db}",
                f"CREATE TABLE {rig.db}.orders (id INT PRIMARY KEY, name VARCHAR(255), qty BIGINT)",
                f"INSERT INTO {rig.db}.orders VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
            ]
        )
        self.config = self._config(source)
        self.insert(1)
        self.life = Life(rig, self.config)

    def _config(self, source: Server) -> Path:
        rig, url = self.rig, f"jdbc:mariadb://{HOST}:{source.port}/"
        lines = [
            "[daemon]", f'state_dir = "{rig.folder}/state"', f'staging_dir = "{rig.folder}/st"',
            "commit_interval_s = 0.3",
            "[log]", 'format = "json"', f'file = "{rig.log_file}"', "[batch]", "max_age_s = 0.2",
            "[kafka]", f'"bootstrap.servers" = "{rig.broker.bootstrap}"',
            "[database.shop]", f'url = "{url}"', 'user = "jobs"',
            f"password = {json.dumps(PASSWORD)}", "statement_timeout_s = 3.0",
            "[load]", "margin_s = 0.5", "settle_s = 0.5",
            "[jobs]", f'signals_topic = "{self.signals}"',
            "[sink.copy]", *self.copy.section,
            "[pipeline.p]", f'topics = ["{rig.topic}"]', 'format = "canal-json"',
            f'group = "g-{rig.db}"', 'database = "shop"',
            "[[pipeline.p.route]]", f'tables = ["{rig.db}.*"]',
            f'target = "copy.{rig.db}_c.{{table}}"',
        ]  # fmt: skip
        path = rig.folder / "config.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def insert(self, key: int) -> None:
        """A row in the stream; the source has it already."""
        row = {"id": key, "name": "abcdefgh"[key - 1], "qty": key}
        message = canal(f"{self.rig.db}.orders", "INSERT", [row], es=int(time.time()) * 1000)
        self.rig.produce(message)

    def has(self, *keys: int) -> None:
        """The target gets to have just these."""
        name = self.copy.name("orders")
        wanted = [(key, "abcdefgh"[key - 1], key) for key in keys]
        within(60, lambda: self.found(f"SELECT id, name, qty FROM {name} ORDER BY 1") == wanted)

    def found(self, query: str) -> Rows | None:
        """What the sink has; None: its table is not made yet."""
        try:
            return self.copy.sql(query)
        except (DatabaseError, sqlite3.OperationalError, pymysql.err.ProgrammingError):
            return None

    def others_go_on(self) -> None:
        """Another table gets a row more."""
        self.others += 1
        row = {"id": self.others, "name": "o", "qty": 1}
        self.rig.produce(canal(f"{self.rig.db}.more", "INSERT", [row]))
        count = f"SELECT count(*) FROM {self.copy.name('more')}"
        within(60, lambda: self.found(count) == [(self.others,)])

    def command(self, *words: str) -> None:
        status, said = run(*words, "--config", str(self.config))
        assert status == 0, said

    def filled(self) -> Job:
        """A load that has read all rows and waits for the log, which is quiet."""
        count = len(self.life.jobs())
        self.command("tables", "load", f"{self.rig.db}.orders")
        return self.life.await_job("rows", lambda job: len(self.life.jobs()) > count and _is(job))

    def failed(self, kind: str, said: str) -> None:
        """The last job of the kind ends so."""
        within(90, lambda: (jobs := self.life.jobs(kind)) and jobs[-1].state.is_final)
        job = self.life.jobs(kind)[-1]
        assert (job.state, said in job.message) == (State.FAILED, True), job
        assert not self.rig.snapshot().rebuilding

    def begins_again(self) -> None:
        """The daemon is stopped and started."""
        self.life.stop()
        self.life = Life(self.rig, self.config)


def _is(job: Job) -> bool:
    memory: Any = job.memory.get("targets", {})
    return any(each.get("stage") == "filled" for each in memory.values()) and bool(
        job.memory.get("ending")
    )


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def world(request: Any, rig: Rig, source: Server) -> Iterator[World]:
    schema = f"{rig.db}_c"
    match request.param:
        case "sqlite":
            copy = in_sqlite(rig.folder / "copy.db", schema)
        case "postgres":
            copy = in_postgres(request.getfixturevalue("postgres"), schema)
        case _:
            copy = in_mariadb(source, schema)
    made = World(rig, source, copy)
    yield made
    made.life.process.kill()


def test_each_way_out_leads_out(world: World) -> None:
    """A load is refused at its end, a rebuild before it begins; a load is given up after the log
    lost what came meanwhile; after each the others go on and a start works."""
    world.has(1)
    world.filled()
    world.copy.sql(world.copy.block)
    beat(world.rig, ahead_s=60.0)
    world.failed("load", "remove it for the load or rebuild")
    world.insert(4)
    world.has(1, 4)
    world.others_go_on()
    world.begins_again()
    world.copy.sql(world.copy.free)

    world.copy.sql(world.copy.block)
    status, said = run("tables", "rebuild", world.target, "--config", str(world.config))
    assert (status, "remove it for the load or rebuild" in said) == (2, True), said
    world.copy.sql(world.copy.free)
    world.command("tables", "rebuild", world.target)
    within(90, lambda: world.life.jobs("rebuild")[-1].state.is_final)
    assert world.life.jobs("rebuild")[-1].state is State.DONE
    world.others_go_on()

    job = world.filled()
    world.insert(5)
    read(world.rig)
    cut(world.rig)
    world.command("jobs", "cancel", job.id)
    within(60, lambda: world.life.jobs()[-1].state is State.CANCELLED)
    world.others_go_on()
    world.begins_again()
    world.others_go_on()
    differs = world.rig.snapshot().targets[world.target].rows_may_differ
    assert differs is not None
    assert "the log lost" in differs


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
def test_a_signal_loads_a_table(world: World) -> None:
    """Debezium's `execute-snapshot`, by the broker."""
    world.has(1)
    data = {"type": "incremental", "data-collections": [f"{world.rig.db}.orders"]}
    send(world.rig, world.signals, {"id": "s", "type": "execute-snapshot", "data": data})
    world.life.await_job("rows", _is, 120)
    beat(world.rig, ahead_s=60.0)
    job = world.life.await_job("its end", lambda job: job.state.is_final, 90)
    assert job.state is State.DONE, job.message
    world.has(1, 2, 3)


def cut(rig: Rig) -> None:
    """The broker loses all that the pipeline has read."""
    frontier = rig.snapshot().partitions[Place(rig.topic, 0)].frontier
    admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
    place = TopicPartition(rig.topic, 0, frontier)
    admin.delete_records([place])[place].result(20)
