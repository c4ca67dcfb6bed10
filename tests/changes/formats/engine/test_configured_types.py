"""The words by which a configuration declares the type of a column."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changes.formats.engine.configured_types import ConfiguredTypes, configured_type
from changes.model.types import TIMESTAMP, TIMESTAMP_UTC


@pytest.mark.parametrize(
    ("words", "arrow"),
    [
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("INTEGER", pa.int32()),
        ("bigint", pa.int64()),
        ("int unsigned", pa.int64()),
        ("bigint  unsigned", pa.decimal128(20, 0)),
        ("float", pa.float32()),
        ("double precision", pa.float64()),
        ("decimal(10,2)", pa.decimal128(10, 2)),
        ("numeric( 38 , 10 )", pa.decimal128(38, 10)),
        ("decimal(5)", pa.decimal128(5, 0)),
        ("varchar(64)", pa.string()),
        ("string", pa.string()),
        ("blob", pa.binary()),
        ("date", pa.date32()),
        ("time", pa.string()),
        ("timestamp", TIMESTAMP),
        ("timestamp(3)", TIMESTAMP),
        ("datetime(6)", TIMESTAMP),
        ("timestamptz", TIMESTAMP_UTC),
        ("timestamp with time zone", TIMESTAMP_UTC),
    ],
)
def test_a_declared_type_is_read_in_the_lakes_words(words: str, arrow: pa.DataType) -> None:
    """The lake's names and SQL's other names for the same are known, in any case."""
    assert configured_type(words).arrow == arrow


@pytest.mark.parametrize(
    "words",
    ["", "decimal", "decimal(39,0)", "decimal(4,5)", "decimal(0)", "bigint(", "uint", "array<int>"],
)
def test_a_type_that_is_none_is_refused_by_name(words: str) -> None:
    """What is not known, and digits that no lake's decimal has, are told with their column."""
    with pytest.raises(ValueError, match=r"^price: .*(allowed: boolean|1 to 38 digits)"):
        ConfiguredTypes.of((("price", words),))


def test_a_column_is_found_whatever_its_case() -> None:
    """The messages may spell a column in capitals (Oracle) and the configuration in small."""
    declared = ConfiguredTypes.of((("id", "bigint"),))
    found = declared.type_of("ID")
    assert found is not None
    assert found.arrow == pa.int64()
    assert declared.type_of("other") is None


def test_a_column_declared_twice_is_refused() -> None:
    """Two declarations that differ by the name's case only would contradict each other."""
    with pytest.raises(ValueError, match=r"^ID: declared twice"):
        ConfiguredTypes.of((("id", "bigint"), ("ID", "int")))
