"""Maxwell's rows in net changes and in large blocks, and databases: what no case can say."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats.engine.format import Statement
from changes.model.model import OP, TableName
from changes.routes.fold import fold
from tests.changes.formats.json_messages import decode, made, maxwell, rows
from tests.changes.formats.maxwell.messages import statement

MAXWELL = "maxwell-json"


def net(*values: bytes, **options: Any) -> list[dict[str, Any]]:
    changes = decode(MAXWELL, *values, **options)
    found: list[dict[str, Any]] = fold(changes.table, changes.schema.keys).to_pylist()
    return found


def test_many_documents_in_one_block() -> None:
    """The first document in a column among many rows makes the block be read again, once."""
    values = [maxwell(data={"id": n, "v": {"n": n} if n % 2 else n}) for n in range(600)]
    found = [row["v"] for row in rows(MAXWELL, *values)]
    assert found == [f'{{"n":{n}}}' if n % 2 else str(n) for n in range(600)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"id": 1, "a": 1, "b": 2}, {"id": 1, "b": 3}], {"id": "1", "a": "1", "b": "3"}),
        ([{"id": 1, "a": 1, "b": 2}, {"id": 1, "b": 2}, {"a": 1}],
         {"id": "1", "a": None, "b": "2"}),
    ],
    ids=["unchanged", "null"],
)  # fmt: skip
def test_what_an_update_leaves_out(values: list[Any], expected: dict[str, Any]) -> None:
    """A column that is nowhere keeps its value; one that ``old`` alone has is null."""
    first, *update = values
    assert net(maxwell(data=first), maxwell("update", *update)) == [{OP: "U", **expected}]


def test_swapped_keys() -> None:
    """Two rows that exchange their keys, by way of a third, keep their values."""
    values = [
        maxwell(data={"id": 1, "name": "a"}),
        maxwell(data={"id": 2, "name": "b"}),
        maxwell("update", {"id": 3, "name": "a"}, {"id": 1}),
        maxwell("update", {"id": 1, "name": "b"}, {"id": 2}),
        maxwell("update", {"id": 2, "name": "a"}, {"id": 3}),
    ]
    found = {row["id"]: (row[OP], row["name"]) for row in net(*values)}
    assert found == {"1": ("U", "b"), "2": ("U", "a"), "3": ("D", None)}


def test_key_of_a_wrong_length() -> None:
    """A key that AES does not have is found when the configuration is read."""
    with pytest.raises(ValueError, match="encryption_key has 5 bytes; an AES key has 16, 24 or 32"):
        made(MAXWELL, encryption_key="short")


def test_a_database_is_created() -> None:
    """Its database, the text and the moment, which is in milliseconds already."""
    sql = "CREATE DATABASE shop"
    assert made(MAXWELL).explain(statement("database-create", sql, table=None)) == (
        Statement(TableName("shop", ""), sql, 1477053126000),
    )
