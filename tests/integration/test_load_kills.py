"""``kill -9`` again and again while eight tables are loaded beside many changes: equal in the end.

``LOAD_ROWS``, ``LOAD_KILLS``, ``LOAD_RATE`` (changes a second) make it larger.
"""

from __future__ import annotations

import os
import random
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demo.broker import DevBroker
from demo.lake import embedded, open_session
from demo.load.daemon import FINAL, Daemon, write_config
from demo.load.mariadb import MariaDb, mariadb
from demo.load.shop import DATABASE, TABLES, Changes, create
from demo.produce import create_topic
from tests.databases.base.servers import within
from tests.needs import needed

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

ROWS = int(os.environ.get("LOAD_ROWS", "200000"))
KILLS = int(os.environ.get("LOAD_KILLS", "5"))
RATE = float(os.environ.get("LOAD_RATE", "2000"))

SUMS = "COUNT(*), SUM(CRC32(name)), SUM(CRC32(note)), SUM(qty), SUM(price * 100)"


def killed(daemon: Daemon, rng: random.Random) -> None:
    """At any moment of the next second."""
    threading.Event().wait(rng.random())
    daemon.kill()
    daemon.start()


def loaded_with_kills(daemon: Daemon, rng: random.Random) -> list[str]:
    """Load all tables. Three quarters of the kills while rows are read, the others while the stream
    is applied over them, or behind its end. Gives what the job did as each came."""
    job = daemon.begin_load([f"{DATABASE}.{table}" for table in TABLES])
    kills: list[str] = []
    reading = KILLS - KILLS // 4
    for number in range(reading):
        daemon.await_rows(job, ROWS * number // reading + 1)
        kills.append(daemon.job(job)["message"])
        killed(daemon, rng)
    while len(kills) < KILLS:
        found = daemon.job(job)
        if found["state"] in FINAL or "the stream is applied" in found["message"]:
            kills.append(found["message"])
            killed(daemon, rng)
        threading.Event().wait(0.5)
    daemon.await_job(job)
    return kills


def test_a_load_with_many_kills_is_equal(tmp_path: Path) -> None:
    """Every value of every table is compared: by the verification, which has the database's sums,
    and once nothing changes any more by sums of the test's own."""
    rng = random.Random(20)
    with DevBroker(tmp_path / "broker") as broker, needed(), mariadb(tmp_path / "m") as server:
        create_topic(broker.bootstrap, "shop")
        create(server, ROWS)
        config = write_config(tmp_path, server.port)
        # So that most kills come in the middle of a table.
        ranges = f"[load]\nchunk_rows = {max(1000, ROWS // 100)}\n"
        config.write_text(config.read_text().replace("[load]\n", ranges))
        changes = Changes(server, broker.bootstrap, "shop", ROWS, 7)
        changes.per_s = RATE
        with Daemon(tmp_path, config, broker.bootstrap) as daemon:
            daemon.start()
            changes.start()
            begun, before = time.monotonic(), changes.done
            kills = loaded_with_kills(daemon, rng)
            took_s = time.monotonic() - begun
            rate = (changes.done - before) / took_s
            print(f"loads: {ROWS} rows, {len(kills)} kills, {took_s:.0f} s, {rate:.0f} changes/s")
            print(*kills, sep="\n")
            changes.per_s = 200.0
            result = daemon.verified(f"lake.{DATABASE}.*")
            assert (result["equal"], result["skipped"]) == (True, 0), result
            print(
                f"verified in {time.monotonic() - begun - took_s:.0f} s; {changes.stop()} changes"
            )
            compare(tmp_path, server)


def compare(var: Path, server: MariaDb) -> None:
    """The sums of each table, here and there, once the last change is applied."""
    session = open_session(var, embedded(var))
    connection = server.connect()
    try:
        for table in TABLES:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT {SUMS} FROM {DATABASE}.{table}")
                wanted = [int(value) for value in cursor.fetchone()]
            within(120, partial(is_so, session, table, wanted))
    finally:
        connection.close()
        session.stop()


def is_so(session: SparkSession, table: str, wanted: list[int]) -> bool:
    """Whether the target's sums are these."""
    (row,) = session.sql(f"SELECT {SUMS} FROM lake.{DATABASE}.{table}").collect()
    return [int(value) for value in row] == wanted
