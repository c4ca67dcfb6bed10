"""Unique keys beside the primary one, foreign keys, triggers: what happens with each."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import OP, Column, TableSchema
from offsets.fence import Span
from tests.sparkwriter.conftest import LANE, Staging


@pytest.fixture
def people(sql, target, staging, server) -> Staging:
    """A table whose mails are unique, two rows in it."""
    text = "text" if server.is_postgres else "varchar(50)"
    sql(f"CREATE TABLE shop.{target.table} (id bigint PRIMARY KEY, note {text} UNIQUE, n int)")
    return staging


def mails(sql, target) -> list[tuple[object, ...]]:
    return sql(f"SELECT id, note FROM shop.{target.table} ORDER BY id")


@pytest.fixture
def filled(people, writer, orders) -> Staging:
    writer.write(people.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2), ("U", 3, "c", 3)), 1))
    return people


def test_unique_values_change_places_in_one_batch(filled, writer, orders, sql, target) -> None:
    """Two rows, and three in a ring."""
    writer.write(filled.batch(orders(("U", 1, "b", 1), ("U", 2, "a", 2)), 2))
    assert mails(sql, target) == [(1, "b"), (2, "a"), (3, "c")]
    ring = orders(("U", 1, "a", 1), ("U", 2, "c", 2), ("U", 3, "b", 3))
    writer.write(filled.batch(ring, 3))
    assert mails(sql, target) == [(1, "a"), (2, "c"), (3, "b")]


def test_a_value_goes_to_a_new_row(filled, writer, orders, sql, target) -> None:
    """From a row that is deleted, and from one that gets another."""
    changes = orders(("U", 9, "a", 9), ("D", 1, None, None), ("U", 8, "b", 8), ("U", 2, "x", 2))
    writer.write(filled.batch(changes, 2))
    assert mails(sql, target) == [(2, "x"), (3, "c"), (8, "b"), (9, "a")]


def test_a_swap_over_two_batches_is_refused_and_lands_with_both(
    filled, writer, orders, sql, target
) -> None:
    """Nothing of the first is written; read again together, as after a release, they land."""
    first = filled.batch(orders(("U", 1, "b", 1)), 2)
    with pytest.raises(TargetRefused, match=r"(?i)duplicate"):
        writer.write(first)
    assert mails(sql, target) == [(1, "a"), (2, "b"), (3, "c")]
    both = filled.batch(orders(("U", 1, "b", 1), ("U", 2, "a", 2)), 3)
    writer.write(replace(both, lanes={LANE: Span(1, 3)}))
    assert mails(sql, target) == [(1, "b"), (2, "a"), (3, "c")]


def test_a_swap_that_would_lose_the_users_values_is_refused(
    filled, writer, orders, sql, target
) -> None:
    """The rows would have to go and come back."""
    sql(f"ALTER TABLE shop.{target.table} ADD COLUMN mine int DEFAULT 1")
    with pytest.raises(TargetRefused, match="the column mine, which the batch does not bring"):
        writer.write(filled.batch(orders(("U", 1, "b", 1), ("U", 2, "a", 2)), 2))
    assert mails(sql, target) == [(1, "a"), (2, "b"), (3, "c")]


def test_constraints_that_can_wait_are_checked_at_the_commit(
    server, sql, writer, staging, orders, target
) -> None:
    """Then the users' values stay."""
    if not server.is_postgres:
        return
    unique = "UNIQUE (note) DEFERRABLE INITIALLY IMMEDIATE"
    columns = f"id bigint PRIMARY KEY, note text, n int, m int, {unique}"
    sql(f"CREATE TABLE shop.{target.table} ({columns})")
    writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 1))
    sql(f"UPDATE shop.{target.table} SET m = id")
    writer.write(staging.batch(orders(("U", 1, "b", 1), ("U", 2, "a", 2)), 2))
    found = sql(f"SELECT id, note, m FROM shop.{target.table} ORDER BY id")
    assert found == [(1, "b", 1), (2, "a", 2)]
    with pytest.raises(TargetRefused, match=r"(?i)duplicate"):
        writer.write(staging.batch(orders(("U", 1, "a", 1)), 3))


@pytest.fixture
def items(sql, target, staging, tmp_path, writer, orders) -> Staging:
    """A table whose rows point to orders."""
    sql(f"CREATE TABLE shop.{target.table} (id bigint PRIMARY KEY, note text, n int)")
    sql(
        f"CREATE TABLE shop.{target.table}_items (id bigint PRIMARY KEY, parent bigint,"
        f" FOREIGN KEY (parent) REFERENCES shop.{target.table} (id))"
    )
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    columns = (Column("id", pa.int64()), Column("parent", pa.int64()))
    return Staging(
        tmp_path, target._replace(table=f"{target.table}_items"), TableSchema(columns, ("id",))
    )


