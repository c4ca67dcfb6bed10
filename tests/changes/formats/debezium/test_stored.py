"""Records with schema, then without: a column keeps its type where a value reads as it exactly."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from changes.formats.auto import AutoFormat
from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import mark_of, pack
from changes.model.model import (
    BadRecord,
    Changes,
    Column,
    ColumnTypes,
    FormatOptions,
    Mode,
    TableSchema,
)
from changes.model.types import CHANGELOG_COLUMNS, TIMESTAMP, TIMESTAMP_UTC
from tests.changes.formats.debezium.messages import change, dumps, envelope, record, typed

OTHER = Column("other", pa.float64())
"""A column by which a table shows that records with schema filled it."""


def table(v: pa.DataType, *others: Column) -> TableSchema:
    """A stored table of a key and a column ``V``: names are compared without regard to case."""
    return TableSchema((Column("id", pa.int32()), Column("V", v), *others), ("id",))


def decode(
    stored: TableSchema | None, *values: bytes, types: ColumnTypes = (), mode: Mode = Mode.UPSERT
) -> Changes:
    """Decode records by a decoder that is new, as after a restart, and knows the table."""
    decoder = DebeziumJson(FormatOptions()).table_decoder(mode, None, types)
    if stored is not None:
        decoder.use_stored_schema(stored)
    changes = decoder.decode(0, range(len(values)), values)
    assert changes is not None
    return changes


def raw(value: str) -> bytes:
    """A row without schema whose ``v`` is this JSON."""
    text = dumps(envelope("c", {"id": 1, "v": "@"})).replace(b'"@"', value.encode())
    return pack(b'{"id":1}', text)


EXACT: list[tuple[pa.DataType, str, Any]] = [
    (pa.int32(), "5", 5),
    (pa.int32(), "true", 1),
    (pa.int64(), "-9223372036854775808", -(2**63)),
    (pa.bool_(), "true", True),
    (pa.bool_(), "0", False),
    (pa.float64(), "1.5", 1.5),
    (pa.float64(), "7", 7.0),
    (pa.float64(), '"NaN"', float("nan")),
    (pa.float64(), "-Infinity", float("-inf")),
    (pa.decimal128(10, 2), "1.50", Decimal("1.50")),
    (pa.decimal128(10, 2), "-7", Decimal("-7.00")),
    (pa.decimal128(10, 2), '"1.50"', Decimal("1.50")),
    (pa.decimal128(10, 2), '"-150"', Decimal("-150.00")),
    (pa.decimal128(10, 2), '"150"', Decimal("150.00")),
    (pa.decimal128(20, 0), "18446744073709551615", Decimal(2**64 - 1)),
    (pa.binary(), '"AQI="', b"\1\2"),
    (pa.date32(), "5", date(1970, 1, 6)),
    (pa.date32(), '"2018-06-20"', date(2018, 6, 20)),
    (TIMESTAMP, '"2018-06-20 13:37:03.5"', datetime(2018, 6, 20, 13, 37, 3, 500000)),
    (TIMESTAMP_UTC, '"2018-06-20T13:37:03Z"', datetime(2018, 6, 20, 13, 37, 3, tzinfo=UTC)),
    (pa.string(), '"x"', "x"),
    (pa.string(), '"17"', "17"),
    (pa.int32(), "null", None),
    (pa.string(), "null", None),
    (pa.decimal128(10, 2), "null", None),
]


@pytest.mark.parametrize(("stored", "given", "wanted"), EXACT)
def test_what_reads_as_the_stored_type(stored: pa.DataType, given: str, wanted: Any) -> None:
    """The table's type, not text, which it could not become."""
    changes = decode(table(stored, OTHER), raw(given), raw(given))
    assert changes.table.schema.field("v").type == stored
    assert changes.table["id"].type == pa.int32()
    found = changes.table["v"].to_pylist()
    assert [found] == [[wanted, wanted]] or str(found) == str([wanted, wanted])


REFUSED: list[tuple[pa.DataType, str]] = [
    (pa.int32(), "1.5"),
    (pa.int32(), "2147483648"),
    (pa.int32(), '"5"'),
    (pa.int64(), '"1234"'),  # of BIT(24), in base64
    (pa.bool_(), '"x"'),
    (pa.bool_(), "2"),
    (pa.float64(), '"1234"'),
    (pa.float64(), '"x"'),
    (pa.decimal128(10, 2), '"AJY="'),
    (pa.decimal128(10, 2), '"1234"'),  # 14119.32 in base64
    (pa.decimal128(10, 2), '""'),
    (pa.decimal128(10, 2), "1.501"),
    (pa.decimal128(10, 2), '{"scale":1,"value":"AQ=="}'),
    (pa.decimal128(20, 0), "-1"),  # 18446744073709551615 through a signed integer
    (pa.binary(), '"x"'),
    (pa.binary(), "[1]"),
    (pa.date32(), '"x"'),
    (pa.date32(), "2147483647"),
    (TIMESTAMP, "1529501823123"),  # in which unit?
    (TIMESTAMP_UTC, "1529501823123456"),
    (pa.string(), "3600000"),  # a time
    (pa.string(), "true"),
    (pa.string(), '{"scale":1,"value":"AQ=="}'),
]


