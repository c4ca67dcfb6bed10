"""Messages of one table in changing shapes: new columns, wider types, other dialects, odd names."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from changes.formats.canal.json import CanalJson
from changes.model.model import HAS_PREFIX, OP, BadRecord, Changes, FormatOptions, Mode
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


def test_column_that_no_type_block_names() -> None:
    """A column seen in the data alone is text; nothing is dropped."""
    changes = decode(message(), message(data=[{"id": "2", "name": "b", "price": "1", "n": "5"}]))
    assert changes.table["n"].to_pylist() == [None, "5"]


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


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ({"id": "varchar(10)"}, r"id: the type int\(11\) \(int32\) can't become varchar\(10\)"),
        ({"id": "bigint unsigned"}, r"can't become bigint unsigned \(decimal128\(20, 0\)\)"),
        ({"price": "decimal(10,4)"}, r"price: the type decimal\(10,2\)"),
    ],
)
def test_type_that_cannot_widen(later: dict[str, str], said: str) -> None:
    """A type that the lake can't follow is refused, both types named."""
    with pytest.raises(BadRecord, match=said) as refused:
        decode(message(), message(types=TYPES | later))
    assert refused.value.index == 1


def test_length_of_text_is_no_change() -> None:
    """varchar(64) to varchar(128), or to text, is the same type here."""
    changes = decode(message(), message(types=TYPES | {"name": "text"}))
    assert changes.schema.columns[1].type == pa.string()


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


def test_odd_column_names() -> None:
    """Column names may be anything that a database takes."""
    odd = [
        "data",
        "type",
        "class",
        "a b",
        "a.b",
        "名前",
        "x\u00a0y",
        'q"q',
        "b\\b",
        "f0",
        "",
        "old",
    ]
    odd += ["mysqlType", "_op", "__class__", "tab\tname", "f7 ".strip()]
    types = {"id": "int"} | dict.fromkeys(odd, "int")
    data = [{"id": "1"} | {name: str(place) for place, name in enumerate(odd)}]
    old = [dict.fromkeys(odd, "0")]
    value = message("UPDATE", data, old, types=types)
    rows = decode(value, value, value).table.to_pylist()
    assert rows == [{OP: "U", "id": 1} | {name: n for n, name in enumerate(odd)}] * 3


@pytest.mark.parametrize("key", ["a b", 'q"q', "b\\b", "data", "鍵"])
def test_odd_key_names(key: str) -> None:
    """A key column's name may be odd too, in key changes as well."""
    value = message("UPDATE", [{key: "2"}], [{key: "1"}], types={key: "int"}, keys=[key])
    changes = decode(value, value)
    assert changes.table[key].to_pylist() == [1, 2, 1, 2]
    assert changes.table[OP].to_pylist() == ["D", "U", "D", "U"]


def test_names_that_differ_by_case_only() -> None:
    """Lakes and sources that ignore case can't tell such columns apart."""
    with pytest.raises(BadRecord, match="id and ID differ by case only"):
        decode(message(data=[{"id": "1", "ID": "2"}], types={"id": "int", "ID": "int"}))


def test_names_that_binlogd_needs() -> None:
    """Columns named like our own are refused where they would clash."""
    with pytest.raises(BadRecord, match="__BINLOGD_x"):
        decode(message(data=[{"id": "1", "__BINLOGD_x": "2"}]))
    assert decode(message(data=[{"id": "1", "_offset": "2"}])).table["_offset"].to_pylist() == ["2"]
    for keys, mode in ((["id"], Mode.APPEND), (None, Mode.UPSERT)):
        with pytest.raises(BadRecord, match="_Offset"):
            decode(message(data=[{"id": "1", "_Offset": "2"}], keys=keys), mode=mode)


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


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("tinyint(1)", True, 1),
        ("tinyint(1)", False, 0),
        ("varchar(9)", True, "true"),
        (None, 12.50, "12.5"),
        ("json", {"a": [1, None]}, '{"a": [1, null]}'),
        ("json", [], "[]"),
        ("varchar(9)", None, None),
    ],
)
def test_typed_values(kind: str | None, value: Any, expected: object) -> None:
    """Typed JSON values become the column's type; documents stay as they stand."""
    types = {"id": "int"} | ({} if kind is None else {"v": kind})
    assert decode(message(data=[{"id": 1, "v": value}], types=types)).table["v"].to_pylist() == [
        expected
    ]


def test_document_where_a_number_should_be() -> None:
    """A value of the wrong JSON kind is refused, not guessed at."""
    with pytest.raises(BadRecord, match="id: '\\[1\\]' is not an int"):
        decode(message(data=[{"id": [1]}], types={"id": "int"}))


def test_key_change_of_typed_values() -> None:
    """old may hold the full old row with typed values, as Flink CDC writes it."""
    data, old = [{"id": 2, "name": "a"}], [{"id": 1, "name": "a"}]
    types = {"id": "int", "name": "text"}
    table = decode(message("UPDATE", data, old, types=types, drop=["sql", "es", "isDdl"])).table
    assert [(r[OP], r["id"]) for r in table.to_pylist()] == [("D", 1), ("U", 2)]


def test_no_types_at_all() -> None:
    """Without any mysqlType all columns are text, or stay what they are."""
    plain = message(types=None)
    assert decode(plain).table.to_pylist() == [{OP: "U", "id": "1", "name": "a", "price": "1.50"}]
    assert decode(message(), plain, message(drop=["mysqlType"])).table["id"].to_pylist() == [1] * 3


def test_extra_members_are_no_trouble() -> None:
    """Dialects add members of their own."""
    value = message(opType="INSERT", batchId=0, updateBefore=None, _tidb={"commitTs": 5}, gtid="x")
    assert decode(value, value).table.num_rows == 2


def test_two_tables_in_one_target() -> None:
    """Sharded sources merge into one target: an error names the table it came from."""
    other = message(data=[{"id": "x", "name": "a", "price": "1"}], table="orders_1")
    with pytest.raises(BadRecord, match=r"shop\.orders_1: id: 'x'"):
        decode(message(), other, keys=("id",))


def test_types_in_another_order() -> None:
    """The order of a type block means nothing."""
    changed = message(types=dict(reversed(TYPES.items())))
    assert names(decode(message(), changed, message(), changed)) == ["id", "name", "price"]
