"""Tables of Debezium's records over six partitions into real servers, amid kills of both."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from databases.base.errors import DatabaseError
from tests.integration.rig import JVM, Rig
from tests.integration.test_keyed_partitions import BY_KEY, SIX, changes, grow, produce, six
from tests.integration.test_process import CHECKOUT, ended
from tests.simulation.keyed.stream import KeyedSource
from tests.sparkwriter.databases import Server, running
from tests.sparkwriter.sql.waiting import until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with running(request.param) as started:
        yield started


class Daemons:
    """Members of one group, each with a state of its own."""

    def __init__(self, rig: Rig, sink: list[str], members: int, name: str = "copy") -> None:
        self.rig = rig
        self._name = name
        self._configs = [self._written(number, sink) for number in range(members)]
        self.running: dict[int, subprocess.Popen[str]] = {}

    def __enter__(self) -> Daemons:
        return self

    def __exit__(self, *exc: object) -> None:
        for number in [*self.running]:
            self.kill(number)

    def _written(self, number: int, sink: list[str]) -> Path:
        rig, folder = self.rig, self.rig.folder / f"m{number}"
        folder.mkdir()
        section = {
            "topics": [rig.topic], "group": f"g-{rig.db}", **BY_KEY, "include": [f"{rig.db}.*"],
            "target": f"{self._name}.{{database}}.{{table}}",
        }  # fmt: skip
        lines = [
            "[daemon]", f'state_dir = "{folder}/state"', f'staging_dir = "{folder}/staging"',
            "commit_interval_s = 0.2", "writers = 2",
            "[log]", 'format = "json"', f'file = "{folder}/log/binlogd.log"',
            "[batch]", "max_age_s = 0.1", "[kafka]",
            f'"bootstrap.servers" = "{rig.broker.bootstrap}"',
            '"session.timeout.ms" = 6000', '"group.instance.id" = ""',
            '"topic.metadata.refresh.interval.ms" = 1000',
            f"[sink.{self._name}]", *sink,
            "[pipeline.p]", *(f"{key} = {json.dumps(value)}" for key, value in section.items()),
            "[pipeline.p.types]", 'id = "bigint"',
        ]  # fmt: skip
        (folder / "config.toml").write_text("\n".join(lines) + "\n")
        return folder / "config.toml"

    def start(self, number: int, *options: str) -> subprocess.Popen[str]:
        """Start a member."""
        run = [sys.executable, "-m", "daemon.cli", "run", "--config", str(self._configs[number])]
        self.running[number] = subprocess.Popen(
            [*run, *options], cwd=CHECKOUT, text=True, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        return self.running[number]

    def kill(self, number: int) -> str:
        """kill -9 of the process and its children. What it said, where it had ended before."""
        process = self.running.pop(number)
        if process.poll() is not None:
            return f"{process.returncode}: {ended(process)[1]}"
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return ""

    def said(self) -> str:
        """The members' logs."""
        logs = (config.parent / "log" / "binlogd.log" for config in self._configs)
        return "".join(log.read_text() for log in logs)

    def catch_up(self) -> None:
        """Have each member in turn read to the end."""
        for number in [*self.running]:
            self.kill(number)
        for number in range(len(self._configs)):
            assert ended(self.start(number, "--until-caught-up")) == (0, "")
            del self.running[number]


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_six_partitions_amid_kills_of_daemon_and_server(
    rig: Rig, server: Server, members: int, seed: int
) -> None:
    """Every row, wherever its key has moved to meanwhile; columns come without a statement."""
    six(rig)
    rng = random.Random(seed)
    source = KeyedSource(rng, SIX, 3, rig.db)
    source.tombstones = True
    sink = ['kind = "jdbc"', f'url = "{server.url}"', f'user = "{server.user}"']
    daemons = Daemons(rig, sink, members)
    pause = threading.Event()
    for _ in range(8):
        produce(rig, changes(rig, source, 300))
        for number in range(members):
            if number not in daemons.running:
                daemons.start(number)
        for _ in range(4):
            pause.wait(rng.uniform(0.2, 2))
            produce(rig, changes(rig, source, 60))
        source.add_column()
        what = rng.choice(("daemon", "server", "both"))
        if what != "daemon":
            server.program.program.kill()
            pause.wait(rng.uniform(0, 1))
        if what != "server":
            said = daemons.kill(rng.randrange(members))
            assert said == "" or "sink copy: " in said  # which was gone when it started
        if what != "daemon":
            server.program.start()
    produce(rig, changes(rig, source, 300))
    daemons.catch_up()
    expect(rig, server, source)


