"""The SQL text of a write: names, literals, and which statement it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.contract.writes import StagedBatch
from changes.model.model import OP, Column, KeyBound, Mode, TableSchema, TargetName
from changes.sql.spark.guards import Guard
from changes.sql.spark.schema import LakeColumn
from changes.sql.spark.words import dotted, quote, string_literal
from sparkwriter.iceberg.plan import literal, merge_sql, read_schema, removal_sql, rows_sql

SCHEMA = TableSchema((Column("id", pa.int64()), Column("a", pa.string())), ("id",))
COLUMNS = (LakeColumn("id", "long"), LakeColumn("a", "string"))
BATCH = StagedBatch(
    "1", TargetName("lake", "db", "t"), Mode.UPSERT, SCHEMA, {}, bounds=(KeyBound("ID", 3, 9),)
)


def sql(
    batch: StagedBatch = BATCH,
    *,
    staged: tuple[str, ...] = (OP, "id", "a"),
    columns: tuple[LakeColumn, ...] = COLUMNS,
) -> str:
    return merge_sql(batch, columns, staged, "S")


def test_merge() -> None:
    """An upsert is one MERGE: bounded by the keys, deletes, updates, inserts."""
    assert sql() == (
        "MERGE INTO `target` t USING S s\n"
        "ON t.`id` = s.`id`"
        " AND t.`id` BETWEEN CAST('3' AS BIGINT) AND CAST('9' AS BIGINT)\n"
        "WHEN MATCHED AND s.`__binlogd_op` <> 'U' THEN DELETE\n"
        "WHEN MATCHED THEN UPDATE SET t.`a` = s.`a`\n"
        "WHEN NOT MATCHED AND s.`__binlogd_op` = 'U' THEN INSERT (`id`, `a`)"
        " VALUES (s.`id`, s.`a`)"
    )


def test_what_new_rows_lack_is_filled_where_that_is_known() -> None:
    """Wholly or row by row; stored rows keep what they have."""
    columns = (*COLUMNS, LakeColumn("B", "int"), LakeColumn("c", "int"))
    batch = replace(BATCH, partial=("a",), bounds=())
    text = merge_sql(batch, columns, (OP, "id", "a"), "S", fillings={"a": "'x'", "b": "7"})
    chosen = "CASE WHEN s.`__binlogd_has_a` THEN s.`a` ELSE 'x' END"
    assert text.endswith(f"INSERT (`id`, `a`, `B`, `c`) VALUES (s.`id`, {chosen}, 7, NULL)")
    assert "UPDATE SET t.`a` = CASE WHEN s.`__binlogd_has_a` THEN s.`a` ELSE t.`a` END\n" in text
    assert f"{chosen} AS `a`, 7 AS `B`, NULL AS `c`" in rows_sql(
        batch, columns, (OP, "id", "a"), "S", fillings={"a": "'x'", "b": "7"}
    )


GUARD = Guard("uuid", "D")
POSITIONED = (*COLUMNS, LakeColumn("__binlogd_pos", "string"))


STAGED = (OP, "id", "a", "__binlogd_pos")


def test_guarded_merge() -> None:
    """No row that is older than the stored one or a tombstone; the rest is as without a guard."""
    assert merge_sql(BATCH, POSITIONED, STAGED, "S", GUARD) == (
        "MERGE INTO `target` t USING (\n"
        "  SELECT s.* FROM S s\n"
        "  LEFT ANTI JOIN D t ON t.__binlogd_of = 'uuid' AND t.`id` <=> s.`id`"
        " AND t.`id` BETWEEN CAST('3' AS BIGINT) AND CAST('9' AS BIGINT)"
        " AND t.__binlogd_pos > s.__binlogd_pos\n) s\n"
        "ON t.`id` = s.`id`"
        " AND t.`id` BETWEEN CAST('3' AS BIGINT) AND CAST('9' AS BIGINT)\n"
        "WHEN MATCHED AND s.`__binlogd_op` <> 'U'"
        " AND s.__binlogd_pos >= coalesce(t.__binlogd_pos, '') THEN DELETE\n"
        "WHEN MATCHED AND s.`__binlogd_op` = 'U'"
        " AND s.__binlogd_pos >= coalesce(t.__binlogd_pos, '')"
        " THEN UPDATE SET t.`a` = s.`a`, t.`__binlogd_pos` = s.`__binlogd_pos`\n"
        "WHEN NOT MATCHED AND s.`__binlogd_op` = 'U' THEN INSERT (`id`, `a`, `__binlogd_pos`)"
        " VALUES (s.`id`, s.`a`, s.`__binlogd_pos`)"
    )


def test_guarded_insert_into_an_empty_table() -> None:
    """An empty table may have tombstones."""
    assert "LEFT ANTI JOIN D" in rows_sql(BATCH, POSITIONED, STAGED, "S", GUARD)
    assert "ANTI" not in rows_sql(BATCH, POSITIONED, STAGED, "S", Guard("uuid"))


def test_key_without_bounds() -> None:
    """A key part without bounds may be null, so it is compared by the null-safe equality."""
    assert "ON t.`id` <=> s.`id`\n" in sql(replace(BATCH, bounds=()))


def test_partial_columns() -> None:
    """Where the change did not carry the column, the stored value stays."""
    text = sql(replace(BATCH, partial=("a",)), staged=(OP, "id", "a", "__binlogd_has_a"))
    assert "t.`a` = CASE WHEN s.`__binlogd_has_a` THEN s.`a` ELSE t.`a` END" in text


MOVED = (OP, "id", "a", "__binlogd_from", "__binlogd_from_id")


def test_moved_rows_that_lack_nothing() -> None:
    """A row that came from another key with all columns needs nothing of that."""
    assert sql(staged=MOVED) == sql()


def test_moved_rows_take_the_rest_from_their_old_key() -> None:
    """The source is the file joined to the target by the old key; what is copied is then given."""
    columns = (*COLUMNS, LakeColumn("b", "int"))
    text = sql(replace(BATCH, partial=("a",)), staged=(*MOVED, "__binlogd_has_a"), columns=columns)
    source, merge = text.split(") s\nON ")
    assert source == (
        "MERGE INTO `target` t USING (\n"
        "  SELECT s.`__binlogd_op`, s.`id`,"
        " CASE WHEN s.`__binlogd_has_a` THEN s.`a` ELSE o.`a` END AS `a`,"
        " s.`__binlogd_has_a` OR o.`__binlogd_found` IS NOT NULL AS `__binlogd_has_a`,"
        " o.`b`, o.`__binlogd_found` IS NOT NULL AS `__binlogd_has_b`\n"
        "  FROM S s\n"
        "  LEFT JOIN (SELECT *, true AS `__binlogd_found` FROM `lake`.`db`.`t`) o"
        " ON s.`__binlogd_from` IS NOT NULL AND o.`id` <=> s.`__binlogd_from_id`\n"
    )
    assert "t.`a` = CASE WHEN s.`__binlogd_has_a` THEN s.`a` ELSE t.`a` END" in merge
    assert "t.`b` = CASE WHEN s.`__binlogd_has_b` THEN s.`b` ELSE t.`b` END" in merge
    assert "VALUES (s.`id`, s.`a`, s.`b`)" in merge


def test_column_that_the_file_lacks() -> None:
    """It is not updated, and null in rows that are inserted."""
    text = sql(columns=(*COLUMNS, LakeColumn("old", "int")))
    assert "`old` =" not in text
    assert "INSERT (`id`, `a`, `old`) VALUES (s.`id`, s.`a`, NULL)" in text


def test_table_of_keys_only() -> None:
    """Where every column is of the key, a match has nothing to update."""
    text = sql(columns=COLUMNS[:1], staged=(OP, "id"))
    assert "UPDATE" not in text


def test_first_write() -> None:
    """Into an empty table the rows are appended, the deletes left out."""
    assert rows_sql(BATCH, COLUMNS, (OP, "id", "a"), "S") == (
        "SELECT s.`id` AS `id`, s.`a` AS `a`\nFROM S s\nWHERE s.`__binlogd_op` = 'U'"
    )


def test_append() -> None:
    """A changelog is appended to, deletes included."""
    text = rows_sql(replace(BATCH, mode=Mode.APPEND), COLUMNS, ("ID", "a"), "S")
    assert text == "SELECT s.`ID` AS `id`, s.`a` AS `a`\nFROM S s"


def test_removal() -> None:
    """What has one of the batch's keys goes, whatever the batch does with it; keys alone move."""
    assert removal_sql(BATCH, COLUMNS, (OP, "ID", "a"), "S") == (
        "MERGE INTO `target` t USING (SELECT /*+ BROADCAST(k) */ `ID` FROM S k) s\n"
        "ON t.`id` = s.`ID`"
        " AND t.`id` BETWEEN CAST('3' AS BIGINT) AND CAST('9' AS BIGINT)\n"
        "WHEN MATCHED THEN DELETE"
    )


