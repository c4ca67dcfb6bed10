"""Each value comes back as it was, and no other one is equal to it in the file."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changes.model.errors import TargetRefused
from changes.model.model import OP, Column, TableSchema, TargetName
from changes.sql.spark.schema import arrow_type
from sparkwriter.kit.marks_table.sqlite_ledger import table_name
from sparkwriter.kit.store import Absent
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.rows import default_of, from_sqlite, to_sqlite
from sparkwriter.sqlite.store import SqliteStore
from tests.sparkwriter.conftest import Staging

KINDS = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "binary": st.binary(),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "decimal(38, 10)": st.decimals(-(10**20), 10**20, places=10, allow_nan=False),
}


@pytest.mark.parametrize("type_", KINDS)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_value_comes_back(type_: str, data: st.DataObject) -> None:
    """Nulls, NaN, -0.0, infinities, texts with any sign, all digits."""
    values = data.draw(st.lists(st.none() | KINDS[type_], max_size=5))
    column = pa.array(values, arrow_type(type_))
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (v)")
    connection.executemany("INSERT INTO t VALUES (?)", [(v,) for v in to_sqlite("v", column)])
    stored = [row[0] for row in connection.execute("SELECT v FROM t ORDER BY rowid")]
    back = from_sqlite(stored, type_)
    assert list(map(str, back.to_pylist())) == list(map(str, column.to_pylist()))


def test_nan_is_no_null() -> None:
    """SQLite itself would store NULL for it."""
    (stored,) = to_sqlite("v", pa.array([math.nan]))
    assert stored == "NaN"


@pytest.mark.parametrize(
    ("default", "type_", "shown"),
    [
        (None, "int", None),
        ("7", "int", 7),
        (7, "long", 7),
        ("1.50", "decimal(10, 2)", "1.50"),
        ("2024-01-02", "date", "2024-01-02"),
        ("it's", "string", "it's"),
        (b"\x00\xff", "binary", b"\x00\xff"),
    ],
)
def test_a_default_is_shown_as_its_column_has_it(default, type_: str, shown: object) -> None:
    """Whatever a statement wrote it as."""
    assert default_of("c", default, type_) == shown


def test_a_default_that_does_not_fit_is_refused() -> None:
    """And says of what column."""
    with pytest.raises(TargetRefused, match="column c: the default 'x' does not fit int"):
        default_of("c", "x", "int")


def test_two_names_are_two_tables() -> None:
    """Dots and per cents in a namespace do not make one of two."""
    names = [("a.b", "c"), ("a", "b.c"), ("a%2eb", "c"), ("a", "%2eb.c"), ("a%", "c"), ("a", "c")]
    assert len({table_name(TargetName("s", *name)) for name in names}) == len(names)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_any_name_is_written_or_refused(tmp_path: Path, name: str) -> None:
    """A hostile name of table and column is a name like others, or is refused as one."""
    store = SqliteStore(tmp_path / "names.db")
    target = TargetName("lite", f"n{abs(hash(name))}", name)
    schema = TableSchema((Column("id", pa.int64()), Column(f"v{name}", pa.string())), ("id",))
    staging = Staging(tmp_path, target, schema)
    table = pa.table({OP: ["U"], "id": [1], f"v{name}": [name]})
    try:
        TargetWriter(store).write(staging.batch(table, 1))
    except TargetRefused:
        assert isinstance(store.look(target), Absent)
    else:
        assert store.read(target).to_pylist() == [{"id": 1, f"v{name}": name}]
    finally:
        store.close()
