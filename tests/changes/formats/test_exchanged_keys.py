"""Keys that rows exchange: by way of a third key, or by two updates that meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import TableDecoder
from changes.model.model import OP, BadRecord, FormatOptions, Mode
from changes.routes.fold import concat_changes, fold
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.aliyun.messages import integer, record, text
from tests.changes.formats.canal.messages import message
from tests.changes.formats.debezium.messages import ORACLE, change
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


def aliyun(was: Image, now: Image, source: str = "MySQL") -> bytes:
    images = [[integer(key), text(name)] for key, name in (now, was)]
    fields = (("id", 8), ("name", 253))
    return record("UPDATE", images[0], images[1], fields, name="s.t", source=source)


def debezium_update(was: Image, now: Image) -> bytes:
    """One record: the key is configured, and no column of the record's."""
    rows = [{"id": key, "name": name} for key, name in (was, now)]
    return change("u", rows[1], rows[0], key=None)


MAKERS: dict[str, Callable[[Image, Image], bytes]] = {
    "canal-json": canal,
    "maxwell-json": of_maxwell,
    "ogg-json": of_ogg,
    "canal-protobuf": canal_wire,
    "tencent-dts": tencent,
    "aliyun-dts-avro": aliyun,
    "debezium-json": debezium_update,
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


OF_ANY_DATABASE = {
    "ogg-json": of_ogg(*SWAP[1]),
    "aliyun-dts-avro": aliyun(*SWAP[1], source="DB2"),
    "debezium-json": change(
        "u", {"id": 1, "name": "b"}, {"id": 2, "name": "b"}, key=None, source=ORACLE
    ),
    "canal-json": message(
        "UPDATE", [{"id": "1", "name": "b"}], [{"id": "2", "name": "b"}], types=None
    ),
}
"""A row leaves a key. Canal's is as Flink CDC writes it, without MySQL's types."""


@FORMAT_NAMES
def test_a_change_of_a_key_that_comes_first_is_amid_others_unless_it_is_mysqls(name: str) -> None:
    """MySQL checks keys row by row, so that no row comes to a key before another leaves it."""
    ours, others = MAKERS[name](*SWAP[1]), OF_ANY_DATABASE.get(name)
    for value, cut in ((ours, ours == others), (others, True)):
        if value is not None:
            changes = decoder(name).decode(0, [0], [value])
            assert changes is not None
            assert changes.cut == cut


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
    with pytest.raises(BadRecord, match="after another row has taken it") as caught:
        decoder("canal-json").decode(0, [0, 1], [whole, part])
    assert caught.value.index == 1
