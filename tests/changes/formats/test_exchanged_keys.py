"""Keys that rows exchange: by way of a third key, or by two updates that meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import TableDecoder
from changes.model.model import OP, BadRecord, FormatOptions, Mode
from changes.routes.fold import concat_changes, fold
from tests.changes.formats import wire
from tests.changes.formats.avro_records import integer, record, text
from tests.changes.formats.canal.messages import message
from tests.changes.formats.debezium.messages import (
    POSTGRES,
    change,
    envelope,
    wrapped,
)
from tests.changes.formats.debezium.messages import record as debezium_record
from tests.changes.formats.json_messages import maxwell, ogg

Image = tuple[int, str]
Moved = tuple[Image, Image]
"""A row before and after."""


def canal(was: Image, now: Image) -> bytes:
    old = {"id": str(was[0]), "name": was[1]}
    types = {"id": "int", "name": "text"}
    return message("UPDATE", [{"id": str(now[0]), "name": now[1]}], [old], types=types)


def of_maxwell(was: Image, now: Image) -> bytes:
    old = {"id": was[0], "name": was[1]}
    return maxwell("update", {"id": now[0], "name": now[1]}, old)


def of_ogg(was: Image, now: Image) -> bytes:
    return ogg("U", {"id": now[0], "name": now[1]}, {"id": was[0], "name": was[1]})


def canal_cells(image: Image) -> list[bytes]:
    key, name = image
    cell = wire.canal_column("id", str(key), "int", key=True)
    return [cell, wire.canal_column("name", name, "text")]


def canal_wire(was: Image, now: Image) -> bytes:
    row = wire.canal_row(canal_cells(was), canal_cells(now))
    return wire.canal_packet(wire.canal_rows("UPDATE", [row]))


def dts_cells(image: Image) -> list[bytes]:
    return [wire.dts_number(4, str(image[0])), wire.dts_text(image[1])]


def tencent(was: Image, now: Image) -> bytes:
    from changes.formats.engine.format import pack

    columns = [wire.dts_column("id", "int", key=True), wire.dts_column("name", "text")]
    row = wire.dts_row(dts_cells(was), dts_cells(now))
    return pack(None, wire.dts_message(wire.dts_rows(1, columns, [row])), [("ps", b"1")])


def aliyun(was: Image, now: Image) -> bytes:
    images = [[integer(key), text(name)] for key, name in (now, was)]
    fields = (("id", 8), ("name", 253))
    return record("UPDATE", images[0], images[1], fields, name="s.t")


MAKERS: dict[str, Callable[[Image, Image], bytes]] = {
    "canal-json": canal,
    "maxwell-json": of_maxwell,
    "ogg-json": of_ogg,
    "canal-protobuf": canal_wire,
    "tencent-dts": tencent,
    "aliyun-dts-avro": aliyun,
}
FORMAT_NAMES = pytest.mark.parametrize("name", MAKERS)


def decoder(name: str) -> TableDecoder:
    return FORMATS[name](FormatOptions()).table_decoder(Mode.UPSERT, ("id",))


def net(name: str, *calls: Sequence[Moved]) -> dict[int, str | None]:
    """What each key shows in the end, None: it is gone. Each call is a batch of its own."""
    decode, offset, pieces = decoder(name).decode, 0, []
    for moves in calls:
        values = [MAKERS[name](was, now) for was, now in moves]
        changes = decode(0, range(offset, offset + len(values)), values)
        assert changes is not None
        assert changes.count == len(values)
        offset += len(values)
        pieces.append(changes.table)
    rows = fold(concat_changes(pieces), ["id"]).to_pylist()
    return {int(row["id"]): None if row[OP] == "D" else row["name"] for row in rows}


SWAP = [((1, "a"), (2, "a")), ((2, "b"), (1, "b"))]


@FORMAT_NAMES
def test_two_updates_exchange_two_keys(name: str) -> None:
    """As Oracle does it in one statement: the second moves the row that was there first."""
    assert net(name, SWAP) == {1: "b", 2: "a"}


@FORMAT_NAMES
def test_keys_are_exchanged_across_batches(name: str) -> None:
    """What a batch left of the exchange the next one goes on with."""
    assert net(name, SWAP[:1], SWAP[1:]) == {1: "b", 2: "a"}


@FORMAT_NAMES
def test_every_row_takes_the_next_ones_key(name: str) -> None:
    """``SET id = id + 1`` in the order of the keys."""
    moves = [((n, f"v{n}"), (n + 1, f"v{n}")) for n in range(1, 5)]
    expected: dict[int, str | None] = {1: None, 2: "v1", 3: "v2", 4: "v3", 5: "v4"}
    assert net(name, moves) == expected


@FORMAT_NAMES
def test_by_way_of_a_third_key(name: str) -> None:
    """As MySQL does it: a row only ever moves to a free key."""
    moves = [((1, "a"), (9, "a")), ((2, "b"), (1, "b")), ((9, "a"), (2, "a"))]
    assert net(name, moves) == {1: "b", 2: "a", 9: None}


@FORMAT_NAMES
def test_there_and_back(name: str) -> None:
    """The same row comes back, changed on its way: nothing stays behind."""
    moves = [((1, "a"), (2, "b")), ((2, "b"), (1, "c"))]
    assert net(name, moves) == {1: "c", 2: None}


@FORMAT_NAMES
def test_a_chain_of_one_row(name: str) -> None:
    """Only its last place shows it."""
    moves = [((1, "a"), (2, "a")), ((2, "a"), (3, "b")), ((3, "b"), (4, "b"))]
    assert net(name, moves) == {1: None, 2: None, 3: None, 4: "b"}


@FORMAT_NAMES
def test_a_row_that_changes_between_is_no_other_row(name: str) -> None:
    """What it was when it came is no more known then: nothing is concluded from that."""
    moves = [((1, "a"), (2, "a")), ((2, "a"), (2, "b")), ((2, "b"), (1, "b"))]
    assert net(name, moves) == {1: "b", 2: None}


@FORMAT_NAMES
def test_what_is_read_again_begins_anew(name: str) -> None:
    """A repeated move is not taken for one that meets its own first time."""
    values = [MAKERS[name](was, now) for was, now in SWAP]
    decode = decoder(name).decode
    first, again = decode(0, [5, 6], values), decode(0, [5, 6], values)
    assert first is not None
    assert again is not None
    assert first.table.to_pylist() == again.table.to_pylist()


def test_an_old_value_of_null_proves_nothing() -> None:
    """Some producers put it where they were not told the old value."""
    types = {"id": "int", "name": "text"}
    there = message("UPDATE", [{"id": "2", "name": "a"}], [{"id": "1"}], types=types)
    old = {"id": "2", "name": None}
    back = message("UPDATE", [{"id": "1", "name": "b"}], [old], types=types)
    changes = decoder("canal-json").decode(0, [0, 1], [there, back])
    assert changes is not None
    rows = fold(changes.table, ["id"]).to_pylist()
    assert {row["id"]: row[OP] for row in rows} == {1: "U", 2: "D"}


def test_minimal_images_of_one_row_that_moves_on_prove_nothing() -> None:
    """All of its columns change each time, and the old images hold the key alone."""
    types = {"id": "int", "name": "text"}
    moves = [
        message("UPDATE", [{"id": str(n + 1), "name": f"v{n}"}], [{"id": str(n)}], types=types)
        for n in (1, 2)
    ]
    changes = decoder("canal-json").decode(0, [0, 1], moves)
    assert changes is not None
    rows = fold(changes.table, ["id"]).to_pylist()
    assert {row["id"]: row[OP] for row in rows} == {1: "D", 2: "D", 3: "U"}


def test_a_row_that_is_told_in_part_is_not_exchanged() -> None:
    """What it lacks stood in the row that another one has taken the place of."""
    types = {"id": "int", "name": "text", "qty": "int"}
    whole = message("UPDATE", [{"id": "2", "name": "a", "qty": "1"}], [{"id": "1"}], types=types)
    old = {"id": "2", "name": "c"}
    part = message("UPDATE", [{"id": "1", "name": "b"}], [old], types=types)
    with pytest.raises(BadRecord, match="after another one has taken it") as caught:
        decoder("canal-json").decode(0, [0, 1], [whole, part])
    assert caught.value.index == 1


NEW, OLD = [("__debezium.newkey", b"x")], [("__debezium.oldkey", b"x")]


def debezium(was: Image, now: Image, *, tombstone: bool = True) -> list[bytes]:
    """The halves of a changed key as Debezium writes them."""
    rows = [{"id": key, "name": name} for key, name in (was, now)]
    ends = change("d", None, rows[0], headers=NEW)
    begins = change("c", rows[1], None, headers=OLD)
    return [ends, *([debezium_record(None, {"id": was[0]})] if tombstone else []), begins]


def debezium_net(*calls: Sequence[bytes]) -> dict[int, str | None]:
    decode, offset, pieces = decoder("debezium-json").decode, 0, []
    for values in calls:
        changes = decode(0, range(offset, offset + len(values)), values)
        offset += len(values)
        if changes is not None:
            pieces.append(changes.table)
    rows = fold(concat_changes(pieces), ["id"]).to_pylist()
    return {int(row["id"]): None if row[OP] == "D" else row["name"] for row in rows}


@pytest.mark.parametrize("tombstone", [True, False])
@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_debeziums_halves_exchange_two_keys(tombstone: bool, cut: int) -> None:
    """Delete and insert of one row, delete and insert of the other, in any batches."""
    swap = [each for was, now in SWAP for each in debezium(was, now, tombstone=tombstone)]
    calls = [swap[:cut], swap[cut:]] if cut else [swap]
    assert debezium_net(*calls) == {1: "b", 2: "a"}


def test_debeziums_row_that_comes_back_leaves_nothing_behind() -> None:
    """It is the row that has just come."""
    moves = [*debezium((1, "a"), (2, "b")), *debezium((2, "b"), (1, "c"))]
    assert debezium_net(moves) == {1: "c", 2: None}


def test_a_row_that_is_deleted_after_it_came_is_gone() -> None:
    """A delete that announces no new key is one."""
    gone = change("d", None, {"id": 2, "name": "other"})
    assert debezium_net([*debezium((1, "a"), (2, "a")), gone]) == {1: None, 2: None}


def test_an_old_image_of_nulls_proves_nothing() -> None:
    """Under REPLICA IDENTITY DEFAULT only the key of a deleted row is told."""
    back = [change("d", None, {"id": 2, "name": None}, headers=NEW),
            change("c", {"id": 1, "name": "a"}, headers=OLD)]  # fmt: skip
    assert debezium_net([*debezium((1, "a"), (2, "a")), *back]) == {1: "a", 2: None}


KINDS = {"id": "int32", "name": "string", "n": "int64", "d": "double"}
UNTOLD = {"name": "", "n": 0, "d": 1.5}
"""Columns NOT NULL, and one with a default, as they come where PostgreSQL told the key alone."""


def of_postgres(
    was: Mapping[str, Any], now: Mapping[str, Any], old: Mapping[str, Any], *, schema: bool
) -> list[bytes]:
    """The halves of a changed key; ``old`` is what the delete has beside it."""
    halves = (("d", {"id": was["id"], **old}, None, NEW), ("c", None, now, OLD))
    found = []
    for op, before, after, headers in halves:
        told: Any = envelope(op, after, before, POSTGRES)
        key = {"id": (after or was)["id"]}
        value = wrapped(told, KINDS) if schema else told
        found.append(debezium_record(value, key, headers))
    return found


@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize("cut", range(6))
def test_what_stands_for_values_that_were_not_told_proves_nothing(schema: bool, cut: int) -> None:
    """A row that changes its key thrice, under REPLICA IDENTITY DEFAULT: Debezium puts 0 and the
    like into columns that take no NULL, Kafka Connect the default."""
    rows = [{"id": key, "name": "a", "n": 5, "d": None} for key in (1, 2, 3, 4)]
    moves = [
        half for was, now in pairwise(rows) for half in of_postgres(was, now, UNTOLD, schema=schema)
    ]
    calls = [moves[:cut], moves[cut:]] if cut else [moves]
    assert debezium_net(*calls) == {1: None, 2: None, 3: None, 4: "a"}


@pytest.mark.parametrize("schema", [True, False])
def test_a_whole_old_image_of_postgres_shows_that_another_row_stands_there(schema: bool) -> None:
    """REPLICA IDENTITY FULL, a key that is checked at the end: as with the others."""
    one, two = {"name": "a", "n": 5, "d": 1.5}, {"name": "b", "n": 5, "d": 1.5}
    swap = [
        half
        for was, now, row in ((1, 2, one), (2, 1, two))
        for half in of_postgres({"id": was}, {"id": now, **row}, row, schema=schema)
    ]
    assert debezium_net(swap) == {1: "b", 2: "a"}
