"""Types in the lake's words, and the steps from a stored table to a wanted one."""

from __future__ import annotations

import re
import tomllib

import pyarrow as pa
import pytest

from changes.model.errors import TargetRefused
from changes.model.model import CHANGELOG_NAMES, Column, Mode, TableSchema
from changes.model.types import CHANGELOG_COLUMNS
from changes.sql.spark.schema import (
    AddLakeColumn,
    CreateTable,
    LakeColumn,
    StoredTable,
    WidenColumn,
    apply_steps,
    arrow_type,
    iceberg_type,
    lake_name,
    plan_schema,
    spark_type,
)


def wanted(*columns: tuple[str, pa.DataType], keys: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema(tuple(Column(name, type_) for name, type_ in columns), keys)


def stored(
    *columns: tuple[str, str], keys: tuple[str, ...] = ("id",), mode: Mode = Mode.UPSERT
) -> StoredTable:
    return StoredTable(tuple(LakeColumn(*column) for column in columns), mode, keys)


@pytest.mark.parametrize(
    ("arrow", "iceberg", "spark"),
    [
        (pa.bool_(), "boolean", "BOOLEAN"),
        (pa.int32(), "int", "INT"),
        (pa.int64(), "long", "BIGINT"),
        (pa.float32(), "float", "FLOAT"),
        (pa.float64(), "double", "DOUBLE"),
        (pa.string(), "string", "STRING"),
        (pa.binary(), "binary", "BINARY"),
        (pa.date32(), "date", "DATE"),
        (pa.timestamp("us"), "timestamp", "TIMESTAMP_NTZ"),
        (pa.timestamp("us", "UTC"), "timestamptz", "TIMESTAMP"),
        (pa.decimal128(20, 0), "decimal(20, 0)", "DECIMAL(20, 0)"),
    ],
)
def test_type_names(arrow: pa.DataType, iceberg: str, spark: str) -> None:
    """Each type goes to Iceberg and back, and has a name in Spark."""
    assert iceberg_type(arrow) == iceberg
    assert arrow_type(iceberg).equals(arrow)
    assert spark_type(iceberg) == spark


@pytest.mark.parametrize(
    "arrow",
    [pa.uint64(), pa.timestamp("ns"), pa.time64("us"), pa.list_(pa.int32()), pa.null()],
    ids=str,
)
def test_type_that_is_not_kept_exactly(arrow: pa.DataType) -> None:
    """A type without an exact counterpart is refused by column and type."""
    with pytest.raises(TargetRefused, match=rf"column x: .*{arrow}".replace("[", r"\[")):
        plan_schema(wanted(("id", pa.int64()), ("x", arrow)), Mode.UPSERT, None)


def test_create() -> None:
    """A target that is not there is created with the wanted columns in their order."""
    steps = plan_schema(wanted(("id", pa.int64()), ("a", pa.string())), Mode.UPSERT, None)
    assert steps == (CreateTable((LakeColumn("id", "long"), LakeColumn("a", "string"))),)


def test_create_changelog() -> None:
    """A changelog begins with the bookkeeping columns and needs no key."""
    (create,) = plan_schema(wanted(("a", pa.string()), keys=()), Mode.APPEND, None)
    assert isinstance(create, CreateTable)
    names = [column.name for column in create.columns]
    assert names == [*(lake_name(name) for name in CHANGELOG_NAMES), "a"]


def test_stored_changelog_hides_bookkeeping() -> None:
    """The schema that a changelog shows to the others is the source's."""
    bookkeeping = [(lake_name(name), iceberg_type(type_)) for name, type_ in CHANGELOG_COLUMNS]
    table = stored(*bookkeeping, ("a", "int"), keys=(), mode=Mode.APPEND)
    assert table.schema == TableSchema((Column("a", pa.int32()),), ())


def test_add_and_widen() -> None:
    """Missing columns are added, narrow ones widened, by their stored names."""
    have = stored(("id", "int"), ("A", "float"), ("d", "decimal(10, 2)"))
    steps = plan_schema(
        wanted(
            ("id", pa.int64()),
            ("a", pa.float64()),
            ("d", pa.decimal128(12, 2)),
            ("new", pa.date32()),
        ),
        Mode.UPSERT,
        have,
    )
    assert steps == (
        WidenColumn(LakeColumn("id", "long")),
        WidenColumn(LakeColumn("A", "double")),
        WidenColumn(LakeColumn("d", "decimal(12, 2)")),
        AddLakeColumn(LakeColumn("new", "date")),
    )


def test_steps_settle() -> None:
    """Once the steps are applied, planning the same again gives none."""
    have = stored(("id", "int"), ("a", "float"))
    want = wanted(("ID", pa.int64()), ("A", pa.float32()), ("b", pa.bool_()))
    steps = plan_schema(want, Mode.UPSERT, have)
    after = StoredTable(apply_steps(have, steps), have.mode, have.keys)
    assert len(steps) == 2
    assert plan_schema(want, Mode.UPSERT, after) == ()


def test_narrower_stays() -> None:
    """A type that fits into the stored one changes nothing."""
    have = stored(("id", "long"), ("a", "double"), ("d", "decimal(12, 2)"))
    want = wanted(("id", pa.int32()), ("a", pa.float32()), ("d", pa.decimal128(9, 2)))
    assert plan_schema(want, Mode.UPSERT, have) == ()


def test_unwanted_stays() -> None:
    """A stored column that the source no longer has stays in the table."""
    assert (
        plan_schema(wanted(("id", pa.int64())), Mode.UPSERT, stored(("id", "long"), ("z", "int")))
        == ()
    )


@pytest.mark.parametrize(
    ("have", "want"),
    [
        ("string", pa.int32()),
        ("int", pa.string()),
        ("long", pa.float64()),
        ("decimal(10, 2)", pa.decimal128(12, 3)),
        ("timestamp", pa.timestamp("us", "UTC")),
    ],
)
def test_type_that_can_not_change(have: str, want: pa.DataType) -> None:
    """Any other change of type is refused, naming the column and both types."""
    with pytest.raises(TargetRefused) as refusal:
        plan_schema(
            wanted(("id", pa.int64()), ("c", want)),
            Mode.UPSERT,
            stored(("id", "long"), ("c", have)),
        )
    assert all(word in str(refusal.value) for word in ("c", have, iceberg_type(want)))


def test_what_is_advised_can_be_put_into_the_configuration() -> None:
    """Names with blanks and quotes, too."""
    for name in ("c", "a b", 'say "c"', "it's"):
        with pytest.raises(TargetRefused) as refusal:
            plan_schema(wanted(("id", pa.int64()), (name, pa.string())), Mode.UPSERT,
                        stored(("id", "long"), (name, "int")))  # fmt: skip
        (advice,) = re.findall("such as (types = .*), and read", str(refusal.value))
        assert tomllib.loads(advice) == {"types": {name: "string"}}


def test_other_key() -> None:
    """Another key than the stored one is refused, naming both."""
    have = stored(("id", "long"), ("b", "long"))
    want = wanted(("id", pa.int64()), ("b", pa.int64()), keys=("id", "b"))
    with pytest.raises(TargetRefused, match=r"\(id\).*\(id, b\)"):
        plan_schema(want, Mode.UPSERT, have)


@pytest.mark.parametrize("mode", list(Mode))
def test_other_mode(mode: Mode) -> None:
    """A changelog does not become an upsert target, nor the reverse."""
    have = stored(("id", "long"), mode=Mode.APPEND if mode is Mode.UPSERT else Mode.UPSERT)
    with pytest.raises(TargetRefused, match="upsert"):
        plan_schema(wanted(("id", pa.int64())), mode, have)


def test_key_outside_the_columns() -> None:
    """A key of columns that the table lacks is refused by their names."""
    with pytest.raises(TargetRefused, match="nope"):
        plan_schema(wanted(("id", pa.int64()), keys=("nope",)), Mode.UPSERT, None)


@pytest.mark.parametrize(
    ("mode", "name"), [(Mode.UPSERT, "ID"), (Mode.APPEND, "_OP")], ids=["twice", "bookkeeping"]
)
def test_names_that_collide(mode: Mode, name: str) -> None:
    """Two columns of one name, case aside, are refused: Spark could not tell them apart."""
    with pytest.raises(TargetRefused, match=name):
        plan_schema(wanted(("id", pa.int64()), (name, pa.int64())), mode, None)


def test_name_that_spark_expands() -> None:
    """A name with ``${`` is refused: read from the staged file, its column would be null."""
    want = wanted(("id", pa.int64()), ("${user.name}", pa.string()))
    with pytest.raises(TargetRefused, match=r"user\.name"):
        plan_schema(want, Mode.UPSERT, None)


@pytest.mark.parametrize("name", ["_file", "_POS"])
def test_name_that_iceberg_keeps(name: str) -> None:
    """A source column named like a metadata column is refused: the table could not be read."""
    with pytest.raises(TargetRefused, match=f"column {name}: Iceberg keeps that name"):
        plan_schema(wanted(("id", pa.int64()), (name, pa.int64())), Mode.UPSERT, None)


def test_a_column_of_the_key_that_is_gone() -> None:
    """It is not added again: the rows that are there would lose their keys."""
    stored = StoredTable((LakeColumn("name", "string"),), Mode.UPSERT, ("id",))
    wanted = TableSchema((Column("ID", pa.int64()), Column("name", pa.string())), ("ID",))
    with pytest.raises(TargetRefused, match="column id, by which its rows are told apart"):
        plan_schema(wanted, Mode.UPSERT, stored)
