"""Arrow's types in Iceberg's and Spark's words, and what a stored table lacks of a wanted one.

Pure: no Spark, no catalog. Column names compare without regard to case, as Spark and MySQL do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from changes.model.errors import TargetRefused
from changes.model.model import CHANGELOG_NAMES, POSITION, Column, Mode, TableSchema
from changes.model.types import CHANGELOG_COLUMNS

MAX_PRECISION = 38

_SPARK_NAMES = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "binary": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
}
_ARROW_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)$", re.ASCII)


ICEBERG_RESERVED = frozenset(
    {
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
        "_row_id",
        "_last_updated_sequence_number",
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
    }
)
"""Names of Iceberg's metadata columns (org.apache.iceberg.MetadataColumns)."""

_SHAPED = frozenset({"_DELETED"})
"""What shaped routes add under a name that Iceberg keeps for itself in small letters alone."""


class LakeColumn(NamedTuple):
    """A column by Iceberg's name of its type (``long``, ``decimal(10, 2)``, ``timestamptz``)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class StoredTable:
    """What a table of ours holds: every column, bookkeeping ones included, its mode and key."""

    columns: tuple[LakeColumn, ...]
    mode: Mode
    keys: tuple[str, ...]

    @property
    def schema(self) -> TableSchema:
        """The table in the language of all sinks: Arrow types, without bookkeeping columns."""
        own = _changelog_names() if self.mode is Mode.APPEND else frozenset[str]()
        columns = tuple(
            Column(column.name, arrow_type(column.type))
            for column in self.columns
            if column.name.lower() not in own and column.name != POSITION
        )
        return TableSchema(columns, self.keys)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Make the table with these columns, all of them nullable."""

    columns: tuple[LakeColumn, ...]


@dataclass(frozen=True, slots=True)
class AddLakeColumn:
    """Add a column; rows already stored read as NULL."""

    column: LakeColumn


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """Change a column, by its stored name, to a type that holds every value it has."""

    column: LakeColumn


SchemaStep = CreateTable | AddLakeColumn | WidenColumn


def iceberg_type(type_: pa.DataType) -> str:
    """Iceberg's name for an Arrow type. Raises ValueError for one that Spark can't keep exactly."""
    if pa.types.is_timestamp(type_) and type_.unit != "ns":
        return "timestamp" if type_.tz is None else "timestamptz"
    if pa.types.is_decimal(type_) and type_.precision <= MAX_PRECISION and type_.scale >= 0:
        return f"decimal({type_.precision}, {type_.scale})"
    if pa.types.is_int8(type_) or pa.types.is_int16(type_):
        return "int"
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "string"
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return "binary"
    for name, arrow in _ARROW_TYPES.items():
        if type_.equals(arrow):
            return name
    raise ValueError(f"no Iceberg type holds {type_}")


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of an Iceberg type's name. Raises TargetRefused for one we never write."""
    if found := _DECIMAL.match(name):
        return pa.decimal128(int(found[1]), int(found[2]))
    try:
        return _ARROW_TYPES[name]
    except KeyError:
        raise TargetRefused(f"a column of type {name} was added by another tool") from None


def spark_type(name: str) -> str:
    """Spark SQL's name for an Iceberg type's name."""
    return (
        f"DECIMAL({found[1]}, {found[2]})"
        if (found := _DECIMAL.match(name))
        else (_SPARK_NAMES[name])
    )


def lake_name(name: str) -> str:
    """How a changelog's own column is spelled in the lake.

    Iceberg refuses to read a column that is named like one of its metadata columns, and compares
    by case; Spark doesn't. So ``_partition`` is stored as ``_PARTITION``, and ``SELECT
    _partition`` finds it.
    """
    return name.upper() if name in ICEBERG_RESERVED else name


