"""Messages taken a block at a time come out as they do one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.formats.canal.json import CanalJson
from changes.formats.engine.assemble import BLOCK_ROWS
from changes.model.model import OP, BadRecord, Changes, FormatOptions, Mode
from changes.model.records import Values
from changes.routes.fold import concat_changes, fold
from tests.changes.formats.canal.messages import decode, message

TYPES = {"id": "int(11)", "k": "varchar(9)", "a": "varchar(9)", "b": "int(11)"}
WIDER = TYPES | {"b": "bigint(20)"}
GROWN = TYPES | {"c": "datetime"}

ROW = st.fixed_dictionaries(
    {"id": st.sampled_from("123"), "k": st.sampled_from("xy")},
    optional={"a": st.none() | st.sampled_from(["p", "q"]), "b": st.sampled_from(["5", None, 7])},
)
FULL = st.fixed_dictionaries(
    {"id": st.sampled_from("123"), "k": st.sampled_from("xy"), "a": st.just("p"), "b": st.just("5")}
)
OLD = st.none() | st.fixed_dictionaries(
    {}, optional={"id": st.sampled_from("123"), "k": st.sampled_from("xy"), "a": st.just("o")}
)
BAD = (
    message(data=[{"id": "1", "k": "x", "b": "much"}], types=TYPES, keys=["id", "k"]),
    message(data=[{"id": None, "k": "x"}], types=TYPES, keys=["id", "k"]),
    message("UPSERT", [{"id": "1", "k": "x"}], types=TYPES, keys=["id", "k"]),
    message(data=[{"id": "1", "k": "x"}], types=TYPES, keys=["id"]),
    b'{"type": "INSERT", "data": [',
)


def encoded(kind: str, rows: Any, types: Any, olds: Any = None, member: str = "old") -> bytes:
    return message(kind, rows, types=types, keys=["id", "k"], **{member: olds})


@st.composite
def runs(draw: st.DrawFn) -> list[bytes]:
    """A stretch of alike messages, as usual in a stream; now and then just one."""
    kind = draw(st.sampled_from(["INSERT", "UPDATE", "UPDATE", "DELETE"]))
    types = draw(st.sampled_from([TYPES, TYPES, TYPES, WIDER, GROWN]))
    rows = st.lists(draw(st.sampled_from([ROW, FULL, FULL])), min_size=1, max_size=3)
    shape = draw(st.sampled_from(["unsaid", "whole", "any"]))
    member = draw(st.sampled_from(["old", "old", "old", "updateBefore"]))
    values = []
    for data in draw(st.lists(rows, min_size=1, max_size=6)):
        olds = {
            "unsaid": st.sampled_from([None, [{"a": "o"}] * len(data)]),
            "whole": st.just([row | {"a": "o"} for row in data]),
            "any": st.lists(OLD, max_size=3),
        }[shape]
        values.append(encoded(kind, data, types, draw(olds), member))
    return values * draw(st.sampled_from([1, 1, 5]))


STREAMS = st.lists(runs() | st.sampled_from(BAD).map(lambda bad: [bad]), min_size=1, max_size=8)
KEYED = [(Mode.UPSERT, None), (Mode.UPSERT, ("k",)), (Mode.APPEND, None)]


def outcome(
    values: Sequence[bytes], mode: Mode, keys: tuple[str, ...] | None, size: int
) -> tuple[list[Changes], tuple[int, str] | None]:
    """Decode in calls of so many records; what stopped it names its place in the whole.

    A single one is given as it is, several are read in place.
    """
    decoder = CanalJson(FormatOptions()).table_decoder(mode, keys)
    parts: list[Changes] = []
    for start in range(0, len(values), size):
        part = values[start : start + size]
        part = Values.of(part) if size > 1 else part
        try:
            changes = decoder.decode(7, range(start, start + len(part)), part)
        except BadRecord as bad:
            return parts, (start + bad.index, bad.reason)
        if changes is not None:
            parts.append(changes)
    return parts, None


def rows_of(parts: Sequence[Changes]) -> Any:
    """All that the parts say, as one; folded where they have a key."""
    if not parts:
        return None
    table, last = concat_changes([part.table for part in parts]), parts[-1]
    if last.mode is Mode.UPSERT:
        table = fold(table, last.schema.keys)
    rows = table.select(sorted(table.column_names)).to_pylist()
    return last.schema, last.mode, sum(part.count for part in parts), rows


@settings(max_examples=150)
@given(STREAMS, st.sampled_from(KEYED))
def test_a_block_is_its_messages(
    stream: list[list[bytes]], keyed: tuple[Mode, tuple[str, ...] | None]
) -> None:
    """One call for all gives the rows and the error of as many calls as there are messages."""
    values = [value for run in stream for value in run]
    singly, bad = outcome(values, *keyed, size=1)
    good = values if bad is None else values[: bad[0]]
    if bad is not None:
        assert outcome(values[: bad[0] + 1], *keyed, size=len(values))[1] == bad
        # What follows may widen a type, so the reason may name another: but not the place.
        whole = outcome(values, *keyed, size=len(values))[1]
        assert whole is not None
        assert whole[0] == bad[0]
    at_once, none = outcome(good, *keyed, size=max(1, len(good)))
    assert none is None
    assert rows_of(at_once) == rows_of(singly)


@pytest.mark.parametrize("place", [0, 31, 32, 33, 300, 599])
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_record_in_any_block_has_its_place(place: int, bad: bytes) -> None:
    """However many good records stand before it in its block or in earlier ones."""
    good = [encoded("INSERT", [{"id": str(n), "k": "x"}], TYPES) for n in range(600)]
    first = encoded("INSERT", [{"id": "0", "k": "x"}], TYPES)
    values = [first, *good[:place], bad, *good[place:]]
    with pytest.raises(BadRecord) as raised:
        decode(*values)
    assert raised.value.index == place + 1


def test_one_key_change_in_a_block() -> None:
    """It is found among updates that only look like it, and ends its old key."""
    values = [
        encoded("UPDATE", [{"id": str(n), "k": "x"}], TYPES, [{"id": str(n - (n == 400))}])
        for n in range(3 * BLOCK_ROWS)
    ]
    table = decode(*values).table
    place = table[OP].to_pylist().index("D")
    assert table["id"].slice(place, 2).to_pylist() == [399, 400]
    assert table.num_rows == len(values) + 1


def test_olds_of_other_rows_prove_nothing() -> None:
    """Whole old rows stand in pairs with the rows of their own message only."""
    types = {"id": "int"}
    first = encoded("UPDATE", [{"id": "1"}, {"id": "2"}], types, [{"id": "1"}])
    second = encoded("UPDATE", [{"id": "3"}], types, [{"id": "2"}, {"id": "3"}])
    known = encoded("INSERT", [{"id": "0"}], types)
    table = decode(known, *[first, second] * 8, keys=("id",)).table
    assert table["id"].to_pylist() == [0] + [1, 2, 2, 3] * 8
    assert table[OP].to_pylist() == ["U"] + ["U", "U", "D", "U"] * 8


def test_rows_of_any_number_in_a_block() -> None:
    """Messages of many rows among those of one: each row knows its record and its place there."""
    sizes = [1] * 40 + [700, 1, 3] + [9] * 60
    values = [
        encoded("INSERT", [{"id": str(n), "k": str(place)} for place in range(size)], TYPES)
        for n, size in enumerate(sizes)
    ]
    table = decode(*values, mode=Mode.APPEND).table
    assert table["_offset"].type == pa.int64()
    assert table["_offset"].to_pylist() == table["id"].to_pylist()
    assert table["_index"].to_pylist() == [int(text) for text in table["k"].to_pylist()]
    assert set(table["_op"].to_pylist()) == {"I"}
