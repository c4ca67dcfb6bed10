"""Topics by patterns where there are many of them, or several readers: hundreds of tables, two
members of a group, two pipelines that take the same topics."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.rig import Rig, canal
from tests.integration.test_process import CHECKOUT, Follower, ended
from tests.integration.test_sqlite_sink import start
from tests.integration.test_topic_patterns import World, stop
from tests.sparkwriter.databases import Server, running
from tests.sparkwriter.sql.waiting import until

pytestmark = pytest.mark.long

MANY = 300


@pytest.fixture
def world(rig: Rig) -> World:
    return World(rig)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with running("postgres") as started:
        yield started


def make_many(world: World, names: list[str]) -> None:
    topics = [NewTopic(world.topic(name), 1, 1) for name in names]
    admin = AdminClient({"bootstrap.servers": world.rig.broker.bootstrap})
    for made in admin.create_topics(topics).values():
        made.result(30)


def fill(world: World, names: list[str], key: int) -> None:
    """A row for each table, in the topic of its name."""
    producer = Producer({"bootstrap.servers": world.rig.broker.bootstrap, "linger.ms": 50})
    for name in names:
        row = {"id": key, "name": name, "qty": key}
        producer.produce(world.topic(name), canal(f"{world.rig.db}.{name}", "INSERT", [row]))
    assert producer.flush(60) == 0


@pytest.mark.timeout(120)
def test_three_hundred_tables_of_three_hundred_topics(world: World) -> None:
    """Some come while nothing runs. Each table has its rows and no other's, and a changelog
    beside it."""
    names = [f"t{number:03}" for number in range(MANY)]
    early = names[: MANY - 20]
    make_many(world, early)
    fill(world, early, 1)
    world.catch_up(start="earliest")
    make_many(world, names[MANY - 20 :])
    again = names[MANY - 40 :]
    fill(world, again, 2)
    world.catch_up(start="earliest")
    with sqlite3.connect(world.rig.folder / "copy.db") as file:
        for name in names:
            rows = file.execute(f'SELECT id, name FROM "{world.rig.db}.{name}" ORDER BY id')
            keys = [key for key, filled in ((1, early), (2, again)) if name in filled]
            assert rows.fetchall() == [(key, name) for key in keys]
    file.close()
    assert {e["source"] for e in world.rig.events("assigned")} == {
        f"{world.topic(name)}:0" for name in names
    }


def test_two_pipelines_over_the_same_topics_each_have_all(world: World) -> None:
    """Patterns overlap: each pipeline has positions of its own. Into one target they are refused
    before anything is read."""
    make_many(world, ["a.x", "a.y"])
    fill(world, ["a.x", "a.y"], 1)
    path = world.config(start="earliest")
    text = path.read_text()
    first = text[text.index("[pipeline.p]") :]
    second = first.replace("pipeline.p", "pipeline.q").replace('"copy.', '"other.')
    second = second.replace(f'"g-{world.rig.db}"', '"second"').replace(r"\\.", r"\\.a\\.", 1)
    sink = '[sink.other]\nkind = "sqlite"\npath = "other.db"\n'
    path.write_text(text + sink + second)
    assert ended(start(path, "--until-caught-up")) == (0, "")
    for name in ("copy.db", "other.db"):
        with sqlite3.connect(world.rig.folder / name) as file:
            for table in ("a.x", "a.y"):
                found = file.execute(f'SELECT id FROM "{world.rig.db}.{table}"').fetchall()
                assert found == [(1,)], (name, table)
        file.close()
    path.write_text(text + second.replace('"other.', '"copy.'))
    status, said = ended(start(path, "--until-caught-up"))
    assert status != 0
    assert "pipeline.q" in said


class Members:
    """Daemons of one group that write a database, each with a state of its own."""

    def __init__(self, world: World, server: Server) -> None:
        self._world, self._server = world, server
        self._session = server.connect()

    def config(self, name: str) -> Path:
        rig = self._world.rig
        folder = rig.folder / name
        folder.mkdir()
        pattern = "^" + self._world.prefix.replace(".", r"\.")
        pipeline = {
            "topics": [pattern], "format": "canal-json", "group": f"g-{rig.db}",
            "include": [f"{rig.db}.*"], "target": "copy.{database}.{table}", "start": "earliest",
        }  # fmt: skip
        lines = [
            "[daemon]", f'state_dir = "{folder}/state"', f'staging_dir = "{folder}/staging"',
            "[log]", 'format = "json"', f'file = "{folder}/log.jsonl"', "[batch]",
            "max_age_s = 0.2", "[kafka]", f'"bootstrap.servers" = "{rig.broker.bootstrap}"',
            '"topic.metadata.refresh.interval.ms" = 500', '"group.instance.id" = ""',
            "[sink.copy]", 'kind = "jdbc"', f'url = "{self._server.url}"',
            f'user = "{self._server.user}"', "[pipeline.p]",
            *(f"{key} = {json.dumps(value)}" for key, value in pipeline.items()),
        ]  # fmt: skip
        path = folder / "config.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    @contextmanager
    def running(self, name: str) -> Iterator[Follower]:
        path = self.config(name)
        process = subprocess.Popen(
            [sys.executable, "-m", "daemon.cli", "run", "--config", str(path)],
            cwd=CHECKOUT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        follower = Follower(path.parent / "log.jsonl")
        try:
            follower.wait_for("assigned")
            yield follower
        finally:
            follower.close()
            stop(process)

    def shows(self, table: str, *keys: int) -> bool:
        rig = self._world.rig
        there = f'SELECT to_regclass(\'"{rig.db}"."{table}"\')'
        if next(iter(self._session.rows(there)))[0] is None:
            return False
        rows = self._session.rows(f'SELECT id FROM "{rig.db}"."{table}" ORDER BY id')
        return [int(row[0]) for row in rows] == [*keys]


def test_two_members_share_topics_that_come_and_go(world: World, postgres: Server) -> None:
    """Each finds new topics by itself; one that goes stops neither; a member that leaves hands its
    topics over."""
    names = [f"t{number}" for number in range(6)]
    make_many(world, names)
    fill(world, names, 1)
    members = Members(world, postgres)
    with members.running("one"):
        until(lambda: all(members.shows(name, 1) for name in names))
        with members.running("two"):
            later = [f"n{number}" for number in range(4)]
            make_many(world, later)
            fill(world, [*names, *later], 2)
            until(lambda: all(members.shows(name, 1, 2) for name in names))
            until(lambda: all(members.shows(name, 2) for name in later))
            world.delete("t0")
            names.remove("t0")
            fill(world, [*names, *later], 3)
            until(lambda: all(members.shows(name, 1, 2, 3) for name in names))
        fill(world, [*names, *later], 4)
        until(lambda: all(members.shows(name, 1, 2, 3, 4) for name in names))
        until(lambda: all(members.shows(name, 2, 3, 4) for name in later))
