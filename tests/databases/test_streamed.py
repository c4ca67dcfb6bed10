"""What a stream makes of a table: types by format, and what can't be had exactly, by name."""

from __future__ import annotations

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import Format
from changes.model.model import TableName
from changes.sql.forms import Form
from databases.base.port import SourceColumn, SourceTable
from databases.mysql import sql as mysql_sql
from databases.postgres import sql as postgresql_sql
from databases.streamed import Streamed, as_streamed

TABLE = TableName("shop", "orders")


def of_mysql(type_: str, nullable: bool = True) -> SourceColumn:
    form = mysql_sql.form_of(type_)
    return SourceColumn("a", type_, nullable, form, refused="" if form else "no exact text")


def of_postgresql(type_: str) -> SourceColumn:
    form = postgresql_sql.form_of(type_)
    return SourceColumn("a", type_, True, form, refused="" if form else "no exact text")


def streamed(
    column: SourceColumn,
    format_: str,
    kind: str = "mysql",
    types: tuple[tuple[str, str], ...] = (),
    stored: dict[str, str] | None = None,
) -> Streamed:
    return as_streamed(
        SourceTable(TABLE, (column,), ("a",), 0, 0, ""), kind, format_, types, stored
    )


TYPES = [
    ("tinyint(1)", "int", "int", "int"),
    ("int(10) unsigned", "long", "long", "long"),
    ("bigint(20) unsigned", "decimal(20, 0)", "long", "long"),
    ("decimal(10,2)", "decimal(10, 2)", "decimal(10, 2)", "string"),
    ("decimal(65,30)", "string", "string", "string"),
    ("float", "float", "float", "float"),
    ("double", "double", "double", "double"),
    ("bit(1)", "boolean", "boolean", "long"),
    ("bit(9)", "long", "long", "long"),
    ("varchar(9)", "string", "string", "string"),
    ("date", "date", "date", "date"),
    ("datetime(6)", "timestamp", "timestamp", "timestamp"),
    ("timestamp", "timestamptz", "timestamptz", "timestamptz"),
    ("time(3)", "string", "string", "string"),
    ("year(4)", "int", "int", "int"),
    ("set('a','b')", "string", "string", "string"),
]


@pytest.mark.parametrize(("type_", "canal", "debezium", "aliyun"), TYPES)
def test_types_by_format(type_: str, canal: str, debezium: str, aliyun: str) -> None:
    """As docs/types.md has them."""
    wanted = {
        "canal-json": canal, "canal-protobuf": canal, "tencent-dts": canal,
        "debezium-json": debezium, "aliyun-dts-avro": aliyun,
    }  # fmt: skip
    for format_, lake in wanted.items():
        found = streamed(of_mysql(type_), format_)
        assert [(one.type, found.refused) for one in found.columns] == [(lake, ())], format_


@pytest.mark.parametrize(
    ("type_", "lake"),
    [
        ("smallint", "int"),
        ("bigint", "long"),
        ("numeric(10,2)", "decimal(10, 2)"),
        ("numeric(5,-2)", "decimal(7, 0)"),
        ("numeric(3,5)", "decimal(5, 5)"),
        ("numeric(50,20)", "string"),
        ("numeric", "string"),
        ("money", "decimal(38, 2)"),
        ("bit(1)", "boolean"),
        ("bit(63)", "long"),
        ("bit(64)", "decimal(20, 0)"),
        ("timestamp(3) without time zone", "timestamp"),
        ("timestamp with time zone", "timestamptz"),
        ("interval", "long"),
        ("point", "binary"),
        ("integer[]", "string"),
    ],
)
def test_types_of_postgresql(type_: str, lake: str) -> None:
    """As Debezium sends them with its defaults."""
    found = streamed(of_postgresql(type_), "debezium-json", "postgresql")
    assert [one.type for one in found.columns] == [lake]


@pytest.mark.parametrize(
    ("type_", "format_", "reason"),
    [
        ("vector(3)", "debezium-json", "no exact text"),
        ("uuid", "canal-json", "no text of a uuid"),
        ("blob", "aliyun-dts-avro", "does not show"),
        ("double", "maxwell-json", "declare its type"),
        ("set('a')", "maxwell-json", "declare its type"),
        ("json", "maxwell-json", "as text"),
        ("decimal(20,7)", "maxwell-json", "declare its type"),
        ("blob", "maxwell-json", "declare"),
        ("datetime(3)", "maxwell-json", "declare its type"),
        ("date", "ogg-json", "declare its type"),
    ],
)
def test_what_is_not_had_exactly_is_refused_by_name(type_: str, format_: str, reason: str) -> None:
    """One line with table and column, and no column of it."""
    found = streamed(of_mysql(type_), format_)
    assert found.columns == ()
    assert len(found.refused) == 1
    assert found.refused[0].startswith("shop.orders, column a: ")
    assert reason in found.refused[0]


