"""A table that grows with its source: columns added and widened, refused where they can't be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from changes.model.errors import TargetRefused
from changes.model.model import OP, AddColumn, Column, Mode, TableSchema
from changes.sql.spark.words import dotted
from sparkwriter.iceberg.sink import IcebergWriter

pytestmark = pytest.mark.integration
Rows = Callable[..., list[tuple[object, ...]]]


def grown(schema: TableSchema, *columns: Column) -> TableSchema:
    return TableSchema((*schema.columns, *columns), schema.keys)


def test_new_column(writer: IcebergWriter, staging, rows: Rows, orders) -> None:
    """A column that a batch brings is there for its own rows and null in older ones."""
    writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 1))
    extra = Column("extra", pa.string())
    table = orders(("U", 2, "B", 2)).append_column("extra", pa.array(["x"]))
    state = writer.write(staging.batch(table, 2, schema=grown(staging.schema, extra)))
    assert rows(staging.target) == [(1, "a", 1, None), (2, "B", 2, "x")]
    assert state.schema == staging.schema


def test_widening(writer, staging, rows: Rows) -> None:
    """int becomes long, float double, a decimal longer; old rows keep their values."""

    def table(int_: pa.DataType, float_: pa.DataType, digits: int, rows: list[list[object]]):
        types = (int_, float_, pa.decimal128(digits, 2))
        columns = [pa.array(values, type_) for values, type_ in zip(rows[1:], types, strict=True)]
        schema = TableSchema(
            (Column("id", int_), Column("f", float_), Column("d", pa.decimal128(digits, 2))),
            ("id",),
        )
        return pa.table([pa.array(rows[0]), *columns], names=[OP, "id", "f", "d"]), schema

    first, narrow = table(
        pa.int32(), pa.float32(), 5, [["U", "U"], [1, 2], [0.5, 1.5], [Decimal("1.25")] * 2]
    )
    big = Decimal("1234567.89")
    second, wide = table(
        pa.int64(), pa.float64(), 9, [["U", "U"], [2, 2**40], [1e300, 2], [big] * 2]
    )
    writer.write(staging.batch(first, 1, schema=narrow))
    state = writer.write(staging.batch(second, 2, schema=wide))
    assert state.schema == wide
    assert rows(staging.target) == [
        (1, 0.5, Decimal("1.25")),
        (2, 1e300, Decimal("1234567.89")),
        (2**40, 2.0, Decimal("1234567.89")),
    ]
    third, _ = table(pa.int32(), pa.float32(), 5, [["D"], [1], [None], [None]])
    state = writer.write(staging.batch(third, 3, schema=narrow))
    assert state.schema == wide
    assert [row[0] for row in rows(staging.target)] == [2, 2**40]


DEFAULTS = [
    (pa.int32(), -5),
    (pa.int64(), 2**40),
    (pa.float32(), 0.5),
    (pa.float64(), 3),
    (pa.bool_(), False),
    (pa.string(), "it's \\ ünder ${x}"),
    (pa.binary(), b"\x00\xff"),
    (pa.date32(), date(2024, 2, 29)),
    (pa.timestamp("us"), datetime(2024, 1, 2, 3, 4, 5, 6)),
    (pa.timestamp("us", "UTC"), datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
    (pa.decimal128(10, 2), Decimal("1.5")),
    (pa.decimal128(38, 10), Decimal("-9999999999999999999999999999.9999999999")),
    (pa.decimal128(38, 0), 10**37),
    (pa.decimal128(20, 0), 7),
]


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_defaults_for_stored_rows(
    writer, staging, spark: SparkSession, orders, vectorized: str
) -> None:
    """Rows stored before read as the default, whichever reader, also after a merge copied them."""
    writer.write(staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 1))
    adds = [AddColumn(Column(f"c{n}", type_), value) for n, (type_, value) in enumerate(DEFAULTS)]
    state = writer.write(staging.batch(None, 2, ddl=[adds]))
    assert state.schema == grown(staging.schema, *(add.column for add in adds))
    partial = orders(("U", 2, "B", 3))
    writer.write(staging.batch(partial, 3))
    session = spark.newSession()
    session.conf.set("spark.sql.iceberg.vectorization.enabled", vectorized)
    values = ", ".join(
        f"unix_micros(c{n})" if type_ == pa.timestamp("us", "UTC") else f"c{n}"
        for n, (type_, _) in enumerate(DEFAULTS)
    )
    found = session.sql(f"SELECT {values} FROM {dotted(*staging.target)}").collect()
    expected = [
        int(value.timestamp()) * 10**6 + value.microsecond
        if isinstance(value, datetime) and value.tzinfo
        else value
        for _, value in DEFAULTS
    ]
    assert [list(row) for row in found] == [expected, expected]


def test_a_default_of_more_digits_is_rounded_as_databases_do(
    writer, staging, rows: Rows, orders
) -> None:
    """Away from zero, not to the even digit."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    adds = [
        AddColumn(Column(name, pa.decimal128(38, 2)), Decimal(text))
        for name, text in (("a", "0.125"), ("b", "-0.125"))
    ]
    writer.write(staging.batch(None, 2, ddl=[adds]))
    assert rows(staging.target) == [(1, "a", 1, Decimal("0.13"), Decimal("-0.13"))]


