"""A bank in a database: its readers see the accounts of all tables as they were at one moment."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.bank import ACCOUNTS, Bank, Sums
from tests.integration.rig import Rig
from tests.integration.test_process import CHECKOUT, Follower, daemon, ended, follower
from tests.sparkwriter.databases import Server, running
from tests.sparkwriter.sql.waiting import until

__all__ = ["follower"]

TABLES = 5


@pytest.fixture(params=["postgres", "mariadb", "sqlite"])
def server(request: pytest.FixtureRequest) -> Iterator[Server | None]:
    """None: a file of SQLite."""
    if request.param == "sqlite":
        yield None
        return
    with running(request.param) as started:
        yield started


def sink_of(server: Server | None) -> str:
    if server is None:
        return 'kind = "sqlite"\npath = "copy.db"'
    return f'kind = "jdbc"\nurl = "{server.url}"\nuser = "{server.user}"'


def write_config(rig: Rig, server: Server | None) -> Path:
    """One pipeline into ``db``, whose tables go from cut to cut."""
    text = f"""
[daemon]
state_dir = "{rig.folder}/state"
staging_dir = "{rig.folder}/staging"
commit_interval_s = 0.3
writers = 2
[log]
level = "debug"
format = "json"
file = "{rig.log_file}"
[batch]
max_age_s = 0.2
[kafka]
"bootstrap.servers" = "{rig.broker.bootstrap}"
[sink.db]
{sink_of(server)}
[pipeline.p]
topics = ["{rig.topic}"]
format = "maxwell-json"
group = "g-{rig.db}"
include = ["{rig.db}.*"]
target = "db.{{database}}.{{table}}"
types = {{held = "bigint", transfers = "bigint"}}
cut_every = "1s"
cuts = {{atomic = true, table = "db.{rig.db}.cuts"}}
"""
    path = rig.folder / "config.toml"
    path.write_text(text)
    return path


class Looks:
    """Reads all tables again and again, in one snapshot each time, and table by table."""

    def __init__(self, rig: Rig, server: Server | None) -> None:
        self._names = [f"{rig.db}.accounts{number}" for number in range(TABLES)]
        self.seen: list[Sums] = []
        if server is None:
            file = sqlite3.connect(
                rig.folder / "copy.db", isolation_level=None, check_same_thread=False
            )
            self._ask: Callable[[str], Any] = lambda text: file.execute(text).fetchall()
            self._names = [f'"{name}"' for name in self._names]
            return
        session = server.connect()
        mine = "SESSION CHARACTERISTICS AS" if "postgresql" in server.url else "SESSION"
        session.run(f"SET {mine} TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self._ask = lambda text: (session.rows if text[:6] == "SELECT" else session.run)(text)

    def look(self) -> Sums:
        held = transfers = 0
        self._ask("BEGIN")
        for name in self._names:
            rows = self._ask(f"SELECT SUM(held), SUM(transfers), COUNT(*) FROM {name}")
            assert int(rows[0][2]) == ACCOUNTS
            held, transfers = held + int(rows[0][0]), transfers + int(rows[0][1])
        self._ask("COMMIT")
        return Sums(held, transfers)

    @contextmanager
    def all_the_time(self) -> Iterator[None]:
        stop, failed = threading.Event(), []

        def go_on() -> None:
            try:
                while not stop.wait(0.02):
                    self.seen.append(self.look())
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        assert failed == []


@pytest.mark.long
@pytest.mark.timeout(400)
def test_readers_see_whole_transactions_alone(
    rig: Rig, follower: Follower, server: Server | None
) -> None:
    """At any time, also when the daemon is killed, stopped and started again."""
    config, bank = write_config(rig, server), Bank(rig, TABLES)
    bank.open()
    process = daemon("run", "--config", str(config), start_new_session=True)
    follower.wait_for("running")
    follower.wait_for("cut")
    looks = Looks(rig, server)
    with bank.open_for_business(500), looks.all_the_time():
        follower.wait_for("cut", times=4)
        process.kill()
        ended(process)
        process = daemon("run", "--config", str(config), start_new_session=True)
        follower.wait_for("running")
        follower.wait_for("cut", times=4)
        process.send_signal(signal.SIGTERM)
        assert ended(process, 120)[0] == 0
        process = daemon("run", "--config", str(config), start_new_session=True)
        follower.wait_for("running")
        follower.wait_for("cut", times=4)
    assert len(looks.seen) > 50
    assert {sums.held for sums in looks.seen} == {bank.total}
    transfers = [sums.transfers for sums in looks.seen]
    assert transfers == sorted(transfers)
    assert len(set(transfers)) >= 9
    listed = subprocess.run(
        [sys.executable, "-m", "daemon.cli", "cuts", "list", "--json", "--config", str(config)],
        cwd=CHECKOUT, capture_output=True, text=True,
    )  # fmt: skip
    assert listed.returncode == 0, listed.stderr
    cuts = json.loads(listed.stdout)
    assert len(cuts) >= 9
    assert all(cut["boundary"] == "transaction" for cut in cuts[:-1])
    process.send_signal(signal.SIGTERM)
    assert ended(process, 120)[0] == 0


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("server", ["postgres"], indirect=True)
def test_a_pipeline_that_stops_for_one_table_leaves_the_others_where_it_is(
    rig: Rig, follower: Follower, server: Server
) -> None:
    """One is refused: the others stay at the cut before, until somebody resumes it. One is locked,
    and the daemon is stopped: it does not wait for that."""
    config, bank = write_config(rig, server), Bank(rig, TABLES)
    bank.open()
    process = daemon("run", "--config", str(config), start_new_session=True)
    follower.wait_for("cut")
    looks, owner = Looks(rig, server), server.connect()
    first = f"{rig.db}.accounts0"
    with bank.open_for_business(500), looks.all_the_time():
        follower.wait_for("cut", times=2)
        ((most,),) = owner.rows(f"SELECT MAX(transfers) FROM {first}")
        owner.run(f"ALTER TABLE {first} ADD CONSTRAINT few CHECK (transfers < {most + 5})")
        follower.wait_for("pipeline_ended")
        stopped = len(looks.seen)
        until(lambda: len(looks.seen) > stopped + 3)
        owner.run(f"ALTER TABLE {first} DROP CONSTRAINT few")
        resumed = daemon("resume", "p", "--config", str(config))
        assert ended(resumed)[0] == 0
        follower.wait_for("cut", times=2)
        owner.begin()
        owner.run(f"LOCK TABLE {first} IN SHARE MODE")
        follower.wait_for("written_without_others")
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert ended(process, 120)[0] == 0
        assert time.monotonic() - begun < 20
        owner.commit()
    owner.close()
    assert {sums.held for sums in looks.seen[: stopped + 3]} == {bank.total}
