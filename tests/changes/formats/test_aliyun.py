"""Alibaba DTS's Avro records: both layouts, rows, values, statements."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.fold import fold
from changes.formats.base import RowChange, Statement
from changes.model import (
    FROM_PREFIX,
    HAS_PREFIX,
    OP,
    AddColumn,
    BadMessage,
    BadRecord,
    Column,
    Ddl,
    Kind,
    Mode,
    TableName,
    TruncateTable,
)
from daemon.decode import decode_files
from tests.changes.formats.avro_records import date_time, integer, long, record, text
from tests.changes.formats.json_messages import decode, made, rows
from tests.changes.formats.mutator import bad_place, mutants, read

AVRO = "aliyun-dts-avro"
ORDERS = TableName("shop", "orders")
ROW = [integer(1), text("a")]


def explained(value: bytes) -> RowChange:
    (change,) = made(AVRO).explain(value)
    assert isinstance(change, RowChange)
    return change


def column(number: int, *values: Any, source: str = "MySQL") -> pa.ChunkedArray:
    """One column's values, each a record's, in the lake."""
    fields = [("id", 253), ("v", number)]
    told = [
        record(after=[text(str(n)), value], fields=fields, source=source)
        for n, value in enumerate(values)
    ]
    return decode(AVRO, *told).table["v"]


@pytest.mark.parametrize("born", [None, 0, 1696984408, -1])
def test_both_layouts(born: int | None) -> None:
    """A record may end with bornTimestamp, or before it."""
    value = record(after=ROW, born=born)
    assert made(AVRO).peek(value).table == ORDERS
    assert rows(AVRO, value, record(after=ROW)) == [{OP: "U", "id": 1, "name": "a"}] * 2


@pytest.mark.parametrize("rest", [b"\x00\x00", b"\x80", b"\x80" * 10 + b"\x00"])
def test_bytes_that_are_left(rest: bytes) -> None:
    """What follows the record and is no number is a third layout: refused, not passed over."""
    with pytest.raises(BadRecord, match="left behind the record, which are no bornTimestamp"):
        decode(AVRO, record(after=ROW) + rest)


def test_rows() -> None:
    """Inserts and updates are rows, a delete ends its key."""
    found = rows(
        AVRO,
        record("INSERT", ROW),
        record("UPDATE", [integer(1), "NULL"], ROW),
        record("DELETE", None, [integer(1), "NULL"]),
    )
    assert [(row[OP], row["id"], row["name"]) for row in found] == [
        ("U", 1, "a"),
        ("U", 1, None),
        ("D", 1, None),
    ]


def test_absent_is_not_null() -> None:
    """NONE keeps the stored value, NULL overwrites it."""
    values = [
        record("INSERT", ROW),
        record("UPDATE", [integer(1), "NONE"], [integer(1), "NONE"]),
    ]
    assert rows(AVRO, *values)[1][HAS_PREFIX + "name"] is False
    changes = decode(AVRO, *values)
    assert fold(changes.table, ("id",)).to_pylist() == [{OP: "U", "id": 1, "name": "a"}]


def test_key_change() -> None:
    """Another key after than before ends the old one."""
    value = record("UPDATE", [integer(2), text("a")], ROW)
    found = rows(AVRO, value)
    assert [(row[OP], row["id"]) for row in found] == [("D", 1), ("U", 2)]
    assert found[1][FROM_PREFIX + "id"] == 1
    change = explained(value)
    assert (change.op, change.key, change.before) == ("U", {"id": 2}, {"id": 1, "name": "a"})
    assert change.ts_ms == 1696984408000


def test_order_of_the_fields() -> None:
    """Images follow the record's own fields, whatever order the record before had."""
    other = record("INSERT", [text("b"), integer(2)], fields=[("name", 253), ("id", 8)])
    found = rows(AVRO, record("INSERT", ROW), other)
    assert [(row["id"], row["name"]) for row in found] == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("tags", [{}, {"pk_uk_info": '{"uk1":["name"]}'}, {"pk_uk_info": ""}])
