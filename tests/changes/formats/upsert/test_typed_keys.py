"""A key column means in the record's key what it means in the value: a delete comes by the key
alone."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from changes.formats.engine.format import pack
from changes.formats.wire.format import Upsert
from changes.model.model import OP, BadMessage, BadRecord, ColumnTypes, Mode
from tests.changes.formats.wire.records import Kept

NAMES = {"default_database": "shop", "default_table": "orders"}
MILLIS = {"type": "long", "logicalType": "local-timestamp-millis"}
MICROS = {"type": "long", "logicalType": "local-timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}
UNSCALED = {
    "type": "record", "name": "Any", "connect.name": "io.debezium.data.VariableScaleDecimal",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
}  # fmt: skip


def decimal(scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": scale}


class Writer:
    """Records of one column in Avro. ``decode``: all in one call, or each in its own."""

    def __init__(self, folder: Path) -> None:
        self._kept = Kept(folder)
        self.format = Upsert(self._kept.options(**NAMES))

    def key(self, type_: Any, value: Any) -> bytes:
        schema = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": type_}]}
        return self._kept.avro(schema, {"id": value})

    def row(self, of_key: Any, of_row: Any, id_: Any, other: Any = None) -> bytes:
        value = self._kept.avro(
            {"type": "record", "name": "Row", "fields": [{"name": "id", "type": of_row}]},
            {"id": id_ if other is None else other},
        )
        return pack(self.key(of_key, id_), value)

    def gone(self, type_: Any, id_: Any) -> bytes:
        return pack(self.key(type_, id_), None)

    def decode(self, *calls: list[bytes], types: ColumnTypes = ()) -> list[tuple[str, Any]]:
        decoder = self.format.table_decoder(Mode.UPSERT, None, types)
        found: list[tuple[str, Any]] = []
        for values in calls:
            changes = decoder.decode(7, range(len(values)), values)
            assert changes is not None
            found += [(row[OP], row["id"]) for row in changes.table.to_pylist()]
        return found


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


@pytest.mark.parametrize(
    ("of_key", "of_row", "id_", "other", "said"),
    [
        (decimal(2), decimal(0), Decimal("1.00"), Decimal(100), "precision 12, scale 2"),
        (decimal(1), decimal(2), Decimal("1.0"), Decimal("1.00"), "precision 12, scale 1"),
        (MILLIS, MICROS, 1000, 1000, "Timestamp in the record's key and io.debezium.time.Micro"),
        (DATE, "int", 1, 1, "Date in the record's key and int32 in the value"),
        ("long", "string", 1, "1", 'or take it as text .types = . id = "string" ..'),
        ("float", "double", 0.5, 0.5, "float in the record's key and double in the value"),
    ],
)
def test_a_key_column_of_two_types_is_refused(
    writer: Writer, of_key: Any, of_row: Any, id_: Any, other: Any, said: str
) -> None:
    """Its bytes may be equal and its values not, so a delete would miss the row."""
    for count in (1, 3):
        with pytest.raises(BadRecord, match=f"id is .*{said}.*") as bad:
            writer.decode([writer.row(of_key, of_row, id_, other)] * count)
        assert bad.value.index == 0
    with pytest.raises(BadMessage, match=said):
        writer.format.explain(writer.row(of_key, of_row, id_, other))


def test_as_text_a_number_is_the_text_of_its_digits(writer: Writer) -> None:
    """The way out that the refusal names."""
    values = [writer.row("long", "string", 1, "1"), writer.gone("long", 1)] * 2
    assert writer.decode(values, types=(("id", "string"),)) == [("U", "1"), ("D", "1")] * 2


@pytest.mark.parametrize(
    ("type_", "id_"),
    [("int", 7), (decimal(2), Decimal("1.50")), (DATE, 18_262), ("float", 0.1), ("double", 1e300)],
)
def test_deletes_find_their_rows(writer: Writer, type_: Any, id_: Any) -> None:
    """Whether records come together or each by itself."""
    values = [writer.row(type_, type_, id_), writer.gone(type_, id_)] * 3
    together, apart = writer.decode(values), writer.decode(*[[each] for each in values])
    assert together == apart
    assert len({id_ for _, id_ in together}) == 1


def test_an_int_and_a_long_are_one_number(writer: Writer) -> None:
    assert writer.decode([writer.row("int", "long", 1), writer.gone("int", 1)]) == [
        ("U", 1), ("D", 1),
    ]  # fmt: skip


def test_a_key_of_a_former_schema_means_what_it_meant(writer: Writer) -> None:
    """Behind rows of a newer one: that its beginning was known is forgotten."""
    old = [writer.row(MILLIS, MILLIS, 1000), writer.gone(MILLIS, 1000)]
    new = [writer.row(MICROS, MICROS, 1_000_000)] * 2
    values = [*old, *old, *new, writer.gone(MILLIS, 1000)]
    (moment,) = {id_ for _, id_ in writer.decode(values)}
    assert moment.timestamp() == moment.timestamp() // 1
    assert writer.decode(*[[each] for each in values]) == writer.decode(values)


def test_minus_zero_is_no_key(writer: Writer) -> None:
    """It is 0.0 in a table, and another key in a topic: two records of one row, in two places."""
    for value in (writer.row("double", "double", -0.0), writer.gone("double", -0.0)):
        for good in ([], [writer.row("double", "double", 0.0)] * 3):
            with pytest.raises(BadRecord, match=r"id is -0\.0, which record keys tell"):
                writer.decode([*good, value])


def test_a_decimal_of_any_scale(writer: Writer) -> None:
    """PostgreSQL's numeric without digits, and Oracle's NUMBER, as a key."""
    one, other = {"scale": 1, "value": b"\x0f"}, {"scale": 2, "value": b"\x00\x96"}
    values = [writer.row(UNSCALED, UNSCALED, one), writer.gone(UNSCALED, one)] * 2
    assert writer.decode(values) == [("U", "1.5"), ("D", "1.5")] * 2
    assert writer.decode(*[[each] for each in values]) == writer.decode(values)
    for count in (1, 3):
        with pytest.raises(BadRecord, match="id is another one in the value"):
            writer.decode([writer.row(UNSCALED, UNSCALED, one, other)] * count)
