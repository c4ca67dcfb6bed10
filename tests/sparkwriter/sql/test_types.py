"""Each type of the lake is kept exactly, or the target is refused by name."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from changes.model.errors import TargetRefused
from changes.model.model import AddColumn, Column
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.kit.store import Absent
from sparkwriter.sql.store import JdbcStore
from tests.sparkwriter.databases import JdbcTables

ODD = ["", " ", "x ", "NULL", r"\N", "\\", "'", "''", '"', "\t\n\r\b\x1a", "\\'\t", "ß漢😀", "a\\"]

VALUES = {
    "boolean": pa.array([True, False, None]),
    "int": pa.array([2**31 - 1, -(2**31), None], pa.int32()),
    "long": pa.array([2**63 - 1, -(2**63), None], pa.int64()),
    "float": pa.array([0.1, 3.4028234e38, None], pa.float32()),
    "tiny float": pa.array([1.4e-45, -16777217.0, None], pa.float32()),
    "double": pa.array([0.1, 1.7976931348623157e308, None], pa.float64()),
    "tiny double": pa.array([5e-324, -2.2250738585072014e-308, None], pa.float64()),
    "decimal": pa.array(
        [Decimal("0.0000000001"), Decimal("-" + "9" * 28 + ".9999999999"), None],
        pa.decimal128(38, 10),
    ),
    "whole decimal": pa.array([Decimal("9" * 38), Decimal(0), None], pa.decimal128(38, 0)),
    "binary": pa.array([b"", bytes(range(256)), None]),
    "date": pa.array([date(1, 1, 1), date(9999, 12, 31), None]),
    "timestamp": pa.array(
        [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None], pa.timestamp("us")
    ),
    "timestamp in ms": pa.array([datetime(1969, 12, 31, 23, 59, 59, 999000)], pa.timestamp("ms")),
    "timestamptz": pa.array(
        [datetime(1, 1, 1, tzinfo=UTC), datetime(2200, 2, 3, 4, 5, 6, 789, tzinfo=UTC), None],
        pa.timestamp("us", "UTC"),
    ),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_come_back_as_they_were(writer, tables, typed, target, kind) -> None:
    """Beside a key of whole numbers, and a null."""
    values = VALUES[kind]
    writer.write(typed(1, id=pa.array(range(len(values)), pa.int64()), v=values))
    found = tables.read(target).sort_by("id")["v"].to_pylist()
    wanted = values.to_pylist()
    if kind == "timestamptz" and not tables.server.is_postgres:
        # DATETIME: the moment's time in UTC.
        found = [None if v is None else v.replace(tzinfo=UTC) for v in found]
    assert found == wanted


def test_floats_are_exact_to_the_bit(writer, tables, typed, target, sql) -> None:
    """MariaDB prints fewer digits than it keeps."""
    values = [0.1, 1 / 3, 16777217.0, 1e-40]
    writer.write(typed(1, id=pa.array(range(4), pa.int64()), v=pa.array(values, pa.float32())))
    wide = "CAST(v AS double precision)" if tables.server.is_postgres else "v + 0e0"
    found = [v for (v,) in sql(f"SELECT {wide} FROM shop.{target.table} ORDER BY id")]
    assert found == pa.array(values, pa.float32()).cast(pa.float64()).to_pylist()


def test_texts_come_back_as_they_were(writer, tables, typed, target) -> None:
    """Whatever COPY, or a quoted text, would take them for; null is not the empty text."""
    texts = [*ODD, None]
    writer.write(typed(1, id=pa.array(range(len(texts)), pa.int64()), v=pa.array(texts)))
    assert tables.read(target).sort_by("id")["v"].to_pylist() == texts


def test_texts_are_different_keys(writer, tables, typed, target) -> None:
    """Case, accents and spaces at the end count."""
    texts = [*ODD, "a", "A", "á", "a ", "a\u0301"]
    writer.write(typed(1, id=pa.array(texts), v=pa.array(range(len(texts)), pa.int64())))
    writer.write(typed(2, 1, id=pa.array(["a "]), v=pa.array([-1], pa.int64())))
    found = dict(zip(*tables.read(target).to_pydict().values(), strict=True))
    assert found == {**{text: at for at, text in enumerate(texts)}, "a ": -1}


@pytest.mark.parametrize("kind", ["binary", "date", "timestamp", "decimal", "boolean"])
def test_keys_of_other_types_are_found_again(writer, tables, typed, target, kind) -> None:
    """Two of them make one key."""
    values = VALUES[kind].slice(0, 2)
    for offset in (1, 2):
        n = pa.array([offset, offset], pa.int64())
        writer.write(typed(offset, offset - 1 or -1, keys=2, a=values, b=values, n=n))
    assert tables.read(target)["n"].to_pylist() == [2, 2]


def test_nul_is_kept_or_refused(writer, tables, typed, target) -> None:
    """PostgreSQL has no such character."""
    batch = typed(1, id=pa.array([1], pa.int64()), v=pa.array(["a\0b"]))
    if tables.server.is_postgres:
        with pytest.raises(TargetRefused, match="column v: the character NUL, which PostgreSQL"):
            writer.write(batch)
    else:
        writer.write(batch)
        assert tables.read(target)["v"].to_pylist() == ["a\0b"]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_kept_or_refused(writer, tables, typed, target, number) -> None:
    """MySQL has none of these."""
    batch = typed(1, id=pa.array([1], pa.int64()), v=pa.array([number]))
    if tables.server.is_postgres:
        writer.write(batch)
        assert str(tables.read(target)["v"].to_pylist()) == str([number])
    else:
        with pytest.raises(TargetRefused, match="column v: NaN or an infinite number"):
            writer.write(batch)


def test_years_out_of_range_are_refused(writer, typed) -> None:
    """Both would print something else."""
    for value in (pa.array([-719_163], pa.int32()), pa.array([2_932_897], pa.int32())):
        batch = typed(1, id=pa.array([1], pa.int64()), v=value.cast(pa.date32()))
        with pytest.raises(TargetRefused, match="column v: a year outside 1 to 9999"):
            writer.write(batch)


def test_what_can_t_be_stored_is_null_where_that_is_wanted(server, typed, target) -> None:
    """But never in a key."""
    tables = JdbcTables(server)
    store = JdbcStore(server.connect, "binlogd", or_null=True)
    good = pa.array([1, 2], pa.int32()).cast(pa.date32())
    bad = pa.array([-719_163, 0], pa.int32()).cast(pa.date32())
    LedgeredWriter(store).write(typed(1, id=good, v=bad))
    assert tables.read(target).sort_by("id")["v"].to_pylist() == [None, date(1970, 1, 1)]
    with pytest.raises(TargetRefused, match="column id: a year"):
        LedgeredWriter(store).write(typed(2, 1, id=bad, v=good))
    # Such a null can't decide for a filter whether a row stays.
    seen = store.look(target)
    assert not isinstance(seen, Absent)
    with pytest.raises(TargetRefused, match="may have become null"):
        store.read_rows(seen, pa.table({"id": good}), ["v"])
    store.close()
    tables.close()


def test_decimals_of_38_places(writer, tables, typed, target) -> None:
    """MySQL has up to 30, and refuses more by name (``test_words``)."""
    if tables.server.url.startswith("jdbc:mysql"):
        return
    tiny = pa.array([Decimal("1e-38")], pa.decimal128(38, 38))
    writer.write(typed(1, id=pa.array([1], pa.int64()), v=tiny))
    assert tables.read(target)["v"].to_pylist() == [Decimal("1e-38")]


DEFAULTS = [
    (pa.string(), "it's \\ ß"),
    (pa.binary(), b"\x00\xff'"),
    (pa.int64(), -5),
    (pa.decimal128(10, 2), Decimal("1.50")),
    (pa.bool_(), True),
    (pa.date32(), "2024-02-29"),
    (pa.timestamp("us"), "2024-02-29 01:02:03.000004"),
]


@pytest.mark.parametrize(("type_", "value"), DEFAULTS, ids=lambda one: str(one)[:12])
def test_stored_rows_show_a_new_columns_default(
    writer, tables, staging, orders, type_, value
) -> None:
    """New ones don't, unless they bring it."""
    writer.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    writer.write(staging.batch(None, 2, ddl=[[AddColumn(Column("v", type_), value)]]))
    writer.write(staging.batch(orders(("U", 2, "b", 2)), 3))
    given = pa.array([value if isinstance(value, bytes) else str(value)])
    wanted = given if pa.types.is_binary(type_) else given.cast(type_)
    found = tables.read(staging.target).sort_by("id")["v"].to_pylist()
    assert found == [wanted[0].as_py(), None]
