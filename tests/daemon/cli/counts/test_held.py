"""``binlogd counts`` where a pipeline counts: a daemon writes, and what targets hold is told."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from demo.broker import DevBroker
from tests.daemon.cli.counts.debezium_log import MINUTE, RANGE, DebeziumLog
from tests.daemon.cli.counts.test_broker import TARGET, World, text
from tests.left import started

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def world(tmp_path: Path, store_broker: DevBroker) -> World:
    made = World(tmp_path, store_broker)
    made.config.write_text(
        made.config.read_text() + 'counts = "lake.binlogd.counts"\nkeys = ["id"]\n'
        'on_bad_record = "dead-letter"\n'
    )
    return made


def daemon(world: World, *words: str) -> subprocess.Popen[str]:
    return started(subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", "run", "--config", str(world.config), *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=world.config.parent,
    ))  # fmt: skip


def told(world: World) -> tuple[int, Any]:
    status, found = world.document(TARGET)
    return status, found["tables"][TARGET]


def until_folded(world: World, process: subprocess.Popen[str]) -> Any:
    """Wait until the table of counts has all of it."""
    deadline, pause = monotonic() + 60, Event()
    while True:
        status, found = told(world)
        if status == 0:
            return found
        assert process.poll() is None, process.communicate()[0]
        if monotonic() > deadline:
            process.kill()
            raise AssertionError(f"{found}: {process.communicate()[0]}")
        pause.wait(0.5)


def busy(minutes: int = 3) -> DebeziumLog:
    """A transaction of a dozen changes each five seconds."""
    log = DebeziumLog().framed()
    for number in range(minutes * 12):
        log.at(0, 5 * number).transaction(str(number), *"IUUUUUUUUUUD")
    return log.passed()


def gate(world: World) -> tuple[int, str]:
    """Its status once, and what it says on standard error."""
    span = "--through", text(RANGE.stop), "--counts-from", text(RANGE.start)
    words = "gate", "wait", TARGET, *span, "--timeout", "0s", "-c", str(world.config)
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.stderr


def kill_and_finish(world: World) -> Path:
    """A daemon is killed as soon as it writes, another one reads to the end. The sink's file."""
    database, pause, deadline = world.config.parent / "lake.db", Event(), monotonic() + 60
    first = daemon(world)
    while not database.exists() and monotonic() < deadline:
        pause.wait(0.05)
    first.kill()
    first.communicate()
    finish(world)
    return database


def finish(world: World) -> None:
    done = daemon(world, "--until-caught-up")
    said = done.communicate(timeout=60)[0]
    assert done.returncode == 0, said


def test_what_a_killed_daemon_wrote_is_counted_once(world: World) -> None:
    """Before it is in the table it can't be told. A count that is short is named by its minute."""
    world.write(busy())
    database = kill_and_finish(world)
    second = daemon(world)
    found = until_folded(world, second)
    second.send_signal(signal.SIGTERM)
    said = second.communicate(timeout=60)[0]
    assert second.returncode == 0, said
    assert (found["inserted"], found["updated"], found["deleted"]) == (36, 360, 36)
    assert (found["expected"], found["target"]["held"], found["why"]) == (432, 432, [])
    assert gate(world)[0] == 0
    with sqlite3.connect(database) as connection:
        connection.execute(
            'UPDATE "binlogd.counts" SET updated = updated - 1 WHERE minute = ?', (MINUTE + 1,)
        )
    status, found = told(world)
    assert (status, found["verdict"], found["expected"]) == (1, "differs", 432)
    assert found["target"]["differences"] == [
        {"source": f"{world.topic}:0", "minute": MINUTE + 1, "in_log": 144, "held": 143}
    ]
    assert gate(world)[0] == 75
    assert ": the target holds 143 changes of 144 in" in gate(world)[1]
    shown = world.counts(TARGET).stdout
    assert ": the target holds 143 changes of 144 in" in shown


def test_what_is_written_and_not_in_the_table_yet_cannot_be_told(world: World) -> None:
    """Status 2, with the first one's place."""
    world.write(busy(1))
    finish(world)
    with sqlite3.connect(world.config.parent / "lake.db") as connection:
        connection.execute('DROP TABLE IF EXISTS "binlogd.counts"')
    status, found = told(world)
    assert status == 2
    assert found["why"] == [f"144 changes are not counted in the target, first {world.topic}:0:4"]


def fold(world: World) -> Any:
    """All is written, and put into the table of counts, as at each start. What is told then."""
    finish(world)
    process = daemon(world)
    try:
        return until_folded(world, process)
    finally:
        process.kill()
        process.communicate()


def test_a_table_of_counts_that_is_lost_is_filled_from_the_log(world: World) -> None:
    """Until then nothing is told. A reset has the log read again, and its writes counted anew. A
    table that a database lost needs another name: its ledger knows the old one."""
    world.write(busy(1))
    before = fold(world)
    with sqlite3.connect(world.config.parent / "lake.db") as connection:
        connection.execute('DROP TABLE "binlogd.counts"')
    world.config.write_text(world.config.read_text().replace("binlogd.counts", "binlogd.anew"))
    status, found = told(world)
    assert (status, found["verdict"]) == (2, "not told")
    words = "offsets", "reset", "--to", "earliest", "--execute", "-c", str(world.config)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    after = fold(world)
    assert (after["verdict"], after["target"]["held"]) == ("agrees", before["target"]["held"])
    assert after["target"]["differences"] == []
