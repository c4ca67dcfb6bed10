"""TiCDC's commit timestamp as the source position of Canal JSON's rows."""

from __future__ import annotations

from typing import Any

from changes.formats.canal.json import CanalJson
from changes.model.model import OP, POSITION, Changes, FormatOptions, Mode
from tests.changes.formats.canal.messages import TYPES, message

OPTIONS = FormatOptions(extra={"positions": "tidb-commit-ts"})
ROW = {"id": "1", "name": "a", "price": "1.50"}


def decode(*values: bytes, mode: Mode = Mode.UPSERT) -> Changes:
    decoder = CanalJson(OPTIONS).table_decoder(mode, None)
    changes = decoder.decode(0, range(len(values)), values)
    assert changes is not None
    return changes


def ticdc(commit: int | None, kind: str = "INSERT", data: Any = (ROW,), **more: Any) -> bytes:
    tidb = {} if commit is None else {"commitTs": commit}
    return message(kind, data, **more, _tidb=tidb)


def test_each_row_carries_when_it_was_committed() -> None:
    """And how it ended; both halves of a key change at one commit."""
    moved = ticdc(449, "UPDATE", [ROW | {"id": "2"}], old=[{"id": "1"}])
    table = decode(ticdc(78, data=[ROW, ROW | {"id": "9"}]), moved, ticdc(500, "DELETE")).table
    assert table[POSITION].to_pylist() == ["b78u", "b78u", "c449d", "c449u", "c500d"]
    assert table[OP].to_pylist() == ["U", "U", "D", "U", "D"]


def test_the_decoder_names_its_positions() -> None:
    """Only where rows replace one another: a changelog needs no order between its lanes."""
    format_ = CanalJson(OPTIONS)
    assert format_.table_decoder(Mode.UPSERT, None).positions == "tidb-commit-ts"
    assert format_.table_decoder(Mode.APPEND, None).positions is None
    assert CanalJson(FormatOptions()).table_decoder(Mode.UPSERT, None).positions is None


def test_without_the_option_a_position_is_not_looked_at() -> None:
    """Tables have no column of ours that nobody asked for."""
    decoder = CanalJson(FormatOptions()).table_decoder(Mode.UPSERT, None)
    changes = decoder.decode(0, [0], [ticdc(5)])
    assert changes is not None
    assert POSITION not in changes.table.column_names


def test_a_delete_may_carry_its_key_alone() -> None:
    """Nothing else of it is needed."""
    table = decode(ticdc(5), message("DELETE", [{"id": "1"}], _tidb={"commitTs": 6})).table
    assert table[POSITION].to_pylist() == ["a5u", "a6d"]


def test_a_row_older_than_an_added_column_is_whole() -> None:
    """It carries all that there was then, though the table has learnt of more."""
    more = ticdc(9, data=[ROW | {"n": "1"}], types=TYPES | {"n": "int"})
    table = decode(more, ticdc(8, data=[ROW | {"id": "2"}])).table
    assert table["n"].to_pylist() == [1, None]


def test_a_block_is_read_as_one_message_after_another() -> None:
    """Whatever the order of commits: many messages of one shape, and others among them."""
    kinds = ["INSERT", "UPDATE", "DELETE", "INSERT", "UPDATE"] * 4
    values = [
        ticdc(9_000 - 7 * n, kind, [ROW | {"id": str(n % 3)}]) for n, kind in enumerate(kinds)
    ]
    values[7] = ticdc(3, "UPDATE", [ROW | {"id": "2"}], old=[{"id": "1"}])
    values[11] = ticdc(4, data=[ROW, ROW | {"id": "9"}])
    decoder = CanalJson(OPTIONS).table_decoder(Mode.UPSERT, None)
    found = [decoder.decode(0, [0], [value]) for value in values]
    one_by_one = [row for changes in found if changes for row in changes.table.to_pylist()]
    names = (OP, "id", "name", POSITION)
    assert [[row[n] for n in names] for row in decode(*values).table.to_pylist()] == [
        [row[n] for n in names] for row in one_by_one
    ]