def test_add_again(writer, staging, rows: Rows, orders) -> None:
    """A DDL that comes again after a crash changes nothing, nor do rows that name its column."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    add = AddColumn(Column("New", pa.int32()), 7)
    writer.write(staging.batch(None, 2, ddl=[[add]]))
    table = orders(("U", 2, "b", 2)).append_column("new", pa.array([None], pa.int32()))
    schema = grown(staging.schema, Column("new", pa.int32()))
    writer.write(staging.batch(table, 3, schema=schema))
    assert rows(staging.target) == [(1, "a", 1, 7), (2, "b", 2, None)]


@pytest.mark.parametrize(
    ("type_", "default", "said"),
    [
        (pa.int32(), 2**40, f"column c: the default {2**40} does not fit int"),
        (pa.decimal128(38, 2), 10**37, r"column c: .* does not fit decimal\(38, 2\)"),
    ],
)
def test_default_that_does_not_fit(
    writer, staging, rows: Rows, orders, type_: pa.DataType, default: object, said: str
) -> None:
    """A default outside its type is refused by column, value and type; the table stays."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    add = AddColumn(Column("c", type_), default)
    with pytest.raises(TargetRefused, match=said):
        writer.write(staging.batch(None, 2, ddl=[[add]]))
    assert rows(staging.target) == [(1, "a", 1)]


def test_refused_type(writer, staging, rows: Rows, orders) -> None:
    """A type that can't become another one stops the target with its name; nothing is written."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    schema = TableSchema((Column("id", pa.int64()), Column("note", pa.int32())), ("id",))
    table = pa.table({OP: ["U"], "id": [1], "note": pa.array([5], pa.int32())})
    with pytest.raises(TargetRefused, match=f"{staging.target}: column note is stored as string"):
        writer.write(staging.batch(table, 2, schema=schema))
    assert rows(staging.target) == [(1, "a", 1)]


def test_refused_mode(writer, staging, orders) -> None:
    """An upsert table takes no changelog."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    with pytest.raises(TargetRefused, match="kept as upsert, required is append"):
        writer.write(staging.batch(None, 2, mode=Mode.APPEND))


def test_column_added_by_hand(writer, staging, spark: SparkSession, rows: Rows, orders) -> None:
    """A column that somebody added to the table stays, with its values."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    name = dotted(*staging.target)
    spark.sql(f"ALTER TABLE {name} ADD COLUMN mine STRING")
    spark.sql(f"UPDATE {name} SET mine = 'x'")
    writer.write(staging.batch(orders(("U", 1, "A", 1), ("U", 2, "b", 2)), 2))
    assert rows(staging.target) == [(1, "A", 1, "x"), (2, "b", 2, None)]
