"""From the embedded broker to another Kafka by the commands of the docs: nothing is loaded, and
each change is applied once."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.operations.engine.store import JobStore
from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from demo.servers.postgres import Postgres
from tests.collector.running import committed
from tests.collector.sources import test_postgres
from tests.collector.sources.test_daemon import Run
from tests.collector.sources.test_mariadb import source
from tests.daemon.operations.move.world import in_use
from tests.test_ratchet import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(900)]

_FILE = """
[broker]
embedded = true

[daemon]
state_dir = "state"
staging_dir = "staging"
commit_interval_s = 0.2
[batch]
max_age_s = 0.2
[sink.copy]
kind = "sqlite"
path = "copy.db"
[database.shop]
{database}
[collector.shop]
database = "shop"
heartbeat_s = 1
{collector}
[pipeline.shop]
collector = "shop"
include = ["{tables}"]
target = "copy.{{database}}.{{table}}"
"""

_NEW = '\n[broker]\nembedded = false\n\n[kafka]\n"bootstrap.servers" = "{}"\n'


def commands() -> list[str]:
    """Those of the docs, in their order; ``#`` begins the edit of the configuration."""
    text = (ROOT / "docs" / "collector.md").read_text()
    section = text[text.index("### To an outside Kafka") :]
    found: list[str] = []
    for language, block in re.findall(r"```(console|toml)\n(.*?)```", section, re.S):
        if language == "toml":
            assert block.strip() == _NEW.format("kafka.example:9092").strip()
            found.append("# edit")
        else:
            found += [line[2:].split("  #")[0].strip() for line in block.splitlines()]
    return found


class Moving(Run):
    """The daemon of somebody who moves."""

    def __init__(self, folder: Path, text: str) -> None:
        super().__init__(folder, text)
        self.file = folder / "config.toml"

    def edit(self, kafka: str) -> None:
        """As the docs have it."""
        text = self.file.read_text().replace("[broker]\nembedded = true\n", "")
        self.file.write_text(text + _NEW.format(kafka))

    def does(self, command: str, kafka: str) -> None:
        """One line of the docs, as it stands; systemd is this process."""
        if command == "# edit":
            self.edit(kafka)
        elif command == "systemctl stop binlogd":
            assert self.kill(signal.SIGTERM) == 0
        elif command == "systemctl start binlogd":
            self.start()
        else:
            done = self.shell(command)
            assert done.returncode == 0, done.stdout + done.stderr

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            command, shell=True, cwd=self.folder, env={**os.environ, "PATH": path},
            capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip

    def rows(self, table: str, query: str = "SELECT id, v FROM {} ORDER BY id") -> list[Any]:
        with sqlite3.connect(self.folder / "copy.db") as copy:
            try:
                return copy.execute(query.format(f'"{table}"')).fetchall()
            except sqlite3.OperationalError:
                return []

    def changes(self, table: str) -> list[tuple[str, int]]:
        """Of a changelog, in its order; fails where a place in the log is there twice."""
        found = self.rows(table, "SELECT _offset, _index, _op, v FROM {} ORDER BY 1, 2")
        places = [each[:2] for each in found]
        assert len(set(places)) == len(places)
        return [(op, v) for _, _, op, v in found]

    def jobs(self) -> list[str]:
        return [job.wanted.kind for job in JobStore(self.folder / "state").load().jobs]


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[DevBroker]:
    with DevBroker(tmp_path / "kafka") as found:
        in_use(found)
        yield found


POINTS = (
    "Continued._cut = killed", "move.carry = killed", "Topics.keep = keep",
    "move.LogMove._record = killed",
)  # fmt: skip
"""The steps, in their order: filled, begun, with the history, with the positions, but not recorded
is the last."""

KILLED = """
import os, signal, sys
from daemon.cli.__main__ import main
from daemon.operations.move import move
from sources.kafka.collector_topics import KafkaCollectorTopics as Topics
from sources.kafka.collector_topics import KafkaContinuedTopic as Continued

def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def keep(self, topic, *_):
    killed() if topic.endswith("-offsets") else kept(self, topic, *_)

kept = Topics.keep
{point}
sys.argv = ["binlogd", "offsets", "move"]
main()
"""


