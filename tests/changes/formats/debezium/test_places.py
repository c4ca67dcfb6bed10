"""Positions of rows that are read as a block: those that each record by itself tells."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.model.model import POSITION, FormatOptions, Mode
from tests.changes.formats.debezium.messages import (
    POSTGRES,
    envelope,
    record,
    wrapped,
)

OPTIONS = FormatOptions(extra={"positions": "postgres-lsn"})
FIELDS = {"id": "int32", "name": "string", "n": "int64"}


def at(lsn: Any, op: str, *, name: Any = "a", number: int = 1, schema: bool = False) -> bytes:
    """A change of row 1 or another at a place in the log; None: the record tells none."""
    source = POSTGRES | {"lsn": lsn}
    row = {"id": number, "name": name, "n": number}
    after, before = (None, row) if op == "d" else (row, None)
    told: Any = envelope(op, after, before, source)
    return record(wrapped(told, FIELDS) if schema else told, {"id": number})


def rows(groups: list[list[bytes]]) -> list[dict[str, Any]]:
    """The rows that one decoder gives, called once for each group."""
    decoder = DebeziumJson(OPTIONS).table_decoder(Mode.UPSERT, None)
    found: list[dict[str, Any]] = []
    for group in groups:
        changes = decoder.decode(0, range(len(group)), group)
        assert changes is not None
        found += changes.table.to_pylist()
    return found


@pytest.mark.parametrize("schema", [False, True])
def test_a_block_is_read_as_one_record_after_another(schema: bool) -> None:
    """Inserts, updates and deletes, whatever order their places are in."""
    ops = "cuudcucdru"
    values = [
        at(10_000 - 7 * n, op, number=1 + n % 3, name=f"x{n}", schema=schema)
        for n, op in enumerate(ops * 3)
    ]
    one_by_one = rows([[value] for value in values])
    assert rows([values]) == one_by_one
    assert [row[POSITION] for row in one_by_one][:2] == ["e10000u", "d9993u"]
