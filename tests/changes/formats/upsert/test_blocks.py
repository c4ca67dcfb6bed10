"""Many records at once are read as each by itself, damaged ones too."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.formats.engine.format import pack, unpack
from changes.model.model import BadRecord, Mode
from tests.changes.formats.mutator import bad_place, mutants, read
from tests.changes.formats.upsert.records import decode, decoder, made, record

CELLS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "1", "true", [1], {}])
ROWS = st.dictionaries(st.sampled_from(["a", "b", "c", "id"]), CELLS)
KEYS = st.sampled_from([1, "1", 2, True, "true", None])
RECORDS = st.tuples(KEYS, st.none() | ROWS, st.booleans())


def packed(key: object, row: dict[str, object] | None, same: bool) -> bytes:
    """``same``: the value has the key as it is, where it has any."""
    if row is not None and same and "id" in row:
        row = {**row, "id": key}
    return record({"id": key}, row)


def one_by_one(mode: Mode, values: list[bytes]) -> tuple[list[dict[str, Any]], int | None]:
    """The rows of the good records before the first bad one, and its place."""
    reader = decoder(mode)
    found: list[dict[str, Any]] = []
    for place, value in enumerate(values):
        try:
            changes = reader.decode(0, [place], [value])
        except BadRecord:
            return found, place
        assert changes is not None
        found += changes.table.to_pylist()
    return found, None


@pytest.mark.parametrize("mode", Mode)
@given(st.lists(RECORDS, min_size=1, max_size=12))
def test_together_as_alone(mode: Mode, drawn: list[tuple[Any, Any, bool]]) -> None:
    """Whatever columns, kinds of values and deletes stand beside each other."""
    values = [packed(*each) for each in drawn]
    expected, place = one_by_one(mode, values)
    if place is not None:
        with pytest.raises(BadRecord) as caught:
            decoder(mode).decode(0, range(len(values)), values)
        assert caught.value.index == place
        values = values[:place]
    if values:
        found = decode(decoder(mode), *values).table.to_pylist()
        names = found[0].keys()
        assert [dict.fromkeys(names) | row for row in expected] == found


def damaged(count: int, seed: int) -> list[bytes]:
    """Records whose keys, values or both are damaged."""
    chance = random.Random(seed)
    good = [record({"id": 1}, {"id": 1, "a": "x", "d": {"e": [1, "ü"]}}), record({"id": 1}),
            record({"id": 1}, {"a": 2}), record({"id": 1, "r": "eu"}, {"a": "x"})]  # fmt: skip
    keys = list(mutants([unpack(each).key or b"" for each in good], count, seed))
    bodies = list(mutants([unpack(each).value or b"{}" for each in good], count, seed + 1))
    found = []
    for key, body in zip(keys, bodies, strict=True):
        like = unpack(chance.choice(good))
        way = chance.randrange(3)
        found.append(pack(like.key if way == 0 else key, like.value if way == 1 else body))
    return found


def test_damaged_records() -> None:
    """They are refused, or read; nothing else comes out."""
    format_ = made()
    outcomes = {read(format_, value) for value in damaged(1_500, seed=3)}
    assert outcomes == {"rows", "refused"}


@pytest.mark.parametrize("mode", Mode)
def test_damage_among_good_records(mode: Mode) -> None:
    """It is found at its place, or read as it is when it comes by itself."""
    good = [record({"id": 1}, {"id": 1, "a": "x"}), record({"id": 2}, {"a": "y", "d": [1]})] * 2
    seen = set()
    for value in damaged(400, seed=5):
        values = [*good, value, *good]
        expected, place = one_by_one(mode, values)
        assert bad_place(made(), values, mode, None) == place
        assert place in (None, len(good))
        if place is None:
            assert decode(decoder(mode), *values).table.num_rows == len(expected)
        seen.add(place)
    assert seen == {None, len(good)}


@pytest.mark.parametrize(
    "make",
    [
        lambda n: record({"id": str(n)}, {"id": n, "a": "x"}),
        lambda n: record({'"': n}, {"a": "x"}),
        lambda n: record({"id": n}, {'"': "x"}),
        lambda n: record({"id": n}, {"a": [1]} if n % 2 else {"b": {"c": n}}),
        lambda n: record({"id": n}, b"null" if n % 2 else {"a": "x"}),
    ],
)
def test_records_that_come_alone_cost_no_block_each(make: Any) -> None:
    """Records that can't be read at once are not tried at once again and again."""
    values = [make(number) for number in range(4_000)]
    begun = time.process_time()
    assert decode(decoder(), *values).table.num_rows == len(values)
    assert time.process_time() - begun < 2.0