def item(*changes: tuple[str, int, int | None]) -> pa.Table:
    ops, ids, parents = zip(*changes, strict=True)
    numbers = pa.array(ids, pa.int64())
    return pa.table({OP: ops, "id": numbers, "parent": pa.array(parents, pa.int64())})


def test_a_row_waits_for_the_one_that_it_points_to(
    items, writer, staging, orders, sql, target
) -> None:
    """That is another target's, which comes when it comes; and so for a row that goes."""
    early = items.batch(item(("U", 5, 2)), 1)
    with pytest.raises(SinkUnavailable, match=r"(?i)foreign key"):
        writer.write(early)
    writer.write(staging.batch(orders(("U", 2, "b", 2)), 2))
    writer.write(early)
    gone = staging.batch(orders(("D", 2, None, None)), 3)
    with pytest.raises(SinkUnavailable, match=r"(?i)foreign key"):
        writer.write(gone)
    writer.write(items.batch(item(("D", 5, None)), 2))
    writer.write(gone)
    assert sql(f"SELECT id FROM shop.{target.table}") == [(1,)]


def test_a_row_that_others_point_to_is_changed_where_it_is(
    items, writer, staging, orders, sql, target
) -> None:
    """Not deleted and inserted again, which the foreign key would not allow."""
    writer.write(items.batch(item(("U", 5, 1)), 1))
    writer.write(staging.batch(orders(("U", 1, "A", 2)), 2))
    assert sql(f"SELECT note FROM shop.{target.table}") == [("A",)]


@pytest.mark.parametrize("action", ["ON DELETE CASCADE", "ON DELETE SET NULL", "ON UPDATE CASCADE"])
def test_a_foreign_key_that_changes_rows_is_refused(
    action, sql, writer, staging, orders, target
) -> None:
    """It would change rows of this table that the log changes otherwise, or not yet."""
    sql(
        f"CREATE TABLE shop.{target.table}_of (id int PRIMARY KEY)",
        f"CREATE TABLE shop.{target.table} (id bigint PRIMARY KEY, note text, n int,"
        f" FOREIGN KEY (n) REFERENCES shop.{target.table}_of (id) {action})",
    )
    with pytest.raises(TargetRefused, match=r"the foreign key .* changes rows by itself"):
        writer.write(staging.batch(orders(("U", 1, "a", None)), 1))


def test_rows_that_point_to_rows_of_their_own_table(
    server, sql, writer, staging, orders, target
) -> None:
    """PostgreSQL looks at the end of a statement. MySQL would look row by row: refused."""
    sql(
        f"CREATE TABLE shop.{target.table} (id bigint PRIMARY KEY, note text, n bigint,"
        f" FOREIGN KEY (n) REFERENCES shop.{target.table} (id))"
    )
    columns = (*staging.schema.columns[:2], Column("n", pa.int64()))
    rows = pa.table({OP: ["U", "U"], "id": [1, 2], "note": ["a", "b"], "n": [2, None]})
    batch = staging.batch(rows, 1, schema=TableSchema(columns, ("id",)))
    if server.is_postgres:
        writer.write(batch)
        assert len(sql(f"SELECT id FROM shop.{target.table}")) == 2
    else:
        with pytest.raises(TargetRefused, match="points to its own table, and is checked row by"):
            writer.write(batch)


def test_triggers_run_for_each_row_that_changes(
    server, sql, writer, staging, orders, target
) -> None:
    """An update is one, not a delete and an insert."""
    log = f"shop.{target.table}_log"
    sql(f"CREATE TABLE {log} (what varchar(10))")
    sql(f"CREATE TABLE shop.{target.table} (id bigint PRIMARY KEY, note text, n int)")
    if server.is_postgres:
        sql(
            f"CREATE FUNCTION shop.{target.table}_f() RETURNS trigger LANGUAGE plpgsql AS "
            f"'BEGIN INSERT INTO {log} VALUES (TG_OP); RETURN NULL; END'",
            f"CREATE TRIGGER t AFTER INSERT OR UPDATE OR DELETE ON shop.{target.table}"
            f" FOR EACH ROW EXECUTE FUNCTION shop.{target.table}_f()",
        )
    else:
        for what in ("INSERT", "UPDATE", "DELETE"):
            sql(
                f"CREATE TRIGGER shop.{target.table}_{what} AFTER {what} ON shop.{target.table}"
                f" FOR EACH ROW INSERT INTO {log} VALUES ('{what}')"
            )
    writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 1))
    writer.write(staging.batch(orders(("U", 1, "A", 1), ("D", 2, None, None)), 2))
    found = [what for (what,) in sql(f"SELECT what FROM {log}")]
    assert sorted(found) == ["DELETE", "INSERT", "INSERT", "UPDATE"]
