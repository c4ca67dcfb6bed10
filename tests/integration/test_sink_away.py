"""Two PostgreSQL servers, of which one is away for minutes: the other's rows come as ever.

``AWAY_S`` is how long, 120 s unless it is set; ``AWAY_HOW=killed`` has the server down instead of
silent. The figures are printed (``-s``), and are those of docs/reliability.md.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon.state import control
from demo.servers.postgres import Postgres
from tests.integration.rig import Rig, canal
from tests.integration.test_process import Follower, ended
from tests.integration.test_sqlite_sink import start

AWAY_S = float(os.environ.get("AWAY_S", "120"))
HOW = os.environ.get("AWAY_HOW", "stopped")
AROUND_S = 30.0
"""Before the server goes, and after it has caught up."""
A_SECOND = 200
TABLES = 4

pytestmark = [pytest.mark.soak, pytest.mark.timeout(AWAY_S + 900)]


@pytest.mark.integration
def test_the_others_freshness_is_unchanged(rig: Rig, tmp_path: Path) -> None:
    """p50 and p99 before, while and after one of the servers is away; then both are equal."""
    servers = [server(tmp_path, name) for name in ("stays", "goes")]
    stays, goes = servers
    follower, sent = Follower(rig.log_file), Sent(rig)
    process = start(write_config(rig, stays, goes))
    try:
        follower.wait_for("running")
        sent.start()
        sent.wait_s(AROUND_S + 10)
        marks = [10_000, 0, 0, 0]  # the first seconds make the tables
        marks[1] = sent.so_far_ms()
        with gone(goes):
            follower.wait_for("away", within_s=AWAY_S)
            sent.wait_s(max(0.0, AWAY_S - (sent.so_far_ms() - marks[1]) / 1000))
            shown = status(rig)
        marks[2] = sent.so_far_ms()
        follower.wait_for("back", times=TABLES, within_s=600)
        back_s = (sent.so_far_ms() - marks[2]) / 1000
        sent.wait_s(AROUND_S)
        marks[3] = sent.so_far_ms()
        sent.stop()
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 0
        for place, name in enumerate(("before", "away", "after")):
            told(name, fresh(rig, stays, sent, marks[place], marks[place + 1]))
        print(f"caught up {back_s:.1f} s after it was back; {json.dumps(shown)}")
        assert [rows(rig, one) for one in servers] == [sent.rows()] * 2
        assert {one["phase"] for one in shown} == {"away"}
        calm = fresh(rig, stays, sent, marks[0], marks[1])
        meanwhile = fresh(rig, stays, sent, marks[1], marks[2])
        assert statistics.median(meanwhile) < statistics.median(calm) + 0.5
    finally:
        sent.stop()
        process.kill()
        follower.close()
        for one in servers:
            one.program.kill()


class Sent(threading.Thread):
    """Inserts, so many a second; a row's ``qty`` says when it was sent, in milliseconds."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(daemon=True)
        self._rig, self._ended = rig, threading.Event()
        self.began = 0.0
        self.number = 0

    def run(self) -> None:
        self.began = time.time()
        while not self._ended.wait(max(0.0, self.began + self.number / A_SECOND - time.time())):
            batch = []
            for _ in range(A_SECOND // 10):
                row = {"id": self.number, "name": "n" * 40, "qty": self.so_far_ms()}
                table = f"{self._rig.db}.t{self.number % TABLES}"
                batch.append(canal(table, "INSERT", [row]))
                self.number += 1
            self._rig.produce(*batch)

    def so_far_ms(self) -> int:
        return int((time.time() - self.began) * 1000)

    def wait_s(self, seconds: float) -> None:
        assert not self._ended.wait(seconds)

    def stop(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self.join()

    def rows(self) -> list[list[int]]:
        return [[*range(table, self.number, TABLES)] for table in range(TABLES)]


def server(folder: Path, name: str) -> Postgres:
    """A server that keeps each commit's time."""
    folder.chmod(0o755)
    (folder / name).mkdir(mode=0o755)
    made = Postgres(folder / name / "server", {"track_commit_timestamp": "on"})
    for above in (folder, *folder.parents[:2]):
        above.chmod(0o755)  # it runs as a user of its own
    made.start()
    return made


@contextmanager
def gone(server: Postgres) -> Iterator[None]:
    """Away for a while: silent, with all its connections open, or killed."""
    if HOW == "killed":
        server.program.kill()
        try:
            yield
        finally:
            server.start()
        return
    every = processes(server.program.pid)
    for pid in every:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in every:
            os.kill(pid, signal.SIGCONT)


def processes(pid: int) -> list[int]:
    """Those below one, itself (the leash) not."""
    found: list[int] = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *processes(int(child))]
    return found


def write_config(rig: Rig, *servers: Postgres) -> Path:
    """All tables into each server, with little memory."""
    text = [
        "[daemon]", f'state_dir = "{rig.folder}/state"', f'staging_dir = "{rig.folder}/staging"',
        "[log]", 'format = "json"', f'file = "{rig.log_file}"', "[batch]", "max_age_s = 0.3",
        "[memory]", "budget_bytes = 16777216", "staged_bytes = 1048576",
        "[kafka]", f'"bootstrap.servers" = "{rig.broker.bootstrap}"',
        "[pipeline.p]", f'topics = ["{rig.topic}"]', 'format = "canal-json"',
        f'group = "g-{rig.db}"', "away_after_s = 10",
    ]  # fmt: skip
    routes = [f'[[pipeline.p.route]]\ntarget = "s{at}.{{database}}.{{table}}"' for at in (0, 1)]
    sinks = [
        f'[sink.s{at}]\nkind = "jdbc"\nuser = "postgres"\n'
        f'url = "jdbc:postgresql://127.0.0.1:{each.port}/postgres"\nwrite_timeout_s = 20'
        for at, each in enumerate(servers)
    ]
    path = rig.folder / "config.toml"
    path.write_text("\n".join([*text, *routes, *sinks, ""]))
    return path


def status(rig: Rig) -> list[dict[str, object]]:
    """What the daemon says of the targets that are away."""
    document = control.ask(rig.folder / "state", {"ask": "status"})
    (pipeline,) = document["pipelines"]
    return [
        {"target": t["target"], "phase": t["phase"], **t["away"]}
        for t in pipeline["targets"]
        if t["target"].startswith("s1.")
    ]


def rows(rig: Rig, server: Postgres) -> list[list[int]]:
    """The ids of each table."""
    tables = (f'"{rig.db}"."t{number}"' for number in range(TABLES))
    found = (server.ask(f"SELECT id FROM {table} ORDER BY 1") for table in tables)
    return [[int(row[0]) for row in answer.rows] for answer in found]


def fresh(rig: Rig, server: Postgres, sent: Sent, first_ms: int, last_ms: int) -> Sequence[float]:
    """From sending a row to its commit, of those that were sent between."""
    at = "extract(epoch FROM pg_xact_commit_timestamp(xmin))"
    found: list[float] = []
    for table in range(TABLES):
        answer = server.ask(
            f'SELECT {at} - {sent.began} - qty / 1000.0 FROM "{rig.db}"."t{table}" '
            f"WHERE qty BETWEEN {first_ms} AND {last_ms}"
        )
        assert not answer.error, answer.error
        found += [float(row[0]) for row in answer.rows]
    return found


def told(when: str, found: Sequence[float]) -> None:
    """A line of the table."""
    parts = statistics.quantiles(found, n=100)
    print(f"{when}: {len(found)} rows, p50 {parts[49]:.2f} s, p99 {parts[98]:.2f} s, "
          f"largest {max(found):.2f} s")  # fmt: skip
