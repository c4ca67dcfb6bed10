"""Messages of one table in changing shapes: new columns, wider types, other dialects, odd names."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from changes.formats.canal.json import CanalJson
from changes.model.model import HAS_PREFIX, OP, Changes, FormatOptions, Mode
from tests.changes.formats.canal.messages import TYPES, decode, message


def names(changes: Changes) -> list[str]:
    return [column.name for column in changes.schema.columns]


def test_column_added_between_messages() -> None:
    """Rows before a new column did not carry it; it goes to the end."""
    wide = message(
        data=[{"id": "2", "extra": "5", "name": "b", "price": "1"}],
        types={"id": "int", "extra": "int"} | TYPES,
    )
    changes = decode(message(), wide, message())
    assert names(changes) == ["id", "name", "price", "extra"]
    assert changes.table["extra"].to_pylist() == [None, 5, None]
    assert changes.table[HAS_PREFIX + "extra"].to_pylist() == [False, True, False]


def test_type_that_widens_between_messages() -> None:
    """Earlier rows are cast up with the later ones."""
    wide = message(
        data=[{"id": str(2**40), "name": "b", "price": "1"}], types=TYPES | {"id": "bigint"}
    )
    changes = decode(message(), wide)
    assert changes.table["id"].to_pylist() == [1, 2**40]
    assert changes.schema.columns[0].type == pa.int64()


def test_narrower_type_later_takes_nothing_away() -> None:
    """A type block that is sent again narrower, or shorter, changes nothing."""
    decoder = CanalJson(FormatOptions()).table_decoder(Mode.UPSERT, None)
    decoder.decode(0, [0], [message(types=TYPES | {"id": "bigint"})])
    before = decoder.schema
    changes = decoder.decode(
        0, [1], [message(data=[{"id": "1", "name": "x"}], types={"id": "int"})]
    )
    assert changes is not None
    assert decoder.schema == changes.schema == before


def test_minimal_images_in_many_shapes() -> None:
    """Each image may list other columns with their types; all fall into one schema."""
    columns = [f"c{n}" for n in range(6)]
    shapes = [[c for b, c in enumerate(columns) if n >> b & 1] for n in range(64)]
    values = [
        message(
            "UPDATE",
            [{"id": str(n)} | dict.fromkeys(shape, str(n))],
            [{}],
            types={"id": "int"} | dict.fromkeys(shape, "int"),
        )
        for n, shape in enumerate(shapes)
    ]
    table = decode(*values, *values).table
    for name in columns:
        expected = [n if name in shape else None for n, shape in enumerate(shapes)]
        assert table[name].to_pylist() == expected * 2
        carried = [name in shape for shape in shapes]
        assert table[HAS_PREFIX + name].to_pylist() == carried * 2


def test_typed_dialect_keeps_numbers_exact() -> None:
    """Numbers as JSON numbers keep every digit: they never pass through a float."""
    raw = message(data=[{"id": 0, "d": 1, "u": 2, "f": 3}], types=None)
    types = b'"mysqlType": {"id":"bigint","d":"decimal(38,20)","u":"bigint unsigned","f":"double"}'
    value = (
        raw.replace(b'"id": 0', b'"id": 9223372036854775807')
        .replace(b'"d": 1', b'"d": 123456789012345678.12345678901234567890')
        .replace(b'"u": 2', b'"u": 18446744073709551615')
        .replace(b'"f": 3', b'"f": 1.5e3')
        .replace(b'"mysqlType": null', types)
    )
    assert decode(value).table.to_pylist() == [
        {
            OP: "U",
            "id": 2**63 - 1,
            "d": Decimal("123456789012345678.12345678901234567890"),
            "u": Decimal(2**64 - 1),
            "f": 1500.0,
        }
    ]


def test_types_in_another_order() -> None:
    """The order of a type block means nothing."""
    changed = message(types=dict(reversed(TYPES.items())))
    assert names(decode(message(), changed, message(), changed)) == ["id", "name", "price"]
