"""The daemon as a process: exit statuses, signals, kill -9 in mid-stream."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.integration.rig import Rig, canal
from tests.left import started

pytestmark = pytest.mark.machine

CHECKOUT = Path(__file__).parents[2]
ROUTES = [
    {"target": "lake.{database}.{table}"},
    {"target": "lake.{database}.{table}_log", "mode": "append"},
]


def daemon(*arguments: str, **popen: object) -> subprocess.Popen[str]:
    """Start ``binlogd`` as a user would."""
    return started(subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", *arguments],
        cwd=CHECKOUT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen,
    ))  # type: ignore[call-overload]  # fmt: skip


def ended(process: subprocess.Popen[str], within_s: float = 120) -> tuple[int, str]:
    """Its exit status and what it said on standard error."""
    _, said = process.communicate(timeout=within_s)
    return process.returncode, said


def run(*arguments: str) -> tuple[int, str]:
    return ended(daemon(*arguments))


class Follower:
    """Waits for events in the daemon's log: a line read is an event, no sleep needed."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._tail = subprocess.Popen(
            ["tail", "-n", "+1", "-F", str(path)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._tail.stdout is not None
        self._lines: IO[str] = self._tail.stdout

    def wait_for(self, event: str, times: int = 1, within_s: float = 120) -> None:
        """Read on until the event has come so many times; a watchdog ends the waiting."""
        watchdog = threading.Timer(within_s, self._tail.kill)
        watchdog.start()
        try:
            for line in self._lines:
                if f'"event": "{event}"' in line:
                    times -= 1
                    if times == 0:
                        return
        finally:
            watchdog.cancel()
        raise AssertionError(f"{event} did not come within {within_s} s")

    def close(self) -> None:
        self._tail.kill()
        self._tail.wait()


@pytest.fixture
def follower(rig: Rig) -> Iterator[Follower]:
    made = Follower(rig.log_file)
    yield made
    made.close()


def workload(db: str, messages: int) -> tuple[list[bytes], dict[str, dict[int, tuple[str, int]]]]:
    """A stream over four tables and the state it leads to."""
    tables: dict[str, dict[int, tuple[str, int]]] = {f"t{i}": {} for i in range(4)}
    stream: list[bytes] = []
    for number in range(messages):
        name = f"t{number % 4}"
        rows, table = tables[name], f"{db}.t{number % 4}"
        key = number // 4 if number % 3 else number // 8
        if key in rows and number % 7 == 0:
            text, qty = rows.pop(key)
            stream.append(canal(table, "DELETE", [{"id": key, "name": text, "qty": qty}]))
            continue
        row = {"id": key, "name": f"n{number}", "qty": number}
        if key in rows:
            stream.append(canal(table, "UPDATE", [row], old=[{"name": rows[key][0]}]))
        else:
            stream.append(canal(table, "INSERT", [row]))
        rows[key] = (f"n{number}", number)
    return stream, tables


@pytest.mark.long
@pytest.mark.timeout(400)
def test_kill_9_three_times_in_mid_stream_loses_and_doubles_nothing(
    rig: Rig, follower: Follower
) -> None:
    """After the restarts the tables equal the source, the changelog has each change once."""
    stream, tables = workload(rig.db, 40_000)
    config = rig.write_config(p=rig.pipeline(target=None, route=ROUTES))
    third = len(stream) // 3
    for kill in range(3):
        process = daemon("run", "--config", str(config), start_new_session=True)
        follower.wait_for("running")
        rig.produce(*stream[kill * third : (kill + 1) * third])
        follower.wait_for("written", times=kill + 2)
        process.kill()
        ended(process)
    rig.produce(*stream[3 * third :])
    status, said = run("run", "--until-caught-up", "--config", str(config))
    assert (status, said) == (0, "")
    for name, rows in tables.items():
        assert rig.rows(name) == sorted((key, *row) for key, row in rows.items())
    places = [
        (row[2], row[3]) for name in tables for row in rig.rows(f"{name}_log", "_offset, _index")
    ]
    assert sorted(places) == [(offset, 0) for offset in range(len(stream))]


@pytest.mark.timeout(200)
def test_sigterm_writes_what_is_in_hand_and_ends_with_zero(rig: Rig, follower: Follower) -> None:
    """Drain: buffers are written, the frontier is committed to file and broker."""
    config = rig.write_config()
    process = daemon("run", "--config", str(config))
    follower.wait_for("assigned")
    rig.produce(canal(f"{rig.db}.t", "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    follower.wait_for("written")
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (0, "")
    (state,) = rig.snapshot().partitions.values()
    assert (state.frontier, state.confirmed) == (1, None) or state.confirmed == 1
    assert rig.rows("t") == [(1, "a", 1)]
    assert list((rig.folder / "staging").iterdir()) == []


def test_a_broker_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    """Status 2, the address, no traceback."""
    status, said = run("run", "--config", str(minimal(tmp_path)))
    assert status == 2
    (line,) = [one for one in said.splitlines() if one.startswith("binlogd: ")]
    assert "no Kafka broker answers at 127.0.0.1:1" in line
    assert len(said.splitlines()) == 2  # the log's first one has the version


def test_a_warehouse_that_cannot_be_written_is_one_line(rig: Rig) -> None:
    """Status 2, sink and folder named, before Spark is started."""
    (rig.folder / "file").write_text("in the way")
    rig.lake["warehouse"] = str(rig.folder / "file" / "warehouse")
    status, said = run("run", "--config", str(rig.write_config()))
    assert status == 2
    assert said.count("\n") == 1
    assert "lake" in said
    assert str(rig.folder / "file") in said


def test_a_state_directory_in_use_is_one_line(rig: Rig) -> None:
    """Two daemons on one directory would overwrite each other's positions."""
    from daemon.state.offset_file import lock_state_dir

    with lock_state_dir(rig.folder / "state"):
        status, said = run("run", "--config", str(rig.write_config()))
    assert status == 2
    assert said.count("\n") == 1
    assert f"process {os.getpid()}" in said
    assert f"`binlogd status --state-dir {rig.folder}/state`" in said


def test_a_typo_in_the_configuration_is_one_line(tmp_path: Path) -> None:
    """The key, and what is allowed there."""
    path = minimal(tmp_path)
    path.write_text(path.read_text().replace("format =", "fromat ="))
    status, said = run("run", "--config", str(path))
    assert status == 2
    assert "; did you mean format? allowed: " in said
    assert "pipeline.p.format: missing" in said


def test_offsets_show_prints_frontier_and_marks(rig: Rig) -> None:
    """A person sees where things stand without opening the file."""
    rig.produce(canal(f"{rig.db}.t", "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    config = rig.write_config()
    rig.run(config)
    process = daemon("offsets", "show", "--config", str(config))
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert f"{rig.topic}:0" in out
    assert f"lake.{rig.db}.t" in out
    assert f"{rig.topic}:0=0" in out


def test_offsets_show_tells_of_a_damaged_file(rig: Rig) -> None:
    """Status 1, the file named, the previous one shown."""
    rig.produce(canal(f"{rig.db}.t", "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    config = rig.write_config()
    rig.run(config)
    file = rig.folder / "state" / "p.offsets.json"
    file.write_text(file.read_text()[:-20])
    status, said = run("offsets", "show", "--config", str(config))
    assert status == 1
    assert str(file) in said


def minimal(folder: Path) -> Path:
    """A configuration whose broker is a port where nobody listens."""
    path = folder / "config.toml"
    path.write_text(
        '[kafka]\n"bootstrap.servers" = "127.0.0.1:1"\n[sink.lake]\nkind = "iceberg"\n'
        '[sink.lake.catalog]\ntype = "jdbc"\nuri = "jdbc:sqlite:catalog.db"\n'
        'warehouse = "warehouse"\n[pipeline.p]\ntopics = ["t"]\nformat = "canal-json"\n'
        'target = "lake.{database}.{table}"\n'
    )
    return path
