"""Which columns inserts carry, in each format: others took a default that only the source knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import Changes, FormatOptions, Mode
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.aliyun.messages import integer, record
from tests.changes.formats.debezium.messages import dumps, envelope
from tests.changes.formats.json_messages import maxwell, ogg
from tests.changes.formats.own_records import CANAL


def canal(columns: dict[str, Any], kind: str = "INSERT") -> bytes:
    types = dict.fromkeys(columns, "int")
    texts = {name: None if value is None else str(value) for name, value in columns.items()}
    body = CANAL | {"data": [texts], "mysqlType": types, "type": kind, "pkNames": ["id"]}
    return json.dumps(body | ({"old": [{}]} if kind == "UPDATE" else {})).encode()


def canal_protobuf(columns: dict[str, Any], kind: str = "INSERT") -> bytes:
    cells = [
        wire.canal_column(name, str(value), "int", key=name == "id")
        for name, value in columns.items()
    ]
    row = wire.canal_row(cells if kind == "UPDATE" else (), cells)
    return wire.canal_packet(wire.canal_rows(kind, [row]))


def tencent(columns: dict[str, Any], kind: str = "INSERT") -> bytes:
    told = [wire.dts_column(name, "int(11)", key=name == "id") for name in columns]
    cells = [wire.dts_number(3, str(value)) for value in columns.values()]
    row = wire.dts_row(cells if kind == "UPDATE" else (), cells)
    rows = wire.dts_rows({"INSERT": 0, "UPDATE": 1}[kind], told, [row])
    return pack(None, wire.dts_message(rows))


def aliyun(columns: dict[str, Any], kind: str = "INSERT") -> bytes:
    values = [integer(value) for value in columns.values()]
    before = values if kind == "UPDATE" else None
    return record(kind, values, before, [(name, 8) for name in columns])


def goldengate(columns: dict[str, Any], kind: str = "INSERT") -> bytes:
    return ogg(kind[0], columns, columns if kind == "UPDATE" else None)


MAKE = {
    "canal-json": canal, "canal-protobuf": canal_protobuf, "tencent-dts": tencent,
    "aliyun-dts-avro": aliyun, "ogg-json": goldengate,
}  # fmt: skip


def decode(name: str, mode: Mode, *calls: list[bytes]) -> list[frozenset[str] | None]:
    """What the inserts of each call carry."""
    decoder = FORMATS[name](FormatOptions()).table_decoder(mode, ("id",))
    found = []
    for number, values in enumerate(calls):
        changes = decoder.decode(0, range(10 * number, 10 * number + len(values)), values)
        assert isinstance(changes, Changes)
        found.append(changes.carried)
    return found


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", MAKE)
def test_what_each_insert_carries(name: str, mode: Mode) -> None:
    """Beside other rows, before the first row that shows the column, and in calls of their own."""
    make = MAKE[name]
    bare, whole = make({"id": 2}), make({"id": 1, "v": 1})
    update = make({"id": 1}, "UPDATE")
    both, one = {"id", "v"}, {"id"}
    assert decode(name, mode, [bare], [whole], [bare]) == [one, both, one]
    assert decode(name, mode, [bare, whole]) == [one]
    assert decode(name, mode, [whole, bare, whole]) == [one]
    assert decode(name, mode, [whole, update], [update]) == [both, None]


@pytest.mark.parametrize("mode", Mode)
def test_maxwells_inserts_lack_nothing_until_a_null_is_shown(mode: Mode) -> None:
    """With output_nulls=false what is left out is null. One that is shown says that none is left
    out: also of the inserts before it."""
    bare, whole = maxwell(data={"id": 1}), maxwell(data={"id": 2, "v": 1})
    shown = maxwell(data={"id": 3, "v": None})
    assert decode("maxwell-json", mode, [whole, bare], [bare]) == [None, None]
    assert decode("maxwell-json", mode, [whole, shown, bare]) == [{"id"}]
    assert decode("maxwell-json", mode, [whole], [bare], [shown], [shown], [bare]) == [
        None, None, {"id"}, {"id", "v"}, {"id"},
    ]  # fmt: skip


@pytest.mark.parametrize("single", [False, True])
def test_the_end_of_an_old_key_shows_no_null(single: bool) -> None:
    """Its row has no values at all."""
    whole, bare = maxwell(data={"id": 2, "v": 1}), maxwell(data={"id": 1})
    moved = maxwell("update", {"id": 3, "v": 1}, {"id": 2})
    calls = [[whole], [moved], [bare]] if single else [[whole, whole, moved, bare]]
    assert set(decode("maxwell-json", Mode.UPSERT, *calls)) == {None}


def test_debeziums_inserts_are_whole() -> None:
    """What a record lacks its table does not have."""
    values = [
        pack(b'{"id":1}', dumps(envelope("c", row))) for row in ({"id": 1, "v": 2}, {"id": 2})
    ]
    assert decode("debezium-json", Mode.UPSERT, values[:1], values[1:]) == [None, None]
