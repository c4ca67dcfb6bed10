"""What one partition can't tell where each key has its own: refused as of the keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import BadRecord, Changes, FormatOptions, Mode
from tests.changes.formats.debezium.messages import POSTGRES, UNAVAILABLE, change

NEW, OLD = [("__debezium.newkey", b"x")], [("__debezium.oldkey", b"x")]


def decode(name: str, *values: bytes, by_key: bool = True, keys: Any = None) -> Changes | None:
    """By a fresh decoder of a pipeline whose keys have one partition each."""
    decoder = FORMATS[name](FormatOptions(by_key=by_key)).table_decoder(Mode.UPSERT, keys)
    return decoder.decode(0, range(len(values)), values)


CANAL = json.dumps(
    {
        "id": 1, "database": "s", "table": "t", "pkNames": ["id"], "isDdl": False,
        "type": "UPDATE", "es": 1, "ts": 2, "sql": "", "sqlType": {"id": 4}, "old": [{"id": "1"}],
        "mysqlType": {"id": "int"}, "data": [{"id": "2"}],
    }
).encode()  # fmt: skip
ROW = {
    "database": "s", "table": "t", "type": "update", "ts": 1, "data": {"id": 2, "v": "a"},
    "old": {"id": 1}, "primary_key_columns": ["id"], "primary_key": [2],
}  # fmt: skip
MAXWELL = pack(None, json.dumps(ROW).encode())
DEBEZIUM = change("u", {"id": 1, "k": 2}, {"id": 1, "k": 1})


@pytest.mark.parametrize(
    ("name", "value", "keys"),
    [("canal-json", CANAL, None), ("maxwell-json", MAXWELL, ("id",)),
     ("debezium-json", DEBEZIUM, ("k",))],
)  # fmt: skip
def test_one_record_that_changes_a_key_is_refused(name: str, value: bytes, keys: Any) -> None:
    """Its old key's changes are in another partition, maybe behind it. In one it is taken."""
    with pytest.raises(BadRecord, match="one record changes the key") as refused:
        decode(name, value, keys=keys)
    assert refused.value.of_keys
    assert decode(name, value, keys=keys, by_key=False) is not None


def test_an_insert_that_lacks_what_its_old_row_has_is_refused() -> None:
    """That row is in the old key's partition. Behind its own delete it is at hand."""
    gone = change("d", None, {"id": 1, "text": None}, source=POSTGRES, headers=NEW)
    moved = {"id": 2, "text": UNAVAILABLE}
    half = change("c", moved, None, source=POSTGRES, headers=OLD)
    whole = change("c", {"id": 9, "text": "a"}, None, source=POSTGRES)
    with pytest.raises(BadRecord, match="text") as refused:
        decode("debezium-json", whole, half)
    assert (refused.value.of_keys, refused.value.index) == (True, 1)
    assert decode("debezium-json", gone, half) is not None


def test_a_key_that_is_left_behind_another_that_came_is_refused_where_images_are_partial() -> None:
    """Whether it is the row that came shows in its first half, which is in another partition: under
    REPLICA IDENTITY DEFAULT old images hold anything. With whole images they tell."""
    came = change("c", {"id": 2, "n": 7}, None, source=POSTGRES, headers=OLD)
    leaves = change("d", None, {"id": 2, "n": 0}, source=POSTGRES, headers=NEW)
    with pytest.raises(BadRecord, match="REPLICA IDENTITY FULL") as refused:
        decode("debezium-json", came, leaves)
    assert refused.value.of_keys
    between = change("u", {"id": 8, "n": 1}, None, source=POSTGRES)
    assert decode("debezium-json", came, between, leaves) is not None
    mysql = [change("c", {"id": 2, "n": 7}, None, headers=OLD),
             change("d", None, {"id": 2, "n": 7}, headers=NEW)]  # fmt: skip
    found = decode("debezium-json", *mysql)
    assert found is not None
    assert found.table["__binlogd_op"].to_pylist() == ["U", "D"]


def test_a_row_stays_that_came_to_a_key_before_another_left_it() -> None:
    """``SET id = id + 1`` as Oracle checks it: the key's own partition has both, in order."""
    came = change("c", {"id": 2, "n": 1}, None, headers=OLD)
    leaves = change("d", None, {"id": 2, "n": 2}, headers=NEW)
    found = decode("debezium-json", came, leaves)
    assert found is not None
    assert found.table["__binlogd_op"].to_pylist() == ["U"]
