"""Somebody alters, drops or makes a table again while it is written: never without a word."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from changes.model.errors import LostRace, TargetRefused
from offsets.fence import Fenced, Straggler
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.sql.store import JdbcStore
from tests.sparkwriter.conftest import LANE

GONE = "column note was dropped or renamed by somebody else: give it its name again; `binlogd"
ALTERED = {
    "DROP COLUMN note": GONE,
    "RENAME COLUMN note TO remark": GONE,
    "ADD COLUMN more int NOT NULL": "column more has no default and may not be NULL",
}


@pytest.mark.parametrize("change", ALTERED)
def test_a_table_that_somebody_altered(
    change, tables, writer, table, sql, orders, rebuilt, rows_of, target
) -> None:
    """It is refused by name, nothing of the batch is there, and the command that is named works."""
    default = " DEFAULT 1" if "more" in change else ""
    sql(f"ALTER TABLE shop.{target.table} {change}{default}")
    if default:
        sql(f"ALTER TABLE shop.{target.table} ALTER COLUMN more DROP DEFAULT")
    before = sql(f"SELECT id, n FROM shop.{target.table} ORDER BY id")
    with pytest.raises(TargetRefused, match=ALTERED[change]):
        writer.write(table.batch(orders(("U", 1, "b", 1)), 2))
    assert sql(f"SELECT id, n FROM shop.{target.table} ORDER BY id") == before
    tables.swaps().swap(rebuilt())
    assert rows_of() == [(1, "right", 1), (2, "b", 20)]


def test_a_column_that_somebody_adds_is_his(writer, table, sql, orders, target) -> None:
    """It keeps its values."""
    sql(f"ALTER TABLE shop.{target.table} ADD COLUMN more int NOT NULL DEFAULT 1")
    assert writer.write(table.batch(orders(("U", 1, "b", 1)), 2)).hwms == {LANE: 2}
    found = sql(f"SELECT id, note, n, more FROM shop.{target.table} ORDER BY id")
    assert found == [(1, "b", 1, 1), (2, "b", 20, 1)]


def test_a_column_that_may_not_be_null_any_more(
    server, writer, table, sql, orders, rows_of, target
) -> None:
    """A row that has none there is refused; once it may be null again the same batch lands."""
    alter = f"ALTER TABLE shop.{target.table} "
    on, off = (
        ("ALTER COLUMN n SET NOT NULL", "ALTER COLUMN n DROP NOT NULL")
        if server.is_postgres
        else ("MODIFY n int NOT NULL", "MODIFY n int")
    )
    sql(alter + on)
    batch = table.batch(orders(("U", 1, "z", 1), ("U", 3, "c", None)), 2)
    with pytest.raises(TargetRefused, match=r"(?i)null"):
        writer.write(batch)
    assert rows_of() == [(1, "a", 10), (2, "b", 20)]
    sql(alter + off)
    writer.write(batch)
    assert rows_of() == [(1, "z", 1), (2, "b", 20), (3, "c", None)]


def test_a_unique_index_that_somebody_adds(
    server, writer, table, sql, orders, rows_of, target
) -> None:
    """A row that it does not allow is refused, and replaces no other; values may change places."""
    sql(f"CREATE UNIQUE INDEX u_{target.table} ON shop.{target.table} (n)")
    writer.write(table.batch(orders(("U", 1, "a", 20), ("U", 2, "b", 10)), 2))
    batch = table.batch(orders(("U", 3, "c", 20)), 3)
    with pytest.raises(TargetRefused, match=r"(?i)unique|duplicate"):
        writer.write(batch)
    assert rows_of() == [(1, "a", 20), (2, "b", 10)]
    on = "" if server.is_postgres else f" ON shop.{target.table}"
    schema = "shop." if server.is_postgres else ""
    sql(f"DROP INDEX {schema}u_{target.table}{on}")
    writer.write(batch)
    assert rows_of() == [(1, "a", 20), (2, "b", 10), (3, "c", 20)]


NARROWED = {
    "timestamp": (
        pa.array([datetime(2024, 1, 1, 1, 1, 1, 999999)], pa.timestamp("us")),
        ("timestamp(0)", "datetime"),
    ),
    "double": (pa.array([1 / 3]), ("real", "float")),
    "decimal(10, 3)": (
        pa.array([1], pa.decimal128(10, 3)), ("numeric(10,2)", "decimal(10,2)"),
    ),
    "string": (pa.array(["a "]), ("character(9)", "char(9)")),
}  # fmt: skip


@pytest.mark.parametrize("type_", NARROWED)
def test_a_column_that_is_made_narrower(type_, server, sql, writer, typed, target) -> None:
    """It would round or pad from then on."""
    values, (postgres, mysql) = NARROWED[type_]
    writer.write(typed(1, id=pa.array([1], pa.int64()), v=values))
    change = f"ALTER COLUMN v TYPE {postgres}" if server.is_postgres else f"MODIFY v {mysql}"
    sql(f"ALTER TABLE shop.{target.table} {change}")
    said = (
        rf"column v is .*which does not hold {type_.split('(')[0]}.* exactly.*`binlogd tables reb"
    )
    with pytest.raises(TargetRefused, match=said):
        writer.write(typed(2, 1, id=pa.array([2], pa.int64()), v=values))


def test_a_column_that_takes_fewer_values(server, sql, writer, typed, tables, target) -> None:
    """What does not fit any more is refused when it comes, and not cut."""
    ids = pa.array([1], pa.int64())
    writer.write(typed(1, id=ids, v=pa.array([1], pa.int64()), t=pa.array(["abc"])))
    changes = (
        "ALTER COLUMN v TYPE smallint, ALTER COLUMN t TYPE varchar(3)"
        if server.is_postgres
        else "MODIFY v smallint, MODIFY t varchar(3)"
    )
    sql(f"ALTER TABLE shop.{target.table} {changes}")
    with pytest.raises(TargetRefused, match=r"(?i)out of range"):
        writer.write(typed(2, 1, id=ids, v=pa.array([2**40]), t=pa.array(["abc"])))
    with pytest.raises(TargetRefused, match="a text of 4 characters"):
        writer.write(typed(2, 1, id=ids, v=pa.array([1]), t=pa.array(["abcd"])))
    assert tables.read(target).to_pylist() == [{"id": 1, "v": 1, "t": "abc"}]


def again(server: Any, sql: Any, name: str) -> str:
    """What makes a table of the same columns; of MySQL's with its comment, stamp and all."""
    if server.is_postgres:
        return f"CREATE TABLE {name} (id bigint PRIMARY KEY, note text, n int)"
    session = server.connect()
    ((_, text),) = session.rows(f"SHOW CREATE TABLE {name}")
    session.close()
    return text.replace("CREATE TABLE `", "CREATE TABLE shop.`", 1)