def test_table_without_a_primary_key(tags: dict[str, str]) -> None:
    """It is a changelog: another unique key may be null."""
    changes = decode(AVRO, record("INSERT", ROW, tags=tags))
    assert changes.mode is Mode.APPEND


@pytest.mark.parametrize("tag", ["[", '["id"]', '{"PRIMARY":"id"}'])
def test_key_that_is_none(tag: str) -> None:
    """A tag that can't be read is refused, for it would make a changelog of a table."""
    with pytest.raises(BadRecord, match=r"shop\.orders: the tag pk_uk_info"):
        decode(AVRO, record("INSERT", ROW, tags={"pk_uk_info": tag}))


@pytest.mark.parametrize(
    ("number", "value", "kept"),
    [
        (1, integer(-128), -128),
        (3, integer(2**32 - 1), 2**32 - 1),
        (8, integer(-(2**63)), -(2**63)),
        (246, ("Decimal", "-12345678901234567890.1230", 30, 4), "-12345678901234567890.1230"),
        (4, ("Float", 3.140000104904175, 12, 0), 3.140000104904175),
        (5, ("Float", 0.1, 22, 0), 0.1),
        (10, date_time(2020, 1, 2), date(2020, 1, 2)),
        (12, date_time(2020, 1, 2, 3, 4, 5, 6), datetime(2020, 1, 2, 3, 4, 5, 6)),
        (12, date_time(2020, 1, 2, 3, 4, 5), datetime(2020, 1, 2, 3, 4, 5)),
        (11, date_time(None, None, None, 838, 59, 59), "838:59:59"),
        (11, date_time(None, None, None, 0, 0, -1, -500000), "-00:00:01.500000"),
        (13, date_time(1999), 1999),
        (7, ("Timestamp", 1700000000, 123456), datetime(2023, 11, 14, 22, 13, 20, 123456, UTC)),
        (7, ("Timestamp", -1, 0), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (253, text("é", "latin1", "latin-1"), "é"),
        (253, ("Character", "latin1", b"\x80\x81"), "€\x81"),
        (253, text("圖形碼", "big5", "big5"), "圖形碼"),
        (253, text("乪", "gbk", "gbk"), "乪"),
        (253, text("∆", "ucs2", "utf-16-be"), "∆"),
        (254, ("Character", "binary", b"\x00\xff"), "AP8="),
        (252, ("BinaryObject", "blob", b"\x00\xff"), "AP8="),
        (255, ("BinaryGeometry", "point", b"\x01"), "AQ=="),
        (255, ("TextGeometry", "point", "POINT (1 2)"), "POINT (1 2)"),
        (247, ("TextObject", "enum", "b"), "b"),
        (245, ("TextObject", "json", '{"a": 1.50}'), '{"a": 1.50}'),
        (16, integer(5), 5),
    ],
)
def test_values(number: int, value: Any, kept: object) -> None:
    """A value of each kind, as MySQL's number of its column's type says; nulls beside it."""
    assert column(number, "NULL", value, None).to_pylist() == [None, kept, None]
    assert column(number, value).type == column(number, "NULL").type


@pytest.mark.parametrize(
    ("source", "value", "kept"),
    [
        ("Oracle", ("Decimal", "1.50", 10, 2), "1.50"),
        ("Oracle", date_time(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05"),
        ("PostgreSQL", ("TimestampWithTimeZone", (2020, 1, 2, 3, 4, 5, 6), "+08:00"),
         "2020-01-02 03:04:05.000006 +08:00"),
        ("PostgreSQL", date_time(2020, 1, 2), "2020-01-02"),
        ("PostgreSQL", date_time(None, None, None, 1, 2, 3), "01:02:03"),
        ("PostgreSQL", integer(7), "7"),
    ],
)  # fmt: skip
def test_values_of_other_sources(source: str, value: Any, kept: str) -> None:
    """Their type numbers are not known: every column is text."""
    assert column(3, "NULL", value, source=source).to_pylist() == [None, kept]


@pytest.mark.parametrize(
    ("number", "value", "said"),
    [
        (8, integer(2**63), r"v: '9223372036854775808' is not a bigint"),
        (3, integer("1x"), r"v: '1x' is not an int unsigned"),
        (5, ("Float", float("nan"), 0, 0), r"v: 'nan' is not a double"),
        (12, date_time(2020, 2, 30, 0, 0, 0), r"v: '2020-02-30 00:00:00' is not a datetime"),
        (11, date_time(None, None, None, 1, -2, 3), r"v: the parts .* differ by their sign"),
        (7, ("Timestamp", 2**60, 0), r"v: 1152921504606846976 seconds are no time"),
        (253, ("Character", "utf8", b"\xff"), r"v: b'\\xff' is not text in utf8"),
        (253, ("Character", "klingon", b"a"), r"v: the character set 'klingon' is not known"),
    ],
)
def test_values_that_do_not_fit(number: int, value: Any, said: str) -> None:
    """Column, value and what was expected are named."""
    with pytest.raises(BadRecord, match=r"shop\.orders: " + said) as error:
        column(number, "NULL", value)
    assert error.value.index == 1


def test_zero_dates() -> None:
    """They are null by default, as with every format."""
    assert column(12, date_time(0, 0, 0, 0, 0, 0)).to_pylist() == [None]


@pytest.mark.parametrize(
    "operation",
    ["BEGIN", "COMMIT", "ROLLBACK", "HEARTBEAT", "CHECKPOINT", "NOOP", "CONTROL", "FINISH"],
)
def test_marks(operation: str) -> None:
    """They have nothing to apply."""
    value = record(operation, fields=None, name=None)
    assert made(AVRO).peek(value).kind is Kind.NOTHING
    assert made(AVRO).explain(value) == ()


def ddl(sql: str | None, name: str = "shop", **others: Any) -> bytes:
    return record("DDL", sql, fields=None, name=name, **others)


def test_statements() -> None:
    """The row after is the statement; unqualified names are of the record's database."""
    sql = "TRUNCATE TABLE orders"
    assert made(AVRO).peek(ddl(sql)).kind is Kind.DDL
    assert made(AVRO).ddl(ddl(sql)) == (Ddl(ORDERS, sql, (TruncateTable(),)),)
    assert made(AVRO).explain(ddl(sql)) == (Statement(ORDERS, sql, 1696984408000),)
    with pytest.raises(BadMessage, match="a DDL record without its statement"):
        made(AVRO).ddl(ddl(None))


def test_new_columns_are_as_rows_have_them() -> None:
    """What rows don't tell is text, or left to the first row."""
    sql = "ALTER TABLE orders ADD a int, ADD b decimal(5,2) DEFAULT 1, ADD c blob, ADD d bit(1)"
    (found,) = made(AVRO).ddl(ddl(sql + ", ADD e bigint unsigned"))
    assert found.steps == (
        AddColumn(Column("a", pa.int32())),
        AddColumn(Column("b", pa.string()), "1.00"),
        AddColumn(Column("c", pa.string())),
        AddColumn(Column("d", pa.int64())),
    )
    (refused,) = made(AVRO).ddl(ddl("ALTER TABLE orders ADD e bigint unsigned DEFAULT 1"))
    assert refused.refused is not None


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("db.t", TableName("db", "t")),
        ("db.public.t", TableName("db.public", "t")),
        ("db.a\\u002Eb", TableName("db", "a.b")),
    ],
)
def test_table_names(name: str, table: TableName) -> None:
    """A schema between belongs to the database's name; dots inside names are escaped."""
    assert made(AVRO).peek(record(after=ROW, name=name)).table == table


@pytest.mark.parametrize("name", [None, "", "db", "a.b.c.d", "db."])
def test_row_without_a_table(name: str | None) -> None:
    """A row that names no table is refused."""
    with pytest.raises(BadMessage, match=r"about .*: DATABASE\.TABLE is wanted"):
        made(AVRO).peek(record(after=ROW, name=name))


@pytest.mark.parametrize("value", [None, b""])
def test_empty_message(value: bytes | None) -> None:
    """Nothing to apply."""
    assert [head.kind for head in made(AVRO).heads([value])] == [Kind.NOTHING]
    assert made(AVRO).explain(value) == ()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (record("UPDATE", None, ROW), "a record of operation UPDATE without afterImages"),
        (record("DELETE", ROW, None), "a record of operation DELETE without beforeImages"),
        (record("INSERT", ROW[:1]), "1 values for 2 fields"),
        (record("INSERT", ROW, fields=[("id", 8), ("id", 8)]), "two fields of one name"),
        (record("INSERT", ["NONE", text("a")]), "key column id is missing"),
        (record("INSERT", ["NULL", text("a")]), "key column id is null"),
    ],
)
def test_rows_that_can_not_be(value: bytes, said: str) -> None:
    """They are refused at their place, with the table's name."""
    with pytest.raises(BadRecord, match=rf"shop\.orders: {said}") as error:
        decode(AVRO, record("INSERT", ROW), value)
    assert error.value.index == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-(2**63), 2**63 - 1),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
            st.decimals(allow_nan=False, allow_infinity=False, places=3),
            st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31)),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_values_come_back(values: list[tuple[Any, ...]]) -> None:
    """Every value of every kind is equal after the way through a record."""
    fields = [("id", 8), ("b", 8), ("s", 253), ("d", 246), ("t", 12), ("f", 5)]
    told = []
    for n, (big, words, number, when, real) in enumerate(values):
        parts = (when.year, when.month, when.day, when.hour, when.minute, when.second)
        row = [integer(n), integer(big), text(words), ("Decimal", f"{number:f}", 30, 3)]
        row += [date_time(*parts, when.microsecond), ("Float", real, 0, 0)]
        told.append(record("INSERT", row, fields=fields, born=n if n % 2 else None))
    found = [tuple(row[name] for name, _ in fields[1:]) for row in rows(AVRO, *told)]
    assert found == [(big, words, f"{d:f}", when, f) for big, words, d, when, f in values]


