"""The drill of docs/positions.md: the state directory is lost, and the catalog is yesterday's.

On the run's lake: a folder with SQLite, or what TEST_LAKE names (``make test-lake SUITES=faults``).
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from changes.model.errors import SinkUnavailable
from changes.model.model import TargetName
from daemon.cli.__main__ import app
from offsets.recovery import NO_FILE
from settings.exit import Exit
from sparkwriter.iceberg.sink import IcebergWriter
from tests.integration.rig import Rig, canal
from tests.lake.lakes import Lake

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

TABLES = ("orders", "orders_log")


@pytest.fixture
def names(lake: Lake) -> Path:
    """The catalog's file of SQLite."""
    if lake.name == "jdbc-folder":
        assert lake.folder is not None
        return lake.folder / "catalog.db"
    if lake.name.startswith("rest"):
        return Path(lake.servers["catalog"].folder) / "catalog.db"  # type: ignore[attr-defined]
    pytest.skip(f"the catalog of {lake.name} is no file of SQLite")


@contextmanager
def catalog(names: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(names, timeout=30)) as connection, connection:
        yield connection


def back_up(rig: Rig, names: Path) -> list[tuple[Any, ...]]:
    """The catalog's rows of the rig's tables."""
    with catalog(names) as rows:
        return rows.execute(
            "SELECT metadata_location, previous_metadata_location, table_name FROM iceberg_tables"
            " WHERE table_namespace = ?", (rig.db,),
        ).fetchall()  # fmt: skip


def lose(rig: Rig, names: Path, backup: list[tuple[Any, ...]]) -> None:
    """The state is gone, and the catalog restored."""
    shutil.rmtree(rig.folder / "state")
    with catalog(names) as rows:
        for now, before, table in backup:
            rows.execute(
                "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?"
                " WHERE table_namespace = ? AND table_name = ?", (now, before, rig.db, table),
            )  # fmt: skip


def change(rig: Rig, kind: str, key: int, name: str, **more: Any) -> bytes:
    return canal(f"{rig.db}.orders", kind, [{"id": key, "name": name, "qty": key}], **more)


def config(rig: Rig) -> Path:
    """A keyed table and its changelog."""
    routes = [
        {"target": "lake.{database}.{table}"},
        {"target": "lake.{database}.{table}_log", "mode": "append"},
    ]
    return rig.write_config(p=rig.pipeline(target=None, route=routes))


def two_days(rig: Rig, names: Path) -> list[tuple[Any, ...]]:
    """Yesterday's changes, the backup, today's changes."""
    rig.produce(*(change(rig, "INSERT", key, "yesterday") for key in (1, 2, 3)))
    assert rig.run(config(rig)) is Exit.OK
    backup = back_up(rig, names)
    rig.produce(
        change(rig, "UPDATE", 1, "today", old=[{"name": "yesterday"}]),
        change(rig, "DELETE", 2, "yesterday"),
        change(rig, "INSERT", 4, "today"),
    )
    assert rig.run(config(rig)) is Exit.OK
    return backup


def check(rig: Rig) -> None:
    """Equal to the source, and each change once."""
    assert rig.rows("orders") == [
        (1, "today", 1),
        (3, "yesterday", 3),
        (4, "today", 4),
        (5, "later", 5),
    ]
    log = rig.spark.sql(f"SELECT _offset FROM lake.`{rig.db}`.orders_log ORDER BY 1").collect()
    assert [row[0] for row in log] == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("news", [False, True], ids=["at once", "after a write"])
def test_the_tables_are_there_as_of_yesterday(rig: Rig, names: Path, news: bool) -> None:
    """The start takes the group's commit and warns; the command that the warning names reads what
    the tables lack, also where one has been written meanwhile."""
    lose(rig, names, two_days(rig, names))
    later = change(rig, "INSERT", 5, "later")
    if news:
        rig.produce(later)
    assert rig.run(config(rig)) is Exit.OK
    (warned,) = [line for line in rig.log_file.read_text().splitlines() if NO_FILE in line]
    assert json.loads(warned)["level"] == "warning"
    if not news:
        rig.produce(later)
    command = ["offsets", "reset", "--to", "earliest", "--execute", "-c", str(config(rig))]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert rig.run(config(rig)) is Exit.OK
    check(rig)


def test_the_files_of_yesterday_have_expired(rig: Rig, names: Path) -> None:
    """The catalog names metadata that is gone: the newest that lies in the table's folder is
    registered, and holds the marks, so nothing is read again."""
    backup = two_days(rig, names)
    newest = {table: now for now, _, table in back_up(rig, names)}
    away = [(now.replace("/metadata/", "/metadata/expired-"), *more) for now, *more in backup]
    lose(rig, names, away)
    with pytest.raises(SinkUnavailable, match="expired-"):
        IcebergWriter(rig.spark).open(TargetName("lake", rig.db, "orders"))
    for table, metadata in newest.items():
        with catalog(names) as rows:  # DROP TABLE would read the metadata first
            where = "table_namespace = ? AND table_name = ?"
            rows.execute(f"DELETE FROM iceberg_tables WHERE {where}", (rig.db, table))
        rig.spark.sql(
            f"CALL lake.system.register_table(table => '{rig.db}.{table}',"
            f" metadata_file => '{metadata}')"
        )
    rig.produce(change(rig, "INSERT", 5, "later"))
    assert rig.run(config(rig)) is Exit.OK
    check(rig)
