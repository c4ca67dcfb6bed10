"""What a verification remembers and says."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from rich.console import Console

from changes.model.model import Changes, Column, Mode, TableName, TableSchema, TargetName
from changes.routes.routing import TargetRoute
from changes.sql.forms import Form
from changes.sql.spark.checksums import Grid, Interval
from daemon.operations.load.columns import FittedTable
from daemon.operations.verify.columns import ComparedShape, NotComparable, shape_of
from daemon.operations.verify.groups import Differing
from daemon.operations.verify.in_flight import DifferingRow
from daemon.operations.verify.key_texts import NoText, key_text, keys_of
from daemon.operations.verify.report import result_of, shown, skipped, summary, table_result
from daemon.operations.verify.result_table import print_result
from daemon.operations.verify.work import Table, Work
from databases.base.port import SourceColumn, SourceTable
from databases.streamed import as_streamed

TABLE = SourceTable(
    TableName("shop", "t"),
    (
        SourceColumn("id", "bigint", False, Form.WHOLE),
        SourceColumn("Name", "varchar(9)", True, Form.TEXT),
        SourceColumn("ratio", "double", True, Form.DOUBLE),
        SourceColumn("shape", "geometry", True, None, refused="it has no text"),
        SourceColumn("lost", "int", True, Form.WHOLE),
        SourceColumn("day", "date", True, Form.DATE),
    ),
    ("id",), 10, 1000, "d1",
)  # fmt: skip
TARGET = TableSchema(
    (
        Column("id", pa.int64()),
        Column("name", pa.string()),
        Column("ratio", pa.float64()),
        Column("shape", pa.binary()),
        Column("day", pa.int32()),
        Column("kept", pa.string()),
    ),
    ("id",),
)


def matched(table: SourceTable, target: TableSchema) -> ComparedShape:
    """Of a MySQL's table by Canal."""
    return shape_of(table, as_streamed(table, "mysql", "canal-json"), target)


@pytest.fixture
def shape() -> ComparedShape:
    """Of the two."""
    return matched(TABLE, TARGET)


def test_columns_are_matched_by_name_and_what_is_not_compared_is_told(shape: ComparedShape) -> None:
    """Case aside; a column that the target lacks is told apart from one that has no text."""
    assert [pair.name for pair in shape.pairs] == ["id", "name", "ratio"]
    assert shape.missing == ("lost",)
    assert shape.notes[0] == "not compared: shop.t, column shape: it has no text"
    assert "column day: date is stored as int" in shape.notes[1]
    assert shape.notes[2] == "not compared: column kept, which the source has not"
    assert shape.number == "CAST(`id` AS BIGINT)"


@pytest.mark.parametrize(
    ("keys", "said"),
    [((), "has no key"), (("shape",), "can't be compared"), (("ratio",), "floating-point")],
)
def test_a_table_whose_key_has_no_text_is_refused(keys: tuple[str, ...], said: str) -> None:
    """Its rows can't be told apart."""
    with pytest.raises(NotComparable, match=said):
        matched(replace(TABLE, keys=keys), TARGET)


def test_dates_of_no_calendar_are_null_as_in_the_stream() -> None:
    """And numbers that are none; texts that look like these stay."""
    column = SourceColumn("d", "date", True, Form.DATE)
    table = replace(TABLE, columns=(*TABLE.columns[:2], column))
    target = TableSchema((*TARGET.columns[:2], Column("d", pa.date32())), ("id",))
    read = matched(table, target).read
    assert read(("1", "0000-00-00", "0000-00-00")) == ("1", "0000-00-00", None)
    assert read(("1", "NaN", "infinity")) == ("1", "NaN", None)
    assert read(("1", None, "2024-01-02")) == ("1", None, "2024-01-02")


