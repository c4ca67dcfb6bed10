"""Changes for people: keys, images before and after, and the values that the lake gets too."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.formats.canal.json import CanalJson
from changes.formats.engine.format import RowChange, Statement
from changes.model.model import BadRecord, FormatOptions, Mode, TableName
from tests.changes.formats.canal.messages import decode, message

CANAL = CanalJson(FormatOptions())
ROW = {"id": "1", "name": "a", "price": "1.50"}


def only(value: bytes) -> RowChange:
    (change,) = CANAL.explain(value)
    assert isinstance(change, RowChange)
    return change


def test_rows_in_order() -> None:
    """A message of many rows gives as many changes; old is by place."""
    rows = [{"id": str(n), "name": f"n{n}"} for n in range(3)]
    changes = CANAL.explain(message("UPDATE", rows, [{"name": "x"}, None, {"name": "z"}]))
    told = [change.before for change in changes if isinstance(change, RowChange)]
    assert told == [{"id": 0, "name": "x"}, {"id": 1}, {"id": 2, "name": "z"}]


def test_no_key() -> None:
    """A table without a key has an empty one."""
    assert only(message(keys=None)).key == {}
    assert only(message("UPDATE", [ROW], None, keys=[])).before is None


def test_statement() -> None:
    """A statement is told for the table that it names itself."""
    sql = "CREATE TABLE `xj_`.`user02` (`uid` int(0) NOT NULL)"
    told = CANAL.explain(message("CREATE", None, isDdl=True, sql=sql))
    assert told == (Statement(TableName("xj_", "user02"), sql, 1589373515000),)


def test_statement_about_no_table() -> None:
    """What names no table is told for the one that the message names."""
    told = CANAL.explain(message("QUERY", None, isDdl=True, sql="GRANT ALL ON *.* TO a"))
    assert [str(statement.table) for statement in told] == ["shop.orders"]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("bigint unsigned", "18446744073709551615", 2**64 - 1),
        ("bit(64)", "18446744073709551615", 2**64 - 1),
        ("decimal(20,0)", "5", Decimal(5)),
        ("decimal(65,30)", "1." + "1" * 30, "1." + "1" * 30),
        ("float", "3.14", 3.14),
        ("float", "16777217", 16777216.0),
        ("double", "3.140000104904175", 3.140000104904175),
        ("timestamp", "2024-01-01 00:00:00", datetime(2024, 1, 1, tzinfo=UTC)),
        ("date", "2024-01-01", date(2024, 1, 1)),
        ("year", "0000", 0),
        ("enum('a','b')", "2", "b"),
        ("blob", "\u00ff", b"\xff"),
    ],
)
def test_values(kind: str, text: str, expected: object) -> None:
    """Integers of any size are such, floats have their shortest form, the rest is the lake's."""
    change = only(message(data=[{"id": "1", "v": text}], types={"id": "int", "v": kind}))
    assert change.after is not None
    assert change.after["v"] == expected
    assert type(change.after["v"]) is type(expected)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("1", 1),
        ('"1"', "1"),
        ("18446744073709551616", 2**64),
        ("3.14", 3.14),
        ("0.10000000000000000000001", "0.10000000000000000000001"),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
        ("true", True),
        ("null", None),
        ('{"a": [1]}', '{"a": [1]}'),
    ],
)
def test_values_of_no_declared_type(raw: str, expected: object) -> None:
    """Other tools write typed values without types: a number is one as long as it is exact."""
    value = message(data=[{"v": "?"}], types=None, keys=None).replace(b'"?"', raw.encode())
    change = only(value)
    assert change.after == {"v": expected}


# -- the same values both ways --------------------------------------------------------------------

TYPES = {
    "tinyint(4)": ["-128", "x"],
    "bigint(20) unsigned": ["18446744073709551615", "-"],
    "decimal(12,2)": ["1.5", "-0.01", "1.234"],
    "decimal(65,2)": ["1.50"],
    "float": ["3.14", "1e39"],
    "double": ["0.1", "nan"],
    "date": ["2024-02-29", "0000-00-00", "2023-02-29"],
    "datetime(6)": ["2024-01-01 00:00:00.000001", "2024-00-01 00:00:00"],
    "timestamp": ["2024-01-01 08:00:00", "0000-00-00 00:00:00"],
    "time": ["-838:59:59", "12:00:00.5", "25"],
    "year(4)": ["0000", "2024"],
    "bit(1)": ["0", "1", "2"],
    "bit(64)": ["18446744073709551615"],
    "enum('a','b')": ["1", "b", "9"],
    "set('a','b')": ["3", "4"],
    "blob": ["\u00ff\u0000", "\u0100"],
    "json": ['{"a": 1}'],
    "varchar(9)": ["", "x"],
}
NAMES = {f"c{place}": kind for place, kind in enumerate(TYPES)}
BLOCK = {"id": "int"} | NAMES
IMAGES = st.fixed_dictionaries(
    {}, optional={name: st.none() | st.sampled_from(TYPES[NAMES[name]]) for name in NAMES}
)


@settings(max_examples=300)
@given(
    st.sampled_from(["INSERT", "UPDATE", "DELETE"]),
    st.lists(IMAGES, min_size=1, max_size=3),
    st.sampled_from(["null", "error"]),
)
def test_both_ways_tell_the_same(kind: str, images: list[dict[str, Any]], zero: Any) -> None:
    """The view for people and the columns for the lake hold equal values, or the same error."""
    rows = [{"id": str(place)} | image for place, image in enumerate(images)]
    value = message(kind, rows, types=BLOCK)
    canal = CanalJson(FormatOptions("Asia/Shanghai", zero))
    try:
        changes = decode(value, mode=Mode.APPEND, time_zone="Asia/Shanghai", zero_dates=zero)
    except BadRecord:
        # Of several misfits in one row either may be named: the words are of one kind.
        misfits = [change.misfit for change in canal.explain(value) if change.misfit is not None]
        assert misfits
        assert all(" is not an" in misfit or " is not a " in misfit for misfit in misfits)
        return
    told = canal.explain(value)
    table = changes.table.to_pylist()
    assert len(told) == len(table)
    for change, row in zip(told, table, strict=True):
        assert isinstance(change, RowChange)
        image = change.before if kind == "DELETE" else change.after
        assert image is not None
        assert change.op == row["_op"]
        for name in ("id", *NAMES):
            assert image.get(name) == (
                pytest.approx(row[name]) if isinstance(row.get(name), float) else row.get(name)
            )


def test_a_value_that_contradicts_its_type_is_shown_as_it_came() -> None:
    """Whoever debugs wants to see it, and what is wrong with it; the lake refuses the row."""
    change = only(message(data=[{"id": "x"}]))
    assert change.after == {"id": "x"}
    assert change.misfit == "id: 'x' is not an int(11)"


def test_declared_types_are_read_as_the_target_reads_them() -> None:
    """Of columns that the message declares no type of, and where they are wider than its own."""
    types = (("ID", "bigint"), ("price", "decimal(10,2)"), ("name", "string"))
    canal = CanalJson(FormatOptions(types=types))
    (change,) = canal.explain(message(types=None))
    assert isinstance(change, RowChange)
    assert change.after == {"id": 1, "name": "a", "price": Decimal("1.50")}
    (change,) = canal.explain(message(types={"id": "int", "price": "decimal", "name": "text"}))
    assert isinstance(change, RowChange)
    assert change.after == {"id": 1, "name": "a", "price": Decimal("1.50")}
