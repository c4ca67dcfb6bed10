"""Which row a record speaks of, over several records: key changes, values that were not sent."""

from __future__ import annotations

from typing import Any

import pytest

from changes.formats.canal.json import CanalJson
from changes.formats.debezium.json import DebeziumJson
from changes.model.model import (
    FROM,
    HAS_PREFIX,
    OP,
    POSITION,
    BadMessage,
    FormatOptions,
)
from changes.routes.fold import fold
from tests.changes.formats.debezium.keys import GONE, KINDS, ROW
from tests.changes.formats.debezium.messages import (
    FORMAT,
    POSTGRES,
    UNAVAILABLE,
    change,
    decode,
    record,
    rows,
    typed,
)

NEW = [("__debezium.newkey", b"x")]
OLD = [("__debezium.oldkey", b"x")]


def net(*values: bytes, **options: Any) -> list[dict[str, Any]]:
    """The rows after folding."""
    changes = decode(*values, **options)
    return fold(changes.table, changes.schema.keys).to_pylist()


def test_keys_are_those_of_the_record() -> None:
    """In their order; a member that names a physical table is no column."""
    key = {"b": 2, "id": 1, "__dbz__physicalTableIdentifier": "x"}
    assert decode(change("c", {**ROW, "b": 2}, key=key)).schema.keys == ("b", "id")


def test_a_delete_that_tells_no_key_can_not_be_shown() -> None:
    """Neither image nor record key."""
    with pytest.raises(BadMessage, match="without image and without key"):
        FORMAT.explain(change("d", None, None, key=None))


def test_a_configured_key_that_was_null() -> None:
    """Where the rest of the old row is told, a null in it is one."""
    old, new = {"id": 1, "name": None, "c": 5}, {"id": 1, "name": "b", "c": 5}
    found = net(change("c", old), change("u", new, old), keys=("name",))
    assert sorted((row[OP], row["name"]) for row in found) == [("D", None), ("U", "b")]
    assert rows(change("d", None, old), keys=("name",)) == [{OP: "D", "name": None}]


# --- key changes


def test_a_changed_key_is_a_delete_and_an_insert() -> None:
    """As Debezium writes it, a tombstone between."""
    values = [
        change("c", ROW),
        change("d", None, ROW, key={"id": 1}, headers=NEW),
        record(None, {"id": 1}),
        change("c", {**ROW, "id": 2}, headers=OLD),
    ]
    found = net(*values, extra={"default_database": "shop", "default_table": "orders"})
    assert sorted((row[OP], row["id"]) for row in found) == [("D", "1"), ("U", "2")]


def test_keys_that_are_swapped() -> None:
    """Chained and swapped changes in one batch end where the source does."""
    a, b = {"id": 1, "name": "a"}, {"id": 2, "name": "b"}
    values = [
        change("c", a), change("c", b),
        change("u", {**a, "id": 3}, a), change("u", {**b, "id": 1}, b),
        change("u", {**a, "id": 2}, {**a, "id": 3}),
    ]  # fmt: skip
    found = {row["id"]: (row[OP], row["name"]) for row in net(*values)}
    assert found == {"1": ("U", "b"), "2": ("U", "a"), "3": ("D", None)}


# --- values that were not sent (TOAST)


def test_what_was_not_sent_keeps_its_stored_value() -> None:
    """An earlier value of the batch is taken over."""
    kept = change("u", {"id": 1, "name": UNAVAILABLE, "n": 2}, source=POSTGRES)
    assert net(change("c", {**ROW, "n": 1}), kept) == [{OP: "U", "id": "1", "name": "a", "n": "2"}]
    assert net(kept)[0][HAS_PREFIX + "name"] is False


def test_what_was_not_sent_in_every_type() -> None:
    """Text, bytes, lists, maps: each has its form of the placeholder."""
    whole = {"id": 1, "t": "t", "j": "{}", "b": "AQ==", "a": ["x"], "n": [1], "m": {"k": "v"}}
    first, second = typed("c", KINDS, whole), typed("u", KINDS, GONE, source=POSTGRES)
    assert net(first, second) == net(first)
    assert net(*[first] * 5, *[second] * 300) == net(first)
    (told,) = FORMAT.explain(second)
    assert told.after == {"id": 1}  # type: ignore[union-attr]


def test_a_changed_key_takes_what_was_not_sent_from_the_old_row() -> None:
    """The second half of a key change lacks it; the first half told where it is."""
    old, new = {"id": 1, "name": "long", "n": 1}, {"id": 2, "name": UNAVAILABLE, "n": 1}
    values = [
        change("d", None, old, key={"id": 1}, headers=NEW),
        change("c", new, headers=OLD, source=POSTGRES),
    ]
    names = {row["id"]: row["name"] for row in net(change("c", old), *values)}
    assert names == {"1": None, "2": "long"}
    found = decode(*values).table
    assert FROM in found.column_names
    assert found.to_pylist()[1][HAS_PREFIX + "name"] is False


# --- positions


def at(lsn: int | None, op: str, after: Any, before: Any = None, **others: Any) -> bytes:
    """A change at a place of PostgreSQL's log."""
    return change(op, after, before, source={**POSTGRES, "lsn": lsn}, **others)


def test_rows_carry_their_place_in_the_log() -> None:
    """The last in the source's order wins, whatever the order in which partitions come."""
    lsn = {"positions": "postgres-lsn"}
    late = [at(9, "u", {**ROW, "name": "new"}), at(11, "d", None, {"id": 2}, key={"id": 2})]
    early = [at(5, "c", ROW), at(10, "c", {**ROW, "id": 2}), record(None, {"id": 1})]
    found = net(*late, *early, extra=lsn)
    assert sorted((row[OP], row["id"], row["name"]) for row in found) == [
        ("D", "2", None), ("U", "1", "new"),
    ]  # fmt: skip
    positions = [row[POSITION] for row in rows(*late, *early, extra=lsn)]
    assert positions == ["a9u", "b11d", "a5u", "b10u"]


def test_positions_of_others_are_refused() -> None:
    """They are none that these records tell."""
    with pytest.raises(ValueError, match="no other positions than postgres-lsn"):
        DebeziumJson(FormatOptions(extra={"positions": "tidb-commit-ts"}))
    with pytest.raises(ValueError, match="no other positions than tidb-commit-ts"):
        CanalJson(FormatOptions(extra={"positions": "postgres-lsn"}))