def test_rows_whose_types_their_writer_chooses_are_not_loaded() -> None:
    """A load would store the database's."""
    (why,) = streamed(of_mysql("int"), "upsert").refused
    assert "its writer's schemas say the types" in why


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"upsert"}))
def test_each_format_is_known(name: str) -> None:
    """A load can be planned from the streams of all others."""
    assert streamed(of_mysql("int"), name).refused == ()


def test_a_format_that_says_nothing_of_its_types_is_not_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is a new one: what a load would store might be another type than its rows'."""
    base = FORMATS["ogg-json"]
    made = type("New", (base,), {"column_types": Format.column_types})
    monkeypatch.setitem(FORMATS, "new-json", made)
    assert streamed(of_mysql("int"), "new-json").refused == (
        "shop.orders, column a: format new-json is not known here",
    )


def test_times_of_a_format_that_says_nothing_of_their_text_need_a_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new one may print them otherwise than the database does."""
    assert streamed(of_mysql("datetime"), "maxwell-json").refused == ()
    made = type(
        "New", (FORMATS["maxwell-json"],), {"prints_as_database": Format.prints_as_database}
    )
    monkeypatch.setitem(FORMATS, "new-json", made)
    (said,) = streamed(of_mysql("datetime"), "new-json").refused
    assert said.endswith("declare its type")


@pytest.mark.parametrize(
    "type_", ["real[]", "time with time zone", "bit(65)", "tstzrange", "odd", "shop.hstore"]
)
def test_what_postgresql_and_debezium_print_differently_is_refused(type_: str) -> None:
    """Rather than loaded otherwise."""
    assert streamed(of_postgresql(type_), "debezium-json", "postgresql").columns == ()


def test_declared_types_count_where_messages_have_none() -> None:
    """As the pipeline's route has them."""
    found = streamed(of_mysql("double"), "maxwell-json", types=(("A", "double"),))
    assert [one.type for one in found.columns] == ["double"]
    found = streamed(of_mysql("datetime(3)"), "maxwell-json", types=(("a", "timestamp"),))
    assert [one.type for one in found.columns] == ["timestamp"]


def test_the_targets_type_counts_where_it_holds_the_streams() -> None:
    """A widened column stays wide; another type is refused by name."""
    found = streamed(of_mysql("int"), "canal-json", stored={"A": "long"})
    assert [one.type for one in found.columns] == ["long"]
    found = streamed(of_mysql("varchar(3)"), "canal-json", stored={"a": "int"})
    assert found.columns == ()
    assert "not had exactly as int" in found.refused[0]


def test_text_of_a_date_is_had_only_where_it_is_declared() -> None:
    """Debezium without schema would have the number of its days."""
    stored = {"a": "string"}
    assert streamed(of_mysql("date"), "debezium-json", stored=stored).columns == ()
    declared = streamed(of_mysql("date"), "debezium-json", types=(("a", "string"),), stored=stored)
    assert [one.type for one in declared.columns] == ["string"]


def test_padded_bytes_are_as_each_reader_has_them() -> None:
    """The binary log leaves the zeros at the end away, Debezium puts them back."""
    forms = {
        format_: streamed(of_mysql("binary(4)"), format_).columns[0].column.form
        for format_ in ("canal-json", "debezium-json")
    }
    assert forms == {"canal-json": Form.STRIPPED, "debezium-json": Form.HEX}


def test_a_zero_date_that_can_not_be_null_is_debeziums() -> None:
    """1970 in its stream, so 1970 in a load."""
    column = streamed(of_mysql("date", nullable=False), "debezium-json").columns[0].column
    assert "1970-01-01" in mysql_sql.MySqlWords().text(column)
    column = streamed(of_mysql("date", nullable=False), "canal-json").columns[0].column
    assert column.zero is None


def test_generated_columns_of_postgresql_are_left_out() -> None:
    """It does not publish them."""
    column = SourceColumn("a", "integer", True, Form.WHOLE, generated=True)
    assert streamed(column, "debezium-json", "postgresql") == Streamed((), ())


def test_a_collector_has_unsigned_numbers_exactly() -> None:
    """Other Debeziums have them as long by default; all other types are the same."""
    for type_, *_ in TYPES:
        column = of_mysql(type_)
        table = SourceTable(TABLE, (column,), ("a",), 0, 0, "")
        (own,) = as_streamed(table, "mysql", "debezium-json", collected=True).columns
        (other,) = as_streamed(table, "mysql", "debezium-json").columns
        exact = type_ == "bigint(20) unsigned"
        assert own.type == ("decimal(20, 0)" if exact else other.type)
