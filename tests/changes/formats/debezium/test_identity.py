"""Deleted rows of PostgreSQL by each REPLICA IDENTITY: a key that was not sent is refused."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats.debezium.json import DebeziumJson
from changes.model.model import OP, BadRecord, FormatOptions, Mode
from tests.changes.formats.debezium.messages import MYSQL, POSTGRES, envelope, record, wrapped

FIELDS = {"id": "int32", "code": "string", "n": "int32", "note": "string"}
INDEX = {"id": 0, "code": "x", "n": 0, "note": None}
"""What an index of ``code`` sends of any row; ``id`` and ``n`` are NOT NULL."""


def delete(before: Any, source: Any = POSTGRES, schema: bool = True, **key: Any) -> bytes:
    """A deleted row, whose record key is ``id``."""
    value: Any = envelope("d", None, before, source)
    if schema:
        value = wrapped(value, FIELDS)
        for image in value["schema"]["fields"][:2]:
            for each in image["fields"]:
                each["optional"] = each["field"] == "note"
    return record(value, key or {"id": before["id"]})


def decode(*values: bytes, keys: tuple[str, ...] | None = None, mode: Mode = Mode.UPSERT) -> Any:
    decoder = DebeziumJson(FormatOptions()).table_decoder(mode, keys)
    changes = decoder.decode(0, range(len(values)), values)
    assert changes is not None
    return changes.table.to_pylist()


@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_using_index_the_key_is_not_sent(schema: bool, known: bool) -> None:
    """Debezium writes 0 for it: row 0 would go, and the deleted one stay. Also where such records
    are known already, and read at once."""
    good = delete({"id": 7, "code": "", "n": 0, "note": None}, schema=schema)
    values = [good] * known + [delete(INDEX, schema=schema)]
    with pytest.raises(BadRecord, match=r"key column id is 0, beside a value of code") as error:
        decode(*values)
    assert error.value.index == int(known)
    assert "USING INDEX" in error.value.reason


def test_a_configured_key_that_is_not_sent() -> None:
    """REPLICA IDENTITY DEFAULT sends the primary key alone."""
    with pytest.raises(BadRecord, match="key column code is "):
        decode(delete({"id": 7, "code": "", "n": 0, "note": None}), keys=("code",))


@pytest.mark.parametrize(
    ("before", "source"),
    [
        ({"id": 0, "code": "", "n": 0, "note": None}, POSTGRES),  # DEFAULT
        ({"id": 0, "code": "x", "n": 3, "note": "y"}, POSTGRES),  # FULL: note may be null
        (INDEX, MYSQL),  # whole rows
    ],
)
def test_row_0_may_be_deleted(before: Any, source: Any) -> None:
    """Where nothing says that the key was not sent."""
    (row,) = decode(delete(before, source))
    assert (row[OP], row["id"]) == ("D", 0)


def test_an_index_that_is_the_key_or_holds_it() -> None:
    """Then the key is sent."""
    (row,) = decode(delete({"id": 7, "code": "x", "n": 0, "note": None}))
    assert (row[OP], row["id"]) == ("D", 7)


def test_a_changelog_without_a_key_has_what_was_sent() -> None:
    """It tells no rows apart."""
    (row,) = decode(delete(INDEX), mode=Mode.APPEND)
    assert (row["_op"], row["id"], row["code"]) == ("D", 0, "x")
