"""Key columns that Avro can't spell: found under one name in keys, values and deletes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changes.formats.engine.format import Format, pack
from changes.formats.wire.alike import LEAST
from changes.formats.wire.format import Debezium, Upsert
from changes.model.model import OP, BadRecord, Column, Mode, TableSchema
from tests.changes.formats.wire.records import Kept, record_of

NAMES = {"default_database": "shop", "default_table": "orders"}
STORED = TableSchema((Column("id x", pa.int32()), Column("n", pa.string())), ("id x",))
SOURCE = {
    "type": "record", "name": "Source",
    "fields": [{"name": name, "type": "string"} for name in ("connector", "db", "table")],
}  # fmt: skip
PLACE = {"connector": "mysql", "db": "shop", "table": "orders"}


class Writer:
    """Writes a table whose key is ``id x``. ``by_key``, ``by_value``: which schema says so."""

    def __init__(self, folder: Path, *, by_key: bool, by_value: bool) -> None:
        self._kept = Kept(folder)
        self.upsert = Upsert(self._kept.options(**NAMES))
        self.debezium = Debezium(self._kept.options(tombstones="delete"))
        self._key = record_of(name="shop.orders.Key")
        self._key |= {"fields": [self._column(by_key)], "connect.name": "shop.orders.Key"}
        self._row = record_of(name="shop.orders.Value")
        self._row["fields"] = [self._column(by_value), {"name": "n", "type": "string"}]

    @staticmethod
    def _column(said: bool) -> dict[str, Any]:
        parameters = {"connect.parameters": {"__debezium.source.column.name": "id x"}}
        return {"name": "id_x", "type": {"type": "int", **(parameters if said else {})}}

    def key(self, id_: int) -> bytes:
        return self._kept.avro(self._key, {"id_x": id_})

    def row(self, id_: int) -> bytes:
        return pack(self.key(id_), self._kept.avro(self._row, {"id_x": id_, "n": "a"}))

    def change(self, op: str, id_: int) -> bytes:
        schema = record_of(name="shop.orders.Envelope")
        schema["fields"] = [
            {"name": "before", "type": ["null", self._row]},
            {"name": "after", "type": ["null", "shop.orders.Value"]},
            {"name": "source", "type": SOURCE},
            {"name": "op", "type": "string"},
        ]
        row = {"id_x": id_, "n": "a"}
        before, after = (row, None) if op == "d" else (None, row)
        images = {"before": before, "after": after}
        return pack(self.key(id_), self._kept.avro(schema, {**images, "source": PLACE, "op": op}))

    def gone(self, id_: int) -> bytes:
        return pack(self.key(id_), None)


def decoded(
    format_: Format, *values: bytes, keys: Any = None, stored: TableSchema | None = None
) -> list[tuple[str, int]]:
    """Letters and keys; the columns are those of the source."""
    decoder = format_.table_decoder(Mode.UPSERT, keys)
    if stored is not None:
        decoder.use_stored_schema(stored)
    changes = decoder.decode(7, range(len(values)), values)
    assert changes is not None
    assert {column.name for column in changes.schema.columns} <= {"id x", "n"}
    return [(row[OP], row["id x"]) for row in changes.table.to_pylist()]


@pytest.mark.parametrize(
    ("by_key", "by_value"), [(True, True), (True, False), (False, True)],
    ids=["both say it", "the key says it", "the value says it"],
)  # fmt: skip
def test_keys_are_found_in_rows_and_deletes(tmp_path: Path, by_key: bool, by_value: bool) -> None:
    """Debezium passes a column's own name on in the value's schema alone."""
    of = Writer(tmp_path, by_key=by_key, by_value=by_value)
    for values in ([of.row(1), of.gone(1), of.row(2)], [of.row(1)] * 3 + [of.gone(1)] * 3):
        letters = "UDU" if len(values) == 3 else "UUUDDD"
        found = decoded(of.upsert, *values)
        assert "".join(letter for letter, _ in found) == letters
    changes = [of.change("c", 1), of.change("u", 1), of.change("d", 1), of.gone(3)]
    assert decoded(of.debezium, *changes) == [("U", 1), ("U", 1), ("D", 1), ("D", 3)]


@pytest.mark.parametrize(("by_key", "by_value"), [(True, False), (False, True)])
def test_many_records_at_once_have_the_same_names(
    tmp_path: Path, by_key: bool, by_value: bool
) -> None:
    """As one by one."""
    of = Writer(tmp_path, by_key=by_key, by_value=by_value)
    for format_, row in ((of.upsert, of.row(1)), (of.debezium, of.change("c", 1))):
        assert decoded(format_, *[row] * LEAST, of.gone(1)) == [("U", 1)] * LEAST + [("D", 1)]


@pytest.mark.parametrize("way", ["stored", "keys"])
def test_a_delete_that_comes_first_has_the_table_s_key(tmp_path: Path, way: str) -> None:
    """After a restart by the stored table; of a new one by ``keys`` of the configuration."""
    of = Writer(tmp_path, by_key=False, by_value=True)
    how: dict[str, Any] = {"stored": STORED} if way == "stored" else {"keys": ("id x",)}
    assert decoded(of.upsert, of.gone(1), of.row(1), **how) == [("D", 1), ("U", 1)]
    assert decoded(of.debezium, of.gone(1), of.change("c", 1), **how) == [("D", 1), ("U", 1)]


def test_a_delete_that_comes_first_of_all_is_refused_with_the_rows(tmp_path: Path) -> None:
    """Nothing says then what the table's key is called."""
    of = Writer(tmp_path, by_key=False, by_value=True)
    for format_, row in ((of.upsert, of.row(1)), (of.debezium, of.change("c", 1))):
        with pytest.raises(BadRecord, match=r"the key was \(id_x\) and is now \(id x\)"):
            decoded(format_, of.gone(1), row)


def test_a_key_that_is_called_like_the_field_stays(tmp_path: Path) -> None:
    """A table may have both names."""
    of = Writer(tmp_path, by_key=False, by_value=False)
    key = TableSchema((Column("id_x", pa.int32()), Column("id x", pa.int32())), ("id_x", "id x"))
    decoder = of.upsert.table_decoder(Mode.UPSERT, None)
    decoder.use_stored_schema(key)
    changes = decoder.decode(7, [0], [of.gone(1)])
    assert changes is not None
    assert changes.schema.keys == ("id_x",)


def test_record_keys_have_one_form(tmp_path: Path) -> None:
    """Whether there is a value or not: their form is compared where keys choose partitions."""
    of = Writer(tmp_path, by_key=False, by_value=True)
    one, other = of.upsert.record_keys([of.row(1), of.gone(1)])
    assert one == other
