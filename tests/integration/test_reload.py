"""``binlogd reload`` on a running daemon: all of a changed file, or nothing."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from daemon.state import control
from tests.integration.rig import Rig, canal
from tests.integration.test_process import Follower, daemon

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


class Running:
    """A daemon with one pipeline into SQLite, its file, and what a person does to it."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.config = rig.folder / "config.toml"
        self.write()
        self.follower = Follower(rig.log_file)
        self.process = daemon("run", "--config", str(self.config))
        self.follower.wait_for("running")
        self.rows = 0

    def write(
        self, pipeline: str = "", include: str = "a", log: str = "info", second: str = ""
    ) -> None:
        """The file: tables of that name pattern, more lines of the pipeline's, and a ``second``
        pipeline for tables of that pattern."""
        folder = self.rig.folder
        self.config.write_text(f"""
            [daemon]
            state_dir = "{folder}/state"
            staging_dir = "{folder}/staging"
            commit_interval_s = 0.3
            processors = 1
            [log]
            format = "json"
            level = "{log}"
            file = "{self.rig.log_file}"
            [batch]
            max_age_s = 0.2
            [kafka]
            "bootstrap.servers" = "{self.rig.broker.bootstrap}"
            [sink.copy]
            kind = "sqlite"
            path = "copy.db"
            [pipeline.p]
            topics = ["{self.rig.topic}"]
            format = "canal-json"
            group = "g-{self.rig.db}"
            include = ["{self.rig.db}.{include}"]
            target = "copy.{{database}}.{{table}}"
            {pipeline}
        """)
        if second:
            with self.config.open("a") as file:
                file.write(self._second(second))

    def _second(self, include: str) -> str:
        return f"""
            [pipeline.second]
            topics = ["{self.rig.topic}"]
            format = "canal-json"
            group = "g2-{self.rig.db}"
            include = ["{self.rig.db}.{include}"]
            target = "copy.{{database}}.{{table}}"
        """

    def insert(self, table: str) -> None:
        self.rows += 1
        row = {"id": self.rows, "name": "x", "qty": 1}
        self.rig.produce(canal(f"{self.rig.db}.{table}", "INSERT", [row]))

    def command(self, name: str, *options: str) -> tuple[int, str, str]:
        """A command: status, what it printed, what it said."""
        process = daemon(*name.split(), *options, "--config", str(self.config))
        out, said = process.communicate(timeout=120)
        return process.returncode, out, said

    def reload(self, *options: str) -> tuple[int, str, str]:
        return self.command("reload", *options)

    def restart(self) -> None:
        """End in good order, and start again."""
        self.process.terminate()
        assert self.process.wait(60) == 0
        self.process = daemon("run", "--config", str(self.config))
        self.follower.wait_for("running")

    def applied(self, table: str, count: int) -> None:
        """Wait until a table has so many rows."""
        self.until(lambda: self.count(table) == count)

    def count(self, table: str) -> int:
        with sqlite3.connect(self.rig.folder / "copy.db") as file:
            try:
                found = file.execute(f'SELECT count(*) FROM "{self.rig.db}.{table}"').fetchone()[0]
            except sqlite3.OperationalError:
                found = 0
        file.close()
        return int(found)

    def content(self, table: str) -> list[tuple[Any, ...]]:
        """A table's rows by their keys."""
        with sqlite3.connect(self.rig.folder / "copy.db") as file:
            rows = file.execute(f'SELECT * FROM "{self.rig.db}.{table}" ORDER BY id').fetchall()
        file.close()
        return rows

    def until(self, met: Callable[[], bool]) -> None:
        """Wait until it is so."""
        end = time.monotonic() + 60
        while not met():
            assert time.monotonic() < end, self.status()
            threading.Event().wait(0.05)

    def statuses(self) -> dict[str, Any]:
        found = control.ask(self.rig.folder / "state", {"ask": "status"})["pipelines"]
        return {each["pipeline"]: each for each in found}

    def status(self) -> Any:
        return self.statuses()["p"]


@pytest.fixture
def running(rig: Rig) -> Iterator[Running]:
    made = Running(rig)
    yield made
    made.follower.close()
    if made.process.poll() is None:
        made.process.kill()
    print(made.process.communicate()[1])


