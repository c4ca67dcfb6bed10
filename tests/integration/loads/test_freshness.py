"""How fresh other tables stay while a million rows are loaded beside them, and a reload meanwhile.

``LOAD_ROWS`` makes it larger. The whole runs as a user would have it: MariaDB, Kafka, Iceberg.
"""

from __future__ import annotations

import json
import os
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from daemon.operations.engine.record import Job, State
from daemon.operations.engine.store import JobStore
from demo.broker import DevBroker
from demo.load.daemon import Daemon, write_config
from demo.load.mariadb import mariadb
from demo.load.shop import DATABASE, TABLES, Changes, create
from demo.produce import create_topic
from tests.databases.base.servers import within
from tests.integration.rig import canal
from tests.integration.test_load_kills import compare
from tests.integration.test_process import run
from tests.needs import needed

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

ROWS = int(os.environ.get("LOAD_ROWS", "1000000"))
CHANGES_S = 200.0
"""Changes of the loaded tables."""

EVERY_S, QUIET = 0.1, 300
"""A row of the other table comes so often; and how many of them before the load begins."""

P50_S, P99_S = 5.0, 30.0
"""The bounds while a load runs: far from what a quiet machine shows, so a failure means something.
Batches are as old as a second."""


class Ticks(threading.Thread):
    """Rows of a table that is not loaded, one at a time, until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True, name="ticks")
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._ended = threading.Event()
        self.moments: list[float] = []
        """When each was produced, Unix time."""

    def run(self) -> None:
        begun = time.time()
        while not self._ended.wait(max(0.0, begun + len(self.moments) * EVERY_S - time.time())):
            row = {"id": len(self.moments), "name": "x", "qty": 1}
            self.moments.append(time.time())
            message = canal(f"{DATABASE}.ticks", "INSERT", [row], es=int(time.time()) * 1000)
            self._producer.produce("shop", message, partition=0)
            assert self._producer.flush(30) == 0

    def stop(self) -> None:
        """No more rows."""
        self._ended.set()
        self.join()


def events(var: Path, name: str) -> list[dict[str, Any]]:
    """The daemon's log, as far as it is whole."""
    whole, _, _ = (var / "log" / "binlogd.log").read_text().rpartition("\n")
    return [event for event in map(json.loads, whole.splitlines()) if event["event"] == name]


def written(var: Path) -> list[float]:
    """By row of the other table, when the write with it had ended."""
    ends: list[float] = []
    for event in events(var, "written"):
        if event["target"] == f"lake.{DATABASE}.ticks":
            at = datetime.fromisoformat(event["timestamp"]).timestamp()
            ends += [at] * event["changes"]
    return ends


def shown(waits: list[float]) -> tuple[float, float]:
    """Half of them, and 99 %, in seconds."""
    cuts = statistics.quantiles(waits, n=100)
    return cuts[49], cuts[98]


def reload(config: Path) -> float:
    """Take a section of the pipeline that differs; how many seconds that took."""
    text = config.read_text()
    assert text.count('exclude = ["*.beat"]') == 1
    config.write_text(text.replace('exclude = ["*.beat"]', 'exclude = ["*.beat", "shop.none"]'))
    begun = time.monotonic()
    status, said = run("reload", "--config", str(config))
    assert status == 0, said
    return time.monotonic() - begun


@contextmanager
def running(var: Path) -> Iterator[tuple[Daemon, Changes, Ticks, Any, Path]]:
    """All of it, with the tables' rows in no stream."""
    with DevBroker(var / "broker") as broker, needed(), mariadb(var / "m") as server:
        create_topic(broker.bootstrap, "shop")
        create(server, ROWS)
        config = write_config(var, server.port)
        text = config.read_text()
        for name, value in (
            ('level = "info"', 'level = "debug"'),
            ("[load]\n", f"[load]\nchunk_rows = {max(1000, ROWS // 40)}\n"),
            ("${BINLOGD_VAR:-var}", str(var)),
            ("${BINLOGD_BROKER:-127.0.0.1:9092}", broker.bootstrap),
        ):
            assert name in text
            text = text.replace(name, value)
        config.write_text(text)
        changes = Changes(server, broker.bootstrap, "shop", ROWS, 7)
        changes.per_s = CHANGES_S
        ticks = Ticks(broker.bootstrap)
        with Daemon(var, config, broker.bootstrap) as daemon:
            daemon.start()
            yield daemon, changes, ticks, server, config


def job_of(var: Path) -> Job:
    """The load, by its file: asking the daemon takes a process, which would be measured."""
    (job,) = JobStore(var / "state").load().jobs
    return job


def followed(var: Path, config: Path) -> tuple[float, float, int]:
    """Follow the load to its end; on the way the pipeline is reloaded. No table is begun again.

    Gives when it was reloaded (Unix time), how long that took, and how many rows were there.
    """
    within(600, lambda: (job := job_of(var)).progress.done >= ROWS * 7 // 10 or job.state.is_final)
    before = job_of(var)
    assert not before.state.is_final, (before.state, before.message)
    reload_at, took_s = time.time(), reload(config)
    seen = before.progress.done

    def ended() -> bool:
        nonlocal seen
        job = job_of(var)
        assert job.progress.done >= seen, (job, seen)
        seen = job.progress.done
        return job.state.is_final

    within(600, ended)
    job = job_of(var)
    assert job.state is State.DONE, job.message
    assert len({event["into"] for event in events(var, "rebuilding")}) == len(TABLES), "begun again"
    return reload_at, took_s, before.progress.done


def test_other_tables_stay_fresh_beside_a_load_and_a_reload(tmp_path: Path) -> None:
    """Half of the other table's rows, and 99 %: without a load, then beside one. The pipeline is
    reloaded when most is read: the load goes on, and every table is equal."""
    with running(tmp_path) as (daemon, changes, ticks, server, config):
        changes.start()
        ticks.start()
        within(300, lambda: len(ticks.moments) >= QUIET)
        begun = time.time()
        daemon.begin_load([f"{DATABASE}.{table}" for table in TABLES])
        at_reload, took_s, done = followed(tmp_path, config)
        ended = time.time()
        ticks.stop()
        changes.stop()
        within(120, lambda: len(written(tmp_path)) >= len(ticks.moments))
        compare(tmp_path, server)
        ends = written(tmp_path)
        assert len(ends) == len(ticks.moments)
    waits = [(at, end - at) for at, end in zip(ticks.moments, ends, strict=True)]
    # The first ones waited for the first tables of the stream to be made.
    quiet = [wait for at, wait in waits[QUIET // 3 :] if at < begun - 5]
    beside = [wait for at, wait in waits if begun <= at < at_reload - 5]
    after = [wait for at, wait in waits if at_reload - 5 <= at <= ended]
    for name, some in (("without", quiet), ("beside", beside), ("from the reload on", after)):
        half, most = shown(some)
        print(f"{name}: {len(some)} rows, p50 {half:.2f} s, p99 {most:.2f} s, max {max(some):.2f}")
    print(
        f"{ROWS} rows loaded in {ended - begun:.0f} s; {done} before the reload of {took_s:.1f} s"
    )
    half, most = shown(beside)
    assert half < P50_S
    assert most < P99_S
