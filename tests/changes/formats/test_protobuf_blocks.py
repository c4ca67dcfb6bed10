"""Messages that are read many at once say what each of them says by itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.canal import wire as canal_wire
from changes.formats.engine import flat_rows
from changes.formats.engine.format import Format, TableDecoder, pack, unpack
from changes.formats.tencent import rows as tencent_rows
from changes.model.model import BadMessage, BadRecord, Changes, FormatOptions, Head, Kind, Mode
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.mutator import mutants

MANY = 40
PARTS = 7
"""Messages tried at once where a larger block could not be: few, that it is seen here."""
LENGTHS = (0, 1, 127, 128, 129, 300, 16_383, 16_384)
"""Around the places where a length takes another byte."""

Made = Callable[[random.Random, int], bytes]


def text(rng: random.Random) -> str:
    size = rng.choice(LENGTHS) if rng.random() < 0.1 else rng.randrange(12)
    return "".join(rng.choices("abc é你", k=size))


# --- Canal


def canal_image(rng: random.Random, key: int, *, updated: bool = False) -> list[bytes]:
    """The id, a nullable text, a number, a moment."""
    values = [
        ("id", str(key), "int(11)"),
        ("name", rng.choice([None, text(rng)]), "varchar(20)"),
        ("qty", rng.choice([None, str(rng.randrange(99))]), "bigint(20)"),
        ("at", "2020-01-02 03:04:05", "timestamp"),
    ]
    flag = wire.fields({5: True}) if updated else b""
    return [
        wire.fields({1: place, 2: 12})
        + wire.canal_column(name, value, mysql, key=name == "id")
        + (flag if name != "id" else b"")
        for place, (name, value, mysql) in enumerate(values)
    ]


def canal_entry(rng: random.Random, number: int) -> bytes:
    op = rng.choice(["INSERT", "UPDATE", "DELETE"])
    rows = []
    for key in range(number * 10, number * 10 + rng.choice([1, 1, 3])):
        was = key + 1000 * (rng.random() < 0.03)
        before = canal_image(rng, was) if op != "INSERT" else ()
        after = canal_image(rng, key, updated=op == "UPDATE") if op != "DELETE" else ()
        rows.append(wire.canal_row(before, after))
    return wire.canal_rows(op, rows)


def canal_message(rng: random.Random, number: int) -> bytes:
    remark = [wire.canal_rows("QUERY", [])] if rng.random() < 0.2 else []
    entries = [canal_entry(rng, number) for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.5:
        return wire.canal_packet(*entries)
    return wire.canal_packet(wire.canal_mark(1), *remark, *entries, wire.canal_mark(3))


def canal_plain(_rng: random.Random, number: int) -> bytes:
    image = canal_image(random.Random(1), number)
    rows = wire.canal_rows("INSERT", [wire.canal_row((), image)])
    return wire.canal_packet(wire.canal_mark(1), rows, wire.canal_mark(3))


# --- Tencent DTS

DTS_COLUMNS = [
    wire.dts_column("id", "int(11)", key=True),
    wire.dts_column("name", "varchar(20)"),
    wire.dts_column("doc", "json"),
    wire.dts_column("raw", "blob"),
    wire.dts_column("at", "timestamp"),
    wire.dts_column("kind", "enum('a','b')"),
    wire.dts_column("bits", "bit(64)"),
]


def dts_image(rng: random.Random, key: int, *, whole: bool = True) -> list[bytes]:
    image = [
        wire.dts_number(3, str(key)),
        rng.choice([wire.dts_text(text(rng)), wire.dts_text("é", "latin1", "latin-1"), wire.NIL]),
        wire.dts_bytes(b'{"a": 1}'),
        wire.dts_bytes(bytes(rng.randrange(256) for _ in range(5))),
        wire.dts_text("2021-05-17 07:22:42 " + rng.choice(["+00:00"] * 9 + ["+08:00"])),
        wire.dts_text("a"),
        wire.dts_number(4, str(rng.randrange(-9, 9))),
    ]
    if not whole:
        image[rng.randrange(1, 7)] = wire.NA
    return image


def dts_entry(rng: random.Random, number: int) -> bytes:
    op = rng.randrange(3)
    rows = []
    for key in range(number * 10, number * 10 + rng.choice([1, 1, 3])):
        was = key + 1000 * (rng.random() < 0.03)
        old = dts_image(rng, was, whole=rng.random() < 0.9) if op else ()
        new = dts_image(rng, key, whole=rng.random() < 0.8) if op != 2 else ()
        rows.append(wire.dts_row(old, new))
    return wire.dts_rows(op, DTS_COLUMNS, rows)


def dts_message(rng: random.Random, number: int) -> bytes:
    entries = [dts_entry(rng, number) for _ in range(rng.choice([1, 1, 2]))]
    whole = wire.dts_message(wire.dts_begin(), *entries, wire.dts_commit())
    return pack(None, whole, [("ps", str(number).encode())])


def dts_plain(_rng: random.Random, number: int) -> bytes:
    entry = wire.dts_rows(0, DTS_COLUMNS, [wire.dts_row((), dts_image(random.Random(1), number))])
    return pack(None, wire.dts_message(entry))


CASES: dict[str, tuple[Made, Made]] = {
    "canal-protobuf": (canal_message, canal_plain),
    "tencent-dts": (dts_message, dts_plain),
}


Keys = tuple[str, ...] | None


def decoder(name: str, mode: Mode = Mode.UPSERT, keys: Keys = None) -> TableDecoder:
    return FORMATS[name](FormatOptions()).table_decoder(mode, keys)


def decoded(name: str, values: list[bytes], mode: Mode = Mode.UPSERT, keys: Keys = None) -> Changes:
    changes = decoder(name, mode, keys).decode(0, range(len(values)), values)
    assert changes is not None
    return changes


@pytest.fixture(params=CASES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def singly(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Has messages read one by one from when it is called."""

    def never(_values: object) -> bool:
        return False

    def now() -> None:
        monkeypatch.setattr(flat_rows, "worth_it", never)

    return now


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("seed", range(12))
def test_rows_are_those_of_each_message(
    name: str, mode: Mode, seed: int, monkeypatch: pytest.MonkeyPatch, singly: Callable[[], None]
) -> None:
    """Nulls, empty texts, what a row lacks, lengths of any size, moved keys, several events."""
    if seed % 3 == 0:
        monkeypatch.setattr(flat_rows, "_SOME", PARTS)
        monkeypatch.setattr(flat_rows, "FEWEST", 3)
    rng = random.Random(seed)
    make = CASES[name][seed % 4 == 0]
    values = [make(rng, number) for number in range(MANY)]
    keys = (None, ("id",), ("at", "id"))[seed % 3]
    at_once = answer(name, values, mode, keys)
    singly()
    assert at_once == answer(name, values, mode, keys)