def after_a_second(sql: Any, server: Any, name: str) -> None:
    """MySQL tells a table's age in seconds."""
    if server.is_postgres:
        return
    query = "SELECT 1 FROM information_schema.TABLES WHERE CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) = "
    while not sql(f"{query}'{name}' AND CREATE_TIME < NOW()"):
        sql("DO SLEEP(0.05)")


def test_a_table_that_somebody_dropped_and_made_again(
    server, writer, table, sql, orders, rows_of, target
) -> None:
    """Its marks are not those of the new one, which has no rows: they would be missing for ever.
    After a reset it is written from its begin."""
    name = f"shop.{target.table}"
    make = again(server, sql, name)
    after_a_second(sql, server, name)
    sql(f"DROP TABLE {name}", make)
    with capture_logs() as logs, pytest.raises(Straggler, match="stands at -1, expected 1"):
        writer.write(table.batch(orders(("U", 1, "b", 1)), 2))
    assert [entry["event"] for entry in logs] == ["table_made_again"]
    assert writer.open(target).hwms == {}
    rows = orders(("U", 1, "a", 10), ("U", 2, "b", 20))
    assert writer.write(table.batch(rows, 2, after=-1)).hwms == {LANE: 2}
    writer.write(table.batch(orders(("U", 1, "c", 1)), 3))
    assert rows_of() == [(1, "c", 1), (2, "b", 20)]


