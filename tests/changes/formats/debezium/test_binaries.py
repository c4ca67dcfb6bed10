"""Columns of BINARY, which Debezium fills up with zero bytes."""

from __future__ import annotations

from typing import Any

import pytest

from changes.model.model import AddColumn
from tests.changes.formats.debezium.messages import FORMAT, record

BINARIES = [
    ("BINARY(4) NOT NULL", bytes(4)), ("BINARY NOT NULL", bytes(1)), ("BINARY(4)", None),
    ("CHAR(3) BYTE NOT NULL", bytes(3)), ("VARBINARY(4) NOT NULL", b""),
    ("BINARY(4) DEFAULT x'22'", b"\x22\0\0\0"),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "stored"), BINARIES)
def test_stored_rows_of_an_added_binary_are_as_those_that_come(
    definition: str, stored: Any
) -> None:
    """Debezium fills a BINARY up with zero bytes, which the binary log leaves away."""
    ddl = {"ddl": f"ALTER TABLE orders ADD c {definition}", "tableChanges": []}
    source = {"connector": "mysql", "db": "shop", "table": "orders"}
    (step,) = FORMAT.ddl(record({"source": source, "databaseName": "shop", **ddl}))[0].steps
    assert isinstance(step, AddColumn)
    assert step.default == stored
