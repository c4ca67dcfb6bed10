"""Source types in Arrow's words, and how a stored type may grow."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changes.model.types import TIMESTAMP, TIMESTAMP_UTC, SourceType, TextForm, widen
from changes.sql.mysql.types import from_mysql

D = pa.decimal128


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int(11)", pa.int32()),
        ("INTEGER", pa.int32()),
        ("int", pa.int32()),
        ("tinyint(1)", pa.int32()),
        ("bool", pa.int32()),
        ("smallint(5) unsigned", pa.int32()),
        ("mediumint unsigned zerofill", pa.int32()),
        ("int(10) unsigned", pa.int64()),
        ("int(11) unsigned zerofill", pa.int64()),
        ("INT(5) ZEROFILL", pa.int64()),
        ("bigint(20)", pa.int64()),
        ("BIGINT(20) UNSIGNED", D(20, 0)),
        ("serial", D(20, 0)),
        ("decimal(10,2)", D(10, 2)),
        ("DECIMAL( 10 , 2 ) unsigned", D(10, 2)),
        ("decimal", D(10, 0)),
        ("numeric(5)", D(5, 0)),
        ("dec(38,38)", D(38, 38)),
        ("decimal(39,2)", pa.string()),
        ("float", pa.float32()),
        ("float(7,3)", pa.float32()),
        ("float(24)", pa.float32()),
        ("float(25)", pa.float64()),
        ("FLOAT UNSIGNED", pa.float32()),
        ("double", pa.float64()),
        ("double precision", pa.float64()),
        ("double(16,4) unsigned", pa.float64()),
        ("real", pa.float64()),
        ("date", pa.date32()),
        ("datetime", TIMESTAMP),
        ("datetime(3)", TIMESTAMP),
        ("timestamp(6)", TIMESTAMP_UTC),
        ("timestamp", TIMESTAMP_UTC),
        ("varchar(255)", pa.string()),
        ("char(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", pa.string()),
        ("mediumtext", pa.string()),
        ("enum('a')", pa.string()),
        ("json", pa.string()),
        ("year(4)", pa.int32()),
        ("time(6)", pa.string()),
        ("bit", pa.bool_()),
        ("bit(1)", pa.bool_()),
        ("bit(2)", pa.int64()),
        ("bit(63)", pa.int64()),
        ("bit(64)", D(20, 0)),
        ("varbinary(16)", pa.binary()),
        ("BINARY(4)", pa.binary()),
        ("longblob", pa.binary()),
        ("geometry", pa.binary()),
        ("MultiPolygon", pa.binary()),
        ("long varbinary", pa.binary()),
        ("char(4) byte", pa.binary()),
        ("varchar(4) CHARACTER SET binary", pa.binary()),
        ("varchar(4) charset binary", pa.binary()),
        ("long varchar", pa.string()),
        ("char(4) binary", pa.string()),
        ("national varchar(20)", pa.string()),
        ("nchar(2)", pa.string()),
        ("vector(3)", pa.string()),
        ("inet6", pa.string()),
        ("fixed(9,1)", D(9, 1)),
        ("int1", pa.int32()),
        ("int3 unsigned", pa.int32()),
        ("int4 unsigned", pa.int64()),
        ("int8 unsigned", D(20, 0)),
        ("", pa.string()),
        ("(((", pa.string()),
        ("decimal(x,y)", pa.string()),
    ],
)
def test_from_mysql(text: str, expected: pa.DataType) -> None:
    """Each type that MySQL prints has its Arrow type, what is unknown is text."""
    assert from_mysql(text).arrow == expected


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("enum('a','b')", ("a", "b")),
        ("ENUM('int(11)','a,b','it''s','unsigned')", ("int(11)", "a,b", "it's", "unsigned")),
        ("enum('(',')', 'x ') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ("(", ")", "x")),
        (r"enum('a\\b','c\'d','')", ("a\\b", "c'd", "")),
        ("enum", ()),
        ("enum('a", ()),
        ("enum(1,2)", ()),
    ],
)
def test_labels(text: str, labels: tuple[str, ...]) -> None:
    """Labels are read as MySQL prints them; none where they can't be."""
    assert from_mysql(text) == SourceType(pa.string(), TextForm.ENUM, labels)


@pytest.mark.parametrize(
    ("stored", "seen", "expected"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.float64(), pa.float32(), pa.float64()),
        (D(10, 2), D(12, 2), D(12, 2)),
        (D(12, 2), D(10, 2), D(12, 2)),
        (D(12, 4), D(10, 2), D(12, 4)),
        (D(10, 4), D(10, 2), None),
        (D(10, 2), D(12, 4), None),
        (D(20, 0), pa.int64(), D(20, 0)),
        (D(18, 0), pa.int64(), None),
        (pa.int64(), D(20, 0), None),
        (pa.string(), pa.string(), pa.string()),
        (pa.string(), pa.int32(), None),
        (pa.int32(), pa.string(), None),
        (pa.int32(), pa.float64(), None),
        (pa.date32(), TIMESTAMP, None),
        (TIMESTAMP, TIMESTAMP_UTC, None),
    ],
)
def test_widen(stored: pa.DataType, seen: pa.DataType, expected: pa.DataType | None) -> None:
    """A type grows only where no stored value changes, and never shrinks."""
    assert widen(stored, seen) == expected