def test_read_schema() -> None:
    """The file is read by the types it has, with names quoted."""
    schema = pa.schema([("a`b", pa.int32()), ("t", pa.timestamp("us"))])
    assert read_schema(schema) == "`a``b` INT, `t` TIMESTAMP_NTZ"


def test_dotted() -> None:
    """Dots inside a name stay inside it."""
    assert dotted("lake", "a.b", "c`d") == "`lake`.`a.b`.`c``d`"


@given(st.text())
def test_quoted_name_ends_where_it_should(name: str) -> None:
    """Inside the backticks every backtick is doubled."""
    inside = quote(name)[1:-1]
    assert inside.replace("``", "").count("`") == 0
    assert inside.replace("``", "`") == name


@given(st.text())
def test_string_literal_holds_no_special_sign(text: str) -> None:
    """Between its quotes stand plain ASCII signs and escapes that read back as the text."""
    inside = string_literal(text)[1:-1]
    assert inside.isascii()
    assert not set(inside) & set("'\"$`%\n\0")
    assert inside.encode("ascii").decode("unicode_escape") == text


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (-(2**63), "long", "CAST('-9223372036854775808' AS BIGINT)"),
        (7, "decimal(20, 0)", "CAST('7' AS DECIMAL(20, 0))"),
        (Decimal("1E+3"), "decimal(20, 0)", "CAST('1000' AS DECIMAL(20, 0))"),
        (Decimal("-1.50"), "decimal(10, 2)", "CAST('-1.50' AS DECIMAL(10, 2))"),
        (True, "boolean", "true"),
        (b"\x00'", "binary", "X'0027'"),
        (date(1, 2, 3), "date", "CAST('0001-02-03' AS DATE)"),
        (
            datetime(2024, 1, 2, 3, 4, 5, 6),
            "timestamp",
            "CAST('2024-01-02 03:04:05.000006' AS TIMESTAMP_NTZ)",
        ),
        (
            datetime(2024, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))),
            "timestamptz",
            "CAST('2024-01-02 01:00:00+00:00' AS TIMESTAMP)",
        ),
    ],
)
def test_literal(value: object, type_: str, expected: str) -> None:
    """A value becomes a literal of the column's type, exactly."""
    assert literal(value, type_) == expected


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (None, "long"),
        (1.5, "double"),
        (True, "int"),
        (Decimal("1.005"), "decimal(10, 2)"),
        (Decimal("NaN"), "decimal(10, 2)"),
        (datetime(2024, 1, 2, tzinfo=UTC), "timestamp"),
        (datetime(2024, 1, 2), "timestamptz"),
        (datetime(2024, 1, 2), "date"),
        ("1", "long"),
    ],
)
def test_no_literal(value: object, type_: str) -> None:
    """A value without an exact literal has none: rounded, a bound would hide rows of the table."""
    assert literal(value, type_) is None