def test_a_table_is_added_and_none_of_the_others_changes_is_missed(running: Running) -> None:
    """A dry run first, which changes nothing; the log level with it."""
    running.insert("a")
    running.applied("a", 1)
    running.write(include="[ab]", log="debug")
    status, shown, said = running.reload("--dry-run")
    assert (status, said) == (0, "")
    assert f'+ pipeline.p.include = ["{running.rig.db}.[ab]"]' in shown.splitlines()
    assert '+ log.level = "debug"' in shown.splitlines()
    assert running.reload("--dry-run")[1] == shown
    for _ in range(3):
        running.insert("a")
    assert running.reload() == (0, shown, "")
    assert running.reload() == (0, "nothing differs\n", "")
    running.insert("b")
    running.applied("b", 1)
    assert running.count("a") == 4
    assert running.rig.events("reloaded")[0]["pipelines"] == ["p"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("oops", "not TOML"),
        ('time_zone = "Asia/Tokyo"', "pipeline.p.time_zone: takes a restart; nothing was changed"),
        ('on_refused_target = "whatever"', "on_refused_target"),
    ],
)
def test_a_file_that_can_not_be_taken_changes_nothing(
    running: Running, text: str, said: str
) -> None:
    """Broken, or with what takes a restart. The daemon goes on."""
    running.write(text, include="[ab]")
    status, out, error = running.reload()
    assert (status, out) == (2, "")
    assert said in error
    running.insert("b")
    running.insert("a")
    running.applied("a", 1)
    assert running.count("b") == 0


def test_sighup_says_in_the_log_why_it_is_refused(running: Running) -> None:
    """Whoever sent the signal reads nothing else."""
    running.write("oops", include="[ab]")
    running.process.send_signal(signal.SIGHUP)
    running.follower.wait_for("reload_refused")


def test_sighup_reloads(running: Running) -> None:
    running.write(include="[ab]")
    running.process.send_signal(signal.SIGHUP)
    running.follower.wait_for("reload_done")
    running.insert("b")
    running.applied("b", 1)


def quarantine(running: Running) -> str:
    """Have a table refused: a number that becomes a text."""
    running.write('on_refused_target = "quarantine"', include="[ab]")
    assert running.reload()[0] == 0
    running.insert("b")
    running.applied("b", 1)
    types = {"id": "int(11)", "name": "varchar(9)", "qty": "varchar(9)"}
    row = {"id": 77, "name": "x", "qty": "many"}
    running.rig.produce(canal(f"{running.rig.db}.b", "INSERT", [row], mysqlType=types))
    running.follower.wait_for("quarantined")
    return f"copy.{running.rig.db}.b"


def test_a_route_with_a_spill_is_kept_until_it_is_given_up_by_name(running: Running) -> None:
    """What the quarantine holds has no other copy one day."""
    target = quarantine(running)
    running.write('on_refused_target = "quarantine"', include="a")
    status, _, said = running.reload()
    assert status == 2
    assert f"{target} has no route any more, and it is in quarantine" in said
    assert [t["phase"] for t in running.status()["targets"] if t["target"] == target] == [
        "quarantined"
    ]
    status, _, said = running.reload("--discard", target)
    assert (status, said) == (0, "")
    assert running.rig.events("discarded")[0]["target"] == target
    running.insert("a")
    running.applied("a", 1)


def test_two_at_once_are_one_after_the_other_or_refused(running: Running) -> None:
    """Neither half of one and half of the other."""
    running.write(include="[ab]")
    state = running.rig.folder / "state"
    begun = control.ask(state, {"ask": "operation", "name": "reload", "act": True})
    status, _, said = running.reload()
    assert (status, said) in [(0, ""), (2, "binlogd: a reload is under way already\n")]
    look = {"ask": "operation-state", "ticket": begun["ticket"]}
    running.until(lambda: control.ask(state, look)["status"] == 0)
    assert running.reload() == (0, "nothing differs\n", "")


def test_the_log_level_of_one_actor(running: Running) -> None:
    """And back; an unknown level is refused."""
    command = ["log-level", "--config", str(running.config)]
    # Of an actor without an event the answer says so.
    running.until(lambda: bool(running.rig.events("assigned")))

    def said(*more: str) -> tuple[int, str]:
        process: subprocess.Popen[str] = daemon(*command, *more)
        out, error = process.communicate(timeout=60)
        return process.returncode, out + error

    assert said("debug", "--actor", "p/fetcher") == (0, "p/fetcher: debug\n")
    assert said("default", "--actor", "p/fetcher") == (0, "p/fetcher: as configured\n")
    assert said("loud") == (2, "binlogd: a level is required: debug, info, warning, error\n")


def test_what_the_next_life_could_not_start_with_is_refused_before(running: Running) -> None:
    """Dead letters would go to a topic that can't keep them: the pipeline is not even stopped."""
    letters = f"{running.rig.topic}-letters"
    new = NewTopic(letters, 1, 1, config={"cleanup.policy": "compact"})
    admin = AdminClient({"bootstrap.servers": running.rig.broker.bootstrap})
    admin.create_topics([new])[letters].result(20)
    running.write(f'on_bad_record = "dead-letter"\ndead_letters = "topic:{letters}"', "[ab]")
    status, _, said = running.reload()
    assert (status, "letters of one key" in said) == (2, True)
    running.insert("b")
    running.insert("a")
    running.applied("a", 1)
    assert running.count("b") == 0
    assert running.rig.events("pipeline_runs_again") == []