def test_a_table_with_rows_that_somebody_made_again(
    server, writer, table, sql, orders, target
) -> None:
    """In PostgreSQL it is certain. MySQL can't tell that from an ALTER TABLE: it is a warning with
    the command that finds what differs, once."""
    name = f"shop.{target.table}"
    make = again(server, sql, name)
    after_a_second(sql, server, name)
    sql(f"DROP TABLE {name}", make, f"INSERT INTO {name} VALUES (1, 'old', 1)")
    batch = table.batch(orders(("U", 2, "c", 1)), 2)
    if server.is_postgres:
        with pytest.raises(Straggler):
            writer.write(batch)
        return
    with capture_logs() as logs:
        writer.write(batch)
        writer.write(table.batch(orders(("U", 2, "d", 1)), 3))
    (entry,) = [e for e in logs if e["event"] == "table_altered_by_others"]
    assert entry["compare"] == f"binlogd tables verify {target}"


def test_what_leaves_a_table_the_same_is_not_told(
    server, writer, table, sql, orders, target
) -> None:
    """An index in PostgreSQL; in both a start of the ledger in another database, as of a copy."""
    with capture_logs() as logs:
        if server.is_postgres:
            sql(f"CREATE INDEX i_{target.table} ON shop.{target.table} (n)")
            writer.write(table.batch(orders(("U", 1, "b", 1)), 2))
        writer.tables.ledger.identity = "of another database"
        assert writer.write(table.batch(orders(("U", 1, "c", 1)), 3)).hwms == {LANE: 3}
    assert logs == []


def test_a_table_that_somebody_dropped(server, table, writer, sql, orders, target) -> None:
    """The marks have gone with it; made again it is a new one."""
    sql(f"DROP TABLE shop.{target.table}")
    assert writer.open(target).hwms == {}
    with pytest.raises(Fenced):
        writer.write(table.batch(orders(("U", 1, "b", 1)), 2))
    assert writer.write(table.batch(orders(("U", 1, "b", 1)), 2, after=-1)).hwms == {LANE: 2}


def test_a_table_that_somebody_renamed(server, table, writer, sql, orders, rows_of, target) -> None:
    """As one that was dropped; with its name it goes on."""
    name, away = f"shop.{target.table}", f"{target.table}_away"
    back = f"ALTER TABLE shop.{away} RENAME TO {target.table if server.is_postgres else name}"
    sql(f"ALTER TABLE {name} RENAME TO {away if server.is_postgres else f'shop.{away}'}")
    batch = table.batch(orders(("U", 1, "b", 1)), 2)
    with pytest.raises(Straggler):
        writer.write(batch)
    sql(back)
    store = JdbcStore(server.connect, "binlogd")
    assert LedgeredWriter(store).write(batch).hwms == {LANE: 2}
    store.close()
    assert rows_of() == [(1, "b", 1), (2, "b", 20)]


class Meddling:
    """A session beside which somebody does something before its next transaction."""

    def __init__(self, session: Any, act: Any) -> None:
        self._session, self._left = session, [act]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def begin(self) -> None:
        if self._left:
            self._left.pop()()
        self._session.begin()


def test_a_table_that_is_made_again_between_look_and_write(
    server, table, sql, orders, target
) -> None:
    """The rows that come into the new one do not hide that it has no others."""
    name = f"shop.{target.table}"
    make = again(server, sql, name)
    after_a_second(sql, server, name)
    store = JdbcStore(lambda: Meddling(server.connect(), replace), "binlogd")

    def replace() -> None:
        sql(f"DROP TABLE {name}", make)

    writer = LedgeredWriter(store)
    batch = table.batch(orders(("U", 1, "b", 1)), 2)
    if server.is_postgres:
        writer.write(batch)
        batch = table.batch(orders(("U", 1, "c", 1)), 3)
    else:
        with pytest.raises(LostRace, match="recreated the table meanwhile"):
            writer.write(batch)
    with pytest.raises(Straggler):
        writer.write(batch)
    store.close()