def test_alike_messages_are_never_taken_singly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the quick way would stand unused, and nothing else would tell."""

    def singly(*_: Any) -> None:
        raise AssertionError("read singly")

    monkeypatch.setattr(canal_wire.CanalWireRows, "images", singly)
    monkeypatch.setattr(tencent_rows.TencentRows, "images", singly)
    values = [CASES[name][1](random.Random(0), number) for number in range(MANY)]
    assert decoded(name, values).table["id"].to_pylist() == list(range(MANY))


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_message_among_others_is_found_at_its_place(
    name: str, seed: int, singly: Callable[[], None]
) -> None:
    """What it swallows of those behind it must not go unseen: the answer is the slow way's."""
    values = [CASES[name][1](random.Random(0), number) for number in range(MANY)]
    format_ = FORMATS[name](FormatOptions())
    plain = unpack(values[0]).value if format_.keyed else values[0]
    damaged = of_rows(format_, mutants([plain or b""], 150, seed=seed))
    assert damaged
    some = [[*values[:20], bad, *values[21:]] for bad in damaged]
    some += [[*values[:20], bad] for bad in damaged]
    quick = [answer(name, each) for each in some]
    singly()
    assert quick == [answer(name, each) for each in some]


def test_one_damaged_message_of_many_rows_is_told(name: str, singly: Callable[[], None]) -> None:
    """Read at once for its size alone, and nothing stands behind it that could be missed."""
    rng = random.Random(3)
    format_ = FORMATS[name](FormatOptions())
    rows = 300
    if format_.keyed:
        images = [wire.dts_row((), dts_image(rng, key)) for key in range(rows)]
        plain = wire.dts_message(wire.dts_rows(0, DTS_COLUMNS, images))
    else:
        images = [wire.canal_row((), canal_image(rng, key)) for key in range(rows)]
        plain = wire.canal_packet(wire.canal_rows("INSERT", images))
    cut = (plain[:-size] for size in range(1, 40))
    damaged = of_rows(format_, [plain, *mutants([plain], 80, seed=2), *cut])
    quick = [answer(name, [value]) for value in damaged]
    singly()
    assert quick == [answer(name, [value]) for value in damaged]