@pytest.mark.parametrize(("stored", "given"), REFUSED)
def test_what_may_be_another_value_is_refused(stored: pa.DataType, given: str) -> None:
    """The record alone, with what is stored and what helps."""
    said = r"^shop\.orders: v: .*the column is stored, and the record declares no type \(set types"
    with pytest.raises(BadRecord, match=said) as error:
        decode(table(stored, OTHER), raw("null"), raw(given))
    assert error.value.index == 1


def test_a_table_of_text_takes_all_as_text() -> None:
    """It was filled without schemas; columns of a changelog and declared ones tell nothing."""
    marks = [Column(name, kind) for name, kind in CHANGELOG_COLUMNS]
    text = TableSchema((Column("id", pa.string()), Column("v", pa.string()), *marks), ())
    assert decode(text, raw("1.50"), mode=Mode.APPEND).table["v"].to_pylist() == ["1.50"]
    priced = TableSchema((*text.columns[:2], Column("Price", pa.decimal128(9, 2))), ("id",))
    types = (("price", "decimal(9,2)"),)
    assert decode(priced, raw("3600000"), types=types).table["v"].to_pylist() == ["3600000"]


def test_what_a_configuration_declares_goes_first() -> None:
    """It is the way out of what is refused here."""
    when = (("v", "io.debezium.time.Timestamp"),)
    found = decode(table(TIMESTAMP, OTHER), raw("1529501823123"), types=when)
    assert found.table["v"].to_pylist() == [datetime(2018, 6, 20, 13, 37, 3, 123000)]
    text = (("v", "string"),)
    assert decode(table(pa.string(), OTHER), raw("5"), types=text).table["v"].to_pylist() == ["5"]


FIELDS: dict[str, Any] = {
    "id": "int32",
    "v": (
        "bytes",
        "org.apache.kafka.connect.data.Decimal",
        {"scale": "2", "connect.decimal.precision": "10"},
    ),
}


def test_a_refusal_names_what_was_known_then() -> None:
    """A schema that comes later in the batch is not what the value was read by."""
    later = typed("c", {"id": "int32", "v": ("int64", "io.debezium.time.Timestamp")},
                  {"id": 2, "v": 5})  # fmt: skip
    with pytest.raises(BadRecord, match="as which the column is stored") as error:
        decode(table(TIMESTAMP), raw("5"), later)
    assert error.value.index == 0


def test_schemas_that_come_later_tell_the_rest() -> None:
    """Without, with, without: from the second on base64 is known to be what it is."""
    coded = {"id": 1, "v": base64.b64encode((150).to_bytes(2, "big")).decode()}
    first = raw("2.50")
    found = decode(
        table(pa.decimal128(10, 2)), first, typed("c", FIELDS, coded), change("c", coded), first
    )
    values = [Decimal("2.50"), Decimal("1.50"), Decimal("1.50"), Decimal("2.50")]
    assert found.table["v"].to_pylist() == values


def test_a_wider_schema_widens() -> None:
    """As it does where no record without schema came before."""
    found = decode(table(pa.int32()), raw("5"), typed("c", {"id": "int32", "v": "int64"},
                                                      {"id": 2, "v": 2**40}), raw("6"))  # fmt: skip
    assert found.table["v"].to_pylist() == [5, 2**40, 6]
    with pytest.raises(BadRecord, match="can't become string"):
        decode(table(pa.int32()), raw("5"), typed("c", {"id": "int32", "v": "string"},
                                                  {"id": 2, "v": "x"}))  # fmt: skip


def test_a_column_that_the_table_has_not_is_text() -> None:
    """Nothing says what it is."""
    stored = TableSchema((Column("id", pa.int32()),), ("id",))
    assert decode(stored, raw("5")).table["v"].to_pylist() == ["5"]


def test_a_delete_without_schema() -> None:
    """Its key is the stored one, by image and by a tombstone's key."""
    found = decode(table(pa.int32()), change("d", None, {"id": 7}), record(None, {"id": 8}))
    assert found.table["id"].to_pylist() == [7, 8]


def test_auto_tells_its_decoder() -> None:
    """Which is made by the first record."""
    decoder = AutoFormat(FormatOptions()).table_decoder(Mode.UPSERT, None)
    decoder.use_stored_schema(table(pa.int64()))
    found = decoder.decode(0, [0], [mark_of("debezium-json") + raw("5")])
    assert found is not None
    assert found.table["v"].to_pylist() == [5]