def test_damaged_records() -> None:
    """Only BadMessage and BadRecord come out, alone as among good ones."""
    good = [
        record("INSERT", ROW),
        record("UPDATE", [integer(2), text("b")], ROW, born=7),
        record("DELETE", None, ROW),
        ddl("ALTER TABLE orders ADD a int DEFAULT 1", "shop.orders"),
    ]
    for value in mutants(good, 3_000, seed=8):
        read(made(AVRO), value)
        assert bad_place(made(AVRO), [good[0], value, good[0]]) in (None, 1)


def test_lengths_beyond_the_message() -> None:
    """A length that promises more than there is costs no memory."""
    beginning = long(0) * 3
    for length in (2**31, 2**62, -1, -(2**62)):
        with pytest.raises(BadMessage, match="a text of"):
            made(AVRO).peek(beginning + long(length) + b"x")
    whole = record("INSERT", ROW, tags={})
    at = whole.index(b"utf8mb4") - 1
    for length in (2**31, 2**62, -(2**62)):
        with pytest.raises(BadRecord, match="not a record of Alibaba DTS"):
            decode(AVRO, whole[:at] + long(length) + whole[at + 1 :])


def test_shown_by_decode(tmp_path: Path) -> None:
    """``binlogd decode`` takes a file of one record, and a file of several behind their lengths."""
    value = record("INSERT", ROW)
    prefix = bytes((len(value) & 0x7F | 0x80, len(value) >> 7))
    (tmp_path / "one").write_bytes(value)
    (tmp_path / "several").write_bytes((prefix + value) * 2)
    out, errors = io.StringIO(), io.StringIO()
    files = [str(tmp_path / "one"), str(tmp_path / "several")]
    assert decode_files(files, made(AVRO), out, errors), errors.getvalue()
    shown = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["after"] for line in shown] == [{"id": 1, "name": "a"}] * 3


def test_bad_record_shown_by_decode(tmp_path: Path) -> None:
    """A file that holds no record is told with its name and the record's number."""
    (tmp_path / "bad").write_bytes(b"\x00\x00")
    out, errors = io.StringIO(), io.StringIO()
    assert not decode_files([str(tmp_path / "bad")], made(AVRO), out, errors)
    assert errors.getvalue().startswith(f"{tmp_path}/bad:1: not a record of Alibaba DTS: ")