@pytest.mark.parametrize("seed", range(6))
def test_heads_are_those_of_each_message(name: str, seed: int) -> None:
    """Marks, statements, several tables, damage: a head, or its error, at each place."""
    rng = random.Random(seed)
    format_ = FORMATS[name](FormatOptions())
    values = [CASES[name][seed % 2](rng, number) for number in range(MANY)]
    if format_.keyed:
        others = [
            wire.dts_message(wire.dts_begin()),
            wire.dts_message(wire.dts_ddl("DROP TABLE t")),
        ]
        others += [wire.dts_message(wire.dts_heartbeat()), *wire.dts_parts(30, dts_entry(rng, 1))]
        two = wire.dts_rows(0, DTS_COLUMNS, [], "b"), wire.dts_rows(0, DTS_COLUMNS, [], "a")
        others = [pack(None, each) for each in (*others, wire.dts_message(*two))]
        plain = unpack(values[0]).value or b""
    else:
        two = wire.canal_rows("INSERT", [], "b"), wire.canal_rows("DELETE", [], "a")
        others = [wire.canal_packet(wire.canal_mark(4)), wire.canal_packet(*two)]
        others += [wire.canal_packet(wire.canal_ddl("ERASE", "DROP TABLE t")), wire.canal_packet()]
        plain = values[0]
    bad = mutants([plain], 60, seed)
    others += [pack(None, each) if format_.keyed else each for each in bad]
    for other in others:
        some = [*values[:15], other, *values[15:]]
        assert heads(format_.heads(some)) == heads(map(format_.peek, some))


def heads(found: Iterator[Head]) -> list[object]:
    told: list[object] = []
    try:
        told.extend(iter(found))
    except BadMessage as bad:
        told.append(str(bad))
    return told


def of_rows(format_: Format, values: Iterable[bytes]) -> list[bytes]:
    """Those that come to a decoder, as it is given them."""
    found = []
    for value in values:
        made = pack(None, value) if format_.keyed else value
        try:
            found += [made] if format_.peek(made).kind is Kind.ROWS else []
        except BadMessage:
            continue
    return found


def answer(name: str, values: list[bytes], mode: Mode = Mode.UPSERT, keys: Keys = None) -> object:
    """All that a decoder says of messages."""
    try:
        changes = decoder(name, mode, keys).decode(0, range(len(values)), values)
    except BadRecord as bad:
        return (bad.index, bad.reason, bad.of_table)
    if changes is None:
        return None
    return (changes.table.to_pydict(), changes.schema, changes.count, changes.mode)


def test_many_packets_of_nothing_but_remarks_are_no_rows() -> None:
    """Entries of type ROWDATA may hold a statement that changed no row (QUERY)."""
    values = [wire.canal_packet(wire.canal_rows("QUERY", []))] * flat_rows.FEWEST
    decoder = FORMATS["canal-protobuf"](FormatOptions()).table_decoder(Mode.UPSERT, None)
    assert decoder.decode(0, range(len(values)), values) is None