def expect(rig: Rig, server: Server, source: KeyedSource) -> None:
    """The database comes to have what the source has."""
    for table, rows in source.rows.items():
        columns = source.columns[table]
        names = ", ".join(["id", *columns])
        text = f"SELECT {names} FROM {rig.db}.{table} ORDER BY id"
        expected = [(key, *(row[name] for name in columns)) for key, row in sorted(rows.items())]
        until(partial(is_so, server, text, expected))


def is_so(server: Server, text: str, expected: list[tuple[object, ...]]) -> bool:
    """Whether a query gives these rows now: by a session of its own, which sees what is there."""
    session = server.connect()
    try:
        return [tuple(row) for row in session.rows(text)] == expected
    except DatabaseError:
        return False
    finally:
        session.close()


def test_partitions_are_added_while_two_members_read(rig: Rig, server: Server) -> None:
    """In the documented way: what came before is written. Then TRUNCATE, which no lane can tell the
    others, is refused by name."""
    six(rig, 3)
    rng = random.Random(11)
    source = KeyedSource(rng, SIX, 2, rig.db)
    source.tombstones = True
    sink = ['kind = "jdbc"', f'url = "{server.url}"', f'user = "{server.user}"']
    truncate = {
        "source": {"connector": "mysql", "db": rig.db, "table": "t0"}, "op": "t", "ts_ms": 1,
        "before": None, "after": None,
    }  # fmt: skip
    with Daemons(rig, sink, 2) as daemons:
        for number in (0, 1):
            daemons.start(number)
        produce(rig, changes(rig, source, 400))
        expect(rig, server, source)
        grow(rig, SIX)
        for _ in range(3):
            produce(rig, changes(rig, source, 200))
        expect(rig, server, source)
        rig.produce(json.dumps(truncate).encode(), topic=rig.topic, partition=2)
        until(lambda: "TRUNCATE of a table whose rows come in several" in daemons.said())
    expect(rig, server, source)


@pytest.mark.long
def test_six_partitions_into_a_lake_amid_kills(rig: Rig) -> None:
    """Spark and the daemon end together, in mid-stream or in the middle of a write."""
    six(rig)
    rng = random.Random(3)
    source = KeyedSource(rng, SIX, 2, rig.db)
    source.tombstones = True
    catalog = [f'"{key}" = "{value}"' for key, value in rig.lake.items()]
    spark = ["[spark]", "warm_up = false"]
    spark += [f'conf."{key}" = "{value}"' for key, value in JVM.items()]
    sink = ['kind = "iceberg"', "[sink.lake.catalog]", *catalog, *spark]
    daemons = Daemons(rig, sink, 1, "lake")
    pause = threading.Event()
    for _ in range(4):
        produce(rig, changes(rig, source, 300))
        daemons.start(0)
        for _ in range(10):
            pause.wait(rng.uniform(1, 3))
            produce(rig, changes(rig, source, 60))
        source.add_column()
        assert daemons.kill(0) == ""
    produce(rig, changes(rig, source, 300))
    daemons.catch_up()
    for table, rows in source.rows.items():
        names = ["id", *source.columns[table]]
        expected = [(key, *(row[name] for name in names[1:])) for key, row in sorted(rows.items())]
        assert rig.select(table, names, "id") == expected
