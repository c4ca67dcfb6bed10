"""A name that a table gave up by ALTER TABLE … RENAME, and that is created again after a restart of
the reader: Debezium still has the former table there."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from tests.collector.running import Running, records, rows, running
from tests.collector.sources.test_daemon import _FILE, Run
from tests.collector.sources.test_mariadb import source

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]

AWAY = {
    "a": "ALTER TABLE {0}.a RENAME TO {0}.a2",
    "b": "RENAME TABLE {0}.b TO {0}.b2",
    "c": "ALTER TABLE {0}.c ADD COLUMN z INT, RENAME TO {0}.c2",
    "d": "DROP TABLE {0}.d",
    "e": "ALTER TABLE {0}.e RENAME {0}.e2",
    "f": "ALTER TABLE {0}.f RENAME TO {0}.f2",
}
"""How each table's name is given up."""


def made(mariadb: MariaDb, name: str, tables: str) -> None:
    assert not mariadb.run([f"CREATE DATABASE {name}", *(
        f"CREATE TABLE {name}.{table} (id INT PRIMARY KEY, a INT, b INT)" for table in tables
    )])  # fmt: skip


def again(name: str, table: str, optional: str = "") -> list[str]:
    """Equally many columns, of other names."""
    columns = "(id INT PRIMARY KEY, x INT, y INT)"
    created = f"CREATE TABLE {optional} {name}.{table} {columns}"
    return [created, f"INSERT INTO {name}.{table} VALUES (5, 10, 20)"]


def restarted(it: Running) -> None:
    """Stopped and started, as people do it."""
    shop = it.collectors.of("shop")
    assert shop is not None
    shop.hands.pause()
    it.until("paused")
    shop.hands.resume()
    it.until("running")


@pytest.mark.parametrize("killed", [True, False])
def test_what_debezium_makes_of_it(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str, killed: bool
) -> None:
    """Its rows have the former columns' names, and the record of its CREATE TABLE has no
    ``tableChanges``. Where this fails, Debezium was mended: then ``ignored_create`` can go."""
    made(mariadb, name, "abcdef")
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not mariadb.run([each.format(name) for each in AWAY.values()])
        assert not mariadb.run([f"INSERT INTO {name}.a2 VALUES (1, 1, 1)"])
        it.until("running", lambda f: len(rows(broker, name, "a2")) == 1)
        starts = it.keeper.figures()[0].starts
        if killed:
            it.kill_worker()
            it.until("running", lambda f: it.keeper.figures()[0].starts > starts)
        else:
            restarted(it)
        for table in AWAY:
            if table == "f":  # so Debezium forgets the name
                assert not mariadb.run([f"DROP TABLE IF EXISTS {name}.f"])
            assert not mariadb.run(again(name, table, "IF NOT EXISTS" if table == "e" else ""))
        it.until("running", lambda f: bool(rows(broker, name, "f")))
        told = [one for one in records(broker, name) if "CREATE TABLE" in one.get("ddl", "")]
        ignored = [one["ddl"].split("(")[0] for one in told if not one["tableChanges"]]
        assert ignored == [
            f"CREATE TABLE  {name}.a ", f"CREATE TABLE  {name}.c ",
            f"CREATE TABLE IF NOT EXISTS {name}.e ",
        ]  # fmt: skip
        for table in AWAY:
            (row,) = (one["after"] for one in rows(broker, name, table))
            former = table in "ace"
            assert row == ({"id": 5, "a": 10, "b": 20} if former else {"id": 5, "x": 10, "y": 20})


def test_with_another_number_of_columns_it_fails_and_a_reset_leads_out(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """By name, at each start, with the command."""
    made(mariadb, name, "a")
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not mariadb.run([AWAY["a"].format(name), f"INSERT INTO {name}.a2 VALUES (1, 1, 1)"])
        it.until("running", lambda f: len(rows(broker, name, "a2")) == 1)
        restarted(it)
        wide = f"CREATE TABLE {name}.a (id INT PRIMARY KEY, x INT, y INT, z INT)"
        assert not mariadb.run([wide, f"INSERT INTO {name}.a VALUES (5, 10, 20, 30)"])
        found = it.until("failed")
        assert "internal schema size 3, but row size 4" in found["reason"]
        assert "binlogd collector reset shop" in found["reason"]
        it.collectors.of("shop").hands.reset()  # type: ignore[union-attr]
        it.until("running", lambda f: it.loads == [(f"{name}.*",)])
        assert not mariadb.run([f"INSERT INTO {name}.a VALUES (6, 10, 20, 30)"])
        it.until("running", lambda f: bool(rows(broker, name, "a")))
        assert rows(broker, name, "a")[0]["after"] == {"id": 6, "x": 10, "y": 20, "z": 30}


def stored(run: Run, table: str) -> list[dict[str, Any]]:
    """The rows of a target."""
    with sqlite3.connect(run.folder / "copy.db") as copy:
        copy.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in copy.execute(f'SELECT * FROM "{table}" ORDER BY id')]
        except sqlite3.OperationalError:
            return []


def stopped(run: Run, mariadb: MariaDb, name: str) -> None:
    """It ends at the CREATE TABLE, by name, after a restart behind the renaming."""
    run.start()
    run.until(run.reads)
    assert not mariadb.run([
        f"INSERT INTO {name}.a VALUES (1, 1, 1)", f"ALTER TABLE {name}.a RENAME TO {name}.a2",
        f"CREATE TABLE {name}.k (id INT PRIMARY KEY, v INT)",
    ])  # fmt: skip
    run.until(lambda: len(stored(run, f"{name}.a2")) == 1)
    run.kill()
    run.start()
    run.until(run.reads)
    assert not mariadb.run([
        f"INSERT INTO {name}.k VALUES (1, 1)", *again(name, "a"),
        f"INSERT INTO {name}.b VALUES (1, 1, 1)",
    ])  # fmt: skip
    assert run.process is not None
    assert run.process.wait(100) == 1
    assert "CREATE TABLE that Debezium passed over" in (run.folder / "log").read_text()


def test_its_target_is_refused_by_name_and_a_reset_leads_out(
    tmp_path: Path, mariadb: MariaDb, name: str
) -> None:
    """No row is stored under a former column, also by the next start; the other targets go on where
    they may. A CREATE TABLE that the reader sends again is not refused."""
    made(mariadb, name, "ab")
    text = _FILE.format(
        broker="[broker]\nembedded = true", name=name, database=source(mariadb)
    ).replace("[daemon]", "[daemon]\nexit_when_stopped = true")
    stopped(Run(tmp_path, text), mariadb, name)
    run = Run(tmp_path, f'{text}on_refused_target = "quarantine"\n')
    run.start()
    run.until(lambda: len(stored(run, f"{name}.b")) == 1)
    run.until(lambda: "quarantined" in (tmp_path / "log").read_text())
    assert stored(run, f"{name}.k") == [{"id": 1, "v": 1}]
    assert not stored(run, f"{name}.a")
    run.until(run.reads)
    assert run.command("collector", "reset", "shop", "--execute").returncode == 0
    ids = iter(range(100, 1000))

    def loaded() -> bool:
        # A load ends at a change that is behind it.
        assert not mariadb.run([f"INSERT INTO {name}.a VALUES ({next(ids)}, 1, 2)"])
        return any(row["id"] == 5 for row in stored(run, f"{name}.a"))

    run.until(loaded)
    assert stored(run, f"{name}.a")[0] == {"id": 5, "x": 10, "y": 20}
    assert run.kill(signal.SIGTERM) == 0
