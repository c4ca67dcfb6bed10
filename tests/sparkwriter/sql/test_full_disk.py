"""The disk of the target's database gets full: the write waits, whole, until there is room."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from changes.model.errors import SinkUnavailable
from changes.model.model import OP, AddColumn, ChangeColumn, Column, TargetName
from databases.base.errors import DatabaseError
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.store import JdbcStore
from tests.needs import missing
from tests.sparkwriter.conftest import LANE, Staging
from tests.sparkwriter.databases import Server, running
from tests.sparkwriter.small_disk import NoMount, fill, small_disk

pytestmark = pytest.mark.long

FULL = r"(?i)no space left|could not extend|is full|disk full|lost connection|can't connect"
"""What PostgreSQL and MySQL say of it. MariaDB may end."""


@pytest.fixture(params=["postgres", "mariadb", pytest.param("mysql", marks=pytest.mark.soak)])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """One of the test's own: a full disk may end it."""
    with running(request.param) as made:
        yield made


@pytest.fixture
def disk(server: Server) -> Iterator[Path]:
    """A disk of 32 MB for the schema ``small``."""
    try:
        with small_disk(server, "small", "32m") as folder:
            yield folder
    except NoMount as error:
        missing("mount", str(error))


def rows(ids: range, note: str) -> pa.Table:
    """Of 500 bytes each."""
    numbers = pa.array(ids, pa.int64())
    notes, small = [note * 500] * len(ids), pa.array([1] * len(ids), pa.int32())
    return pa.table({OP: ["U"] * len(ids), "id": numbers, "note": notes, "n": small})


def start_again(server: Server) -> None:
    """What a supervisor does with a server that a full disk has ended, or is ending just now."""
    end = time.monotonic() + 60
    while not answers(server):
        assert time.monotonic() < end
        if not server.program.program.runs:
            server.program.start()
        threading.Event().wait(0.1)


def answers(server: Server) -> bool:
    """Whether a session can be had."""
    try:
        server.connect().close()
    except DatabaseError:
        return False
    return True


def test_a_disk_that_is_full(server, disk, tables, target, staging) -> None:
    """The server's own answer is shown and the batch is tried again: nothing of it is there before
    it lands, once."""
    here = TargetName("db", "small", target.table)
    own = Staging(staging.folder, here, staging.schema)
    store = JdbcStore(server.connect, "binlogd")
    writer = LedgeredWriter(store)
    writer.write(own.batch(rows(range(100), "a"), 1))
    ballast = fill(disk)
    batch = own.batch(rows(range(50, 20000), "b"), 2)
    for _ in range(2):
        with pytest.raises(SinkUnavailable, match=FULL):
            writer.write(batch)
    start_again(server)
    assert tables.read(here)["note"].to_pylist() == ["a" * 500] * 100
    ballast.unlink()
    start_again(server)
    assert not writer.write(batch).covered
    found = tables.read(here)
    assert sorted(found["id"].to_pylist()) == list(range(20000))
    assert found["note"].to_pylist().count("a" * 500) == 50
    store.close()


def test_a_table_that_has_no_room_to_be_made(server, disk, tables, target, staging) -> None:
    """It is made once there is."""
    here = TargetName("db", "small", target.table)
    own = Staging(staging.folder, here, staging.schema)
    store = JdbcStore(server.connect, "binlogd")
    assert store.ledger
    ballast = fill(disk)
    batch = own.batch(rows(range(20000), "b"), 1)
    with pytest.raises(SinkUnavailable, match=FULL):
        LedgeredWriter(store).write(batch)
    ballast.unlink()
    start_again(server)
    LedgeredWriter(store).write(batch)
    assert tables.read(here).num_rows == 20000
    store.close()


def test_a_statement_that_has_no_room(server, disk, tables, target, staging, orders) -> None:
    """A new table's or column's file can't be written: it waits, too, and is done once."""
    here = TargetName("db", "small", target.table)
    own = Staging(staging.folder, here, staging.schema)
    store = JdbcStore(server.connect, "binlogd")
    writer = LedgeredWriter(store)
    writer.write(own.batch(orders(("U", 1, "a", 1)), 1))
    wider = ChangeColumn("n", Column("n", pa.int64()))
    batch = own.batch(None, 2, ddl=[[AddColumn(Column("m", pa.string()), "x"), wider]])
    ballast = fill(disk)
    with contextlib.suppress(SinkUnavailable):  # PostgreSQL needs no file for a small table
        writer.write(batch)
    ballast.unlink()
    start_again(server)
    assert writer.write(batch).hwms == {LANE: 2}
    assert tables.read(here).to_pylist() == [{"id": 1, "note": "a", "n": 1, "m": "x"}]
    store.close()
