"""Source types in Arrow's words, and how a stored type may grow."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changes.types import TIMESTAMP, TIMESTAMP_UTC, from_mysql, widen

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
        ("enum('int(11)','a,b','it''s','unsigned')", pa.string()),
        ("set('a','b')", pa.string()),
        ("year(4)", pa.string()),
        ("time(6)", pa.string()),
        ("bit(1)", pa.string()),
        ("json", pa.string()),
        ("varbinary(16)", pa.string()),
        ("geometry", pa.string()),
        ("", pa.string()),
        ("(((", pa.string()),
        ("decimal(x,y)", pa.string()),
    ],
)
def test_from_mysql(text: str, expected: pa.DataType) -> None:
    """Each type that MySQL prints has its Arrow type, what is unknown is text."""
    assert from_mysql(text) == expected


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