class Changes:
    """A table with a key, and one without: a changelog, which has each change once."""

    def __init__(self, mariadb: MariaDb, name: str) -> None:
        self._mariadb, self._name = mariadb, name
        self.log, self.wanted = f"{name}.log", list[tuple[str, int]]()
        self.run(
            f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)",
            f"CREATE TABLE {name}.log (id INT, v INT)",
        )  # fmt: skip

    def run(self, *statements: str) -> None:
        assert not self._mariadb.run(statements)

    def work(self) -> None:
        for _ in range(5):
            at = len(self.wanted) + 1
            self.wanted.extend((("I", at), ("U", -at)))
            self.run(
                "BEGIN", f"INSERT INTO {self._name}.t (id, v) VALUES ({at}, 1)",
                f"INSERT INTO {self.log} VALUES ({at}, {at})",
                f"UPDATE {self.log} SET v = -{at} WHERE id = {at}",
                f"UPDATE {self._name}.t SET v = v + 1", "COMMIT",
            )  # fmt: skip

    def rows(self) -> list[tuple[int, int]]:
        found = self._mariadb.ask(f"SELECT id, v FROM {self._name}.t ORDER BY id").rows
        return [(int(id_), int(v)) for id_, v in found]

    def applied(self, run: Moving) -> None:
        """All of it is in the targets, once, and nothing was loaded."""
        run.until(run.reads)
        self.work()
        run.until(lambda: run.changes(self.log) == self.wanted)
        run.until(lambda: run.rows(f"{self._name}.t") == self.rows())
        assert run.jobs() == []


def test_the_docs_commands_move_a_mariadb(
    tmp_path: Path, kafka: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """Rows change before, while nothing runs, and after; a table is altered between."""
    changes = Changes(mariadb, name)
    tables = f"{name}.*"
    run = Moving(tmp_path, _FILE.format(database=source(mariadb), collector="", tables=tables))
    run.start()
    changes.applied(run)
    for command in commands():
        run.does(command, kafka.bootstrap)
        changes.work()
        if command == "# edit":
            changes.run(f"ALTER TABLE {name}.t ADD COLUMN w INT DEFAULT 7")
    changes.applied(run)
    there = [one["source"] for one in committed(kafka.bootstrap, "shop") if one.get("op")]
    assert len({json.dumps(one) for one in there}) == len(there) > 0
    assert run.shell("binlogd offsets move").returncode == 2  # the daemon runs
    assert run.kill(signal.SIGTERM) == 0
    done = run.shell("binlogd offsets move")
    assert (done.returncode, done.stdout) == (0, "nothing to do: all pipelines have moved\n")


def test_a_move_that_is_killed_goes_on(
    tmp_path: Path, kafka: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """After ``kill -9`` at each step no daemon starts on the new Kafka. The embedded broker goes on
    as before where somebody thinks better of it; and the same command completes the move."""
    changes = Changes(mariadb, name)
    tables = f"{name}.*"
    run = Moving(tmp_path, _FILE.format(database=source(mariadb), collector="", tables=tables))
    before = run.file.read_text()
    for points in (POINTS, POINTS[-1:]):
        run.file.write_text(before)
        run.start()
        if points is not POINTS:
            run.until(lambda: run.collector().get("state") == "paused")
            run.does("binlogd collector resume shop", "")
        changes.applied(run)
        for command in commands()[:4]:
            run.does(command, kafka.bootstrap)
        for point in points:
            killed = [sys.executable, "-c", KILLED.format(point=point)]
            done = subprocess.run(killed, cwd=tmp_path, env=in_this_tree(), check=False)
            assert done.returncode == -signal.SIGKILL, point
        refused = run.shell("binlogd run")
        said = refused.stdout + refused.stderr
        assert (refused.returncode, "binlogd offsets move" in said) == (2, True)
    changes.work()
    run.does("binlogd offsets move", "")
    run.start()
    changes.applied(run)
    assert run.kill(signal.SIGTERM) == 0


def in_this_tree() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_the_docs_commands_move_a_postgresql(
    tmp_path: Path, kafka: DevBroker, postgres: Postgres, name: str
) -> None:
    """Its slot keeps the log; each topic of a table goes on where it ended."""
    test_postgres.made(postgres, name)
    config = _FILE.format(
        database=test_postgres.source(postgres, name), tables="public.*",
        collector=f'topic = "{name}"\ntopics = "tables"',
    )  # fmt: skip
    run = Moving(tmp_path, config)
    run.start()
    run.until(run.reads)
    wanted: list[tuple[int, int]] = []

    def work() -> None:
        wanted.append((len(wanted) + 1, len(wanted)))
        assert not postgres.run(name, [f"INSERT INTO t VALUES {wanted[-1]}"])

    work()
    run.until(lambda: run.rows("public.t") == wanted)
    for command in commands():
        run.does(command, kafka.bootstrap)
        work()
    run.until(run.reads)
    work()
    run.until(lambda: run.rows("public.t") == wanted)
    assert run.jobs() == []
    there = [one["after"]["id"] for one in committed(kafka.bootstrap, f"{name}.public.t")]
    assert there
    assert there == [id_ for id_, _ in wanted][-len(there) :]
    assert run.kill(signal.SIGTERM) == 0