def test_what_is_shown_of_a_row(shape: ComparedShape) -> None:
    """The columns that differ with both values; bits of a number as that number."""
    row = shown(DifferingRow(("1",), ("1", "a", "4607182418800017408"), ("1", "", None)), shape)
    assert row == {
        "key": {"id": "1"}, "what": "differs",
        "columns": {"Name": ["a", ""], "ratio": ["1.0", None]},
    }  # fmt: skip


def test_of_a_long_value_the_part_that_differs_is_shown(shape: ComparedShape) -> None:
    """With its length."""
    long = "x" * 5000
    row = shown(DifferingRow(("1",), ("1", long + "y", None), ("1", long, None)), shape)
    here, there = row["columns"]["Name"]
    assert here.endswith("xy (5001)")
    assert there.endswith("x (5000)")
    assert len(here) < 250


def test_work_is_kept_as_json() -> None:
    """All of it."""
    table = Table(
        1, "d", Grid(1, 2), (Differing(Interval(None, 5), 2, ("ab",), 9),), (("1", "a"),),
        ({"key": {"id": "1"}},), ((("2", "b"), "it changes"),), (3, 4), 5, ("note",), 1,
    )  # fmt: skip
    work = Work(({"rows": 1},), table, 7)
    assert Work.of(json.loads(json.dumps(work.document()))) == work
    assert Work.of({}) == Work()


def result() -> dict[str, object]:
    found = Table(0, found=(("1",),), shown=({"key": {"id": "1"}, "what": "missing"},), rows=(9, 8))
    return result_of(
        [
            table_result("lake.s.a", "s.a", Table(0, rows=(5, 5)), 1500),
            table_result("lake.s.b", "s.b", found, 2000),
            table_result("lake.s.c", "s.c", Table(0, undecided=((("2",), "moves"),)), 2000),
            skipped("lake.s.d", "s.d", "it is in quarantine"),
        ],
        1.0,
    )


def test_a_result_counts_what_is_not_equal() -> None:
    """A table that was not compared is not equal either."""
    whole = result()
    assert not whole["equal"]
    assert summary(whole) == (
        "1 of 4 tables are equal, 14 rows, 1 row differs, 1 undecided, 1 table not compared"
    )
    assert result_of([skipped("lake.s.d", "s.d", "no")], 1.0)["equal"] is False
    assert result_of([table_result("t", "s", Table(0), 0)], 1.0)["equal"] is True


def test_a_result_is_printed_for_people() -> None:
    """Names and values as they are, whatever is in them."""
    console = Console(width=160, record=True)
    print_result(console, result())
    text = console.export_text()
    for line in ("equal", "lake.s.b: id = 1: is missing", "2: undecided: moves", "in quarantine"):
        assert line in text


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (Form.WHOLE, 7, "7"),
        (Form.WHOLE, True, "1"),
        (Form.WHOLE, pa.scalar(7).as_py(), "7"),
        (Form.TEXT, "a b ", "a b "),
        (Form.HEX, b"\x01\xff", "01ff"),
        (Form.LOCAL, "2024-01-02 03:04:05", "2024-01-02 03:04:05.000000"),
    ],
)
def test_a_key_of_the_log_has_the_source_s_text(form: Form, value: object, text: str) -> None:
    """So that it is found among the keys that differ."""
    assert key_text(form, value) == text


def test_keys_of_decoded_changes(shape: ComparedShape) -> None:
    """Also where a column is spelled otherwise; a key without a text is not passed over."""
    route = TargetRoute(TargetName("lake", "shop", "t"), Mode.UPSERT, None)
    wanted = FittedTable(TABLE, (), route, TABLE.keys, None)
    table = pa.table({"__binlogd_op": ["U", "D"], "ID": pa.array([1, 2], pa.int64())})
    changes = Changes(table, TARGET, Mode.UPSERT, 2)
    assert keys_of(changes, shape.keys, wanted) == {("1",), ("2",)}
    odd = pa.table({"__binlogd_op": ["U"], "id": pa.array([1.5])})
    with pytest.raises(NoText):
        keys_of(Changes(odd, TARGET, Mode.UPSERT, 1), shape.keys, wanted)