def plan_schema(
    wanted: TableSchema,
    mode: Mode,
    stored: StoredTable | None,
) -> tuple[SchemaStep, ...]:
    """The steps after which the table holds ``wanted``; none when it does already.

    A column that is stored wider than required stays as it is; a stored one that is not required
    stays too. Raises TargetRefused, naming columns and types, where no step can do it.
    """
    columns = _wanted_columns(wanted, mode)
    if mode is Mode.UPSERT:
        _check_keys(wanted.keys, columns)
    if stored is None:
        return (CreateTable(columns),)
    if stored.mode is not mode:
        raise TargetRefused(f"the table is kept as {stored.mode.value}, required is {mode.value}")
    if mode is Mode.UPSERT and _lower(stored.keys) != _lower(wanted.keys):
        raise TargetRefused(
            f"the table's key is ({', '.join(stored.keys)}), required is ({', '.join(wanted.keys)})"
            f": set keys in its route, and read it again: binlogd tables rebuild"
        )
    held = {column.name.lower(): column for column in stored.columns}
    own = stored.keys if mode is Mode.UPSERT else [lake_name(name) for name in CHANGELOG_NAMES]
    if gone := [name for name in own if name.lower() not in held]:
        raise TargetRefused(missing_columns(gone))
    steps: list[SchemaStep] = []
    for column in columns:
        lower = column.name.lower()
        have = held.get(lower)
        if have is None:
            steps.append(AddLakeColumn(column))
        elif widens(have.type, column.type):
            steps.append(WidenColumn(LakeColumn(have.name, column.type)))
        elif not (have.type == column.type or widens(column.type, have.type)):
            raise TargetRefused(
                f"column {have.name} is stored as {have.type}, which can't become {column.type}: "
                "declare a type that holds both in its route, such as "
                f'types = {{ {json.dumps(have.name)} = "string" }}, and read the table again: '
                "binlogd tables rebuild"
            )
    return tuple(steps)


def missing_columns(names: Iterable[str]) -> str:
    """Why a table is refused that has lost columns by which its rows are told apart.

    Added again they would be null in the rows that are there: no change would find those.
    """
    return (
        f"column {', '.join(names)}, by which its rows are told apart, was renamed or dropped by"
        " another tool: give it its name again (ALTER TABLE … RENAME COLUMN), or read the table"
        " again: binlogd tables rebuild"
    )


def apply_steps(stored: StoredTable | None, steps: Iterable[SchemaStep]) -> tuple[LakeColumn, ...]:
    """The table's columns once the steps are done, in their order."""
    columns = list(stored.columns) if stored else []
    for step in steps:
        match step:
            case CreateTable(created):
                columns = list(created)
            case AddLakeColumn(column):
                columns.append(column)
            case WidenColumn(column):
                columns = [column if have.name == column.name else have for have in columns]
    return tuple(columns)


def _wanted_columns(wanted: TableSchema, mode: Mode) -> tuple[LakeColumn, ...]:
    """Bookkeeping first, then the wanted columns."""
    own = CHANGELOG_COLUMNS if mode is Mode.APPEND else ()
    columns = [LakeColumn(lake_name(name), iceberg_type(type_)) for name, type_ in own]
    taken = {column.name.lower() for column in columns}
    for column in wanted.columns:
        if column.name.lower() in taken:
            raise TargetRefused(f"two columns are named {column.name} (case aside)")
        taken.add(column.name.lower())
        columns.append(lake_column(column))
    return tuple(columns)


def lake_column(column: Column) -> LakeColumn:
    """The column in the lake's words. Raises TargetRefused for a name or type it can't have."""
    check_name(column.name)
    try:
        return LakeColumn(column.name, iceberg_type(column.type))
    except ValueError as error:
        raise TargetRefused(f"column {column.name}: {error}") from None


def check_name(name: str) -> None:
    """Raise TargetRefused where no column can have the name."""
    if not name:
        raise TargetRefused("a column without a name, which Iceberg does not add")
    if name.lower() in ICEBERG_RESERVED and name not in _SHAPED:
        raise TargetRefused(f"column {name}: Iceberg keeps that name for itself")
    if "${" in name:
        # Spark hands the names to its Parquet reader inside a Hadoop setting, which expands
        # this: the column would be read as null.
        raise TargetRefused(f"column {name}: Spark can't read a name with ${{")


def _check_keys(keys: tuple[str, ...], columns: Iterable[LakeColumn]) -> None:
    if not keys:
        raise TargetRefused("a table without a key can't be kept equal by upsert")
    names = _lower(column.name for column in columns)
    if missing := [key for key in keys if key.lower() not in names]:
        raise TargetRefused(f"the key names columns that the table lacks: {', '.join(missing)}")


def widens(narrow: str, wide: str) -> bool:
    """Whether Iceberg can turn ``narrow`` into the different type ``wide`` in place."""
    if (narrow, wide) in {("int", "long"), ("float", "double")}:
        return True
    have, want = _DECIMAL.match(narrow), _DECIMAL.match(wide)
    return bool(have and want and have[2] == want[2] and int(have[1]) < int(want[1]))


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


def _changelog_names() -> frozenset[str]:
    return frozenset(name.lower() for name in CHANGELOG_NAMES)
