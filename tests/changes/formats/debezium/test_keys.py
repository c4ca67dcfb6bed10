"""Which row a record speaks of: replica identities, key changes, values that were not sent."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from changes.formats.canal.json import CanalJson
from changes.formats.debezium.json import DebeziumJson
from changes.formats.engine.format import pack
from changes.model.model import (
    FROM,
    HAS_PREFIX,
    OP,
    POSITION,
    BadMessage,
    BadRecord,
    FormatOptions,
    Mode,
)
from changes.routes.fold import fold
from tests.changes.formats.debezium.messages import (
    FORMAT,
    POSTGRES,
    UNAVAILABLE,
    change,
    decode,
    dumps,
    envelope,
    record,
    rows,
    typed,
)

ROW = {"id": 1, "name": "a"}
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


def test_without_any_key_it_is_a_changelog() -> None:
    """A table without primary key has no record keys."""
    found = decode(change("c", ROW, key=None), change("u", ROW, ROW, key=None))
    assert found.mode is Mode.APPEND
    assert [row["_op"] for row in found.table.to_pylist()] == ["I", "U"]


def test_a_table_that_changes_its_key_is_refused() -> None:
    """Rows by two keys can't be one table."""
    with pytest.raises(BadRecord, match=r"the key was \(id\) and is now \(id, name\)") as error:
        decode(*[change("c", ROW)] * 3, change("c", ROW, key=ROW))
    assert error.value.index == 3
    with pytest.raises(BadRecord, match=r"the key was \(id\) and is now none"):
        decode(change("c", ROW), change("c", ROW, key=None))


def test_garbage_in_keys_does_not_matter_where_they_are_configured() -> None:
    """Otherwise it does: it would be a changelog."""
    garbage = change("c", ROW, key="****")
    assert net(garbage, garbage, keys=("id",)) == [{OP: "U", "id": "1", "name": "a"}]
    with pytest.raises(BadRecord, match="the record key"):
        decode(garbage)


def test_a_configured_column_that_does_not_exist() -> None:
    """It is named."""
    with pytest.raises(BadRecord, match="key column uuid is missing"):
        decode(change("c", ROW), keys=("uuid",))


# --- replica identities


@pytest.mark.parametrize("before", [{"id": 1, "name": None}, {"id": 1}, None])
def test_a_delete_under_replica_identity_default(before: Any) -> None:
    """The image holds the key and nulls that mean nothing, or is not there: the key tells."""
    assert rows(change("c", ROW), change("d", None, before, key={"id": 1}))[1][OP] == "D"
    assert net(change("c", ROW), change("d", None, before, key={"id": 1})) == [
        {OP: "D", "id": "1", "name": None}
    ]


def test_an_update_under_replica_identity_default() -> None:
    """Without the old row it is the new one."""
    assert net(change("c", ROW), change("u", {**ROW, "name": "b"})) == [
        {OP: "U", "id": "1", "name": "b"}
    ]


def test_a_delete_that_tells_no_key_is_refused() -> None:
    """Neither image nor record key: it can't be passed over."""
    nothing = change("d", None, None, key=None)
    with pytest.raises(BadRecord, match="key column id is missing in a deleted row") as error:
        decode(change("c", ROW, key=None), nothing, keys=("id",))
    assert error.value.index == 1
    with pytest.raises(BadMessage, match="without image and without key"):
        FORMAT.explain(nothing)


def test_a_configured_key_needs_the_old_row() -> None:
    """Where it is not the record's, an update may change it without saying so."""
    with pytest.raises(BadRecord, match="REPLICA IDENTITY FULL"):
        decode(change("u", ROW), keys=("name",))
    with pytest.raises(BadRecord, match="the old value of key column name is unknown"):
        decode(change("u", ROW, {"id": 1, "name": None}), keys=("name",))
    with pytest.raises(BadRecord, match="key column name is null in a deleted row"):
        decode(change("d", None, {"id": 1, "name": None}), keys=("name",))


@pytest.mark.parametrize("op", ["c", "d"])
def test_a_configured_key_needs_the_old_row_in_every_place(op: str) -> None:
    """Also among records that are decoded as a block, be there deletes in it or not."""
    row = {**ROW, "n": 1}
    other = change(op, row, row)
    values = [*[change("c", row)] * 3, other, change("u", row), change("c", row)]
    with pytest.raises(BadRecord, match="its old row is null") as error:
        decode(*values, keys=("name",))
    assert error.value.index == 4


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


def test_an_update_that_changes_the_key() -> None:
    """By message.key.columns, or a configured key: the old one ends."""
    found = decode(change("u", {**ROW, "id": 2}, ROW))
    assert [(row[OP], row["id"]) for row in found.table.to_pylist()] == [("D", "1"), ("U", "2")]
    assert found.count == 1


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
    """Absent, not null; an earlier value of the batch is taken over."""
    kept = change("u", {"id": 1, "name": UNAVAILABLE, "n": 2}, source=POSTGRES)
    assert rows(change("c", {**ROW, "n": 1}), kept)[1][HAS_PREFIX + "name"] is False
    assert net(change("c", {**ROW, "n": 1}), kept) == [{OP: "U", "id": "1", "name": "a", "n": "2"}]
    assert net(kept)[0][HAS_PREFIX + "name"] is False


def test_what_was_not_sent_in_every_type() -> None:
    """Text, bytes, lists, maps: each has its form of the placeholder."""
    fields: dict[str, Any] = {
        "id": "int32", "t": "string", "j": ("string", "io.debezium.data.Json"), "b": "bytes",
        "a": "array", "n": "array", "m": "map",
    }  # fmt: skip
    whole = {"id": 1, "t": "t", "j": "{}", "b": "AQ==", "a": ["x"], "n": [1], "m": {"k": "v"}}
    gone = {
        "id": 1, "t": UNAVAILABLE, "j": UNAVAILABLE, "a": [UNAVAILABLE],
        "b": base64.b64encode(UNAVAILABLE.encode()).decode(),
        "n": list(UNAVAILABLE.encode()), "m": {UNAVAILABLE: UNAVAILABLE},
    }  # fmt: skip
    first, second = typed("c", fields, whole), typed("u", fields, gone, source=POSTGRES)
    assert net(first, second) == net(first)
    assert net(*[first] * 5, *[second] * 300) == net(first)
    (told,) = FORMAT.explain(second)
    assert told.after == {"id": 1}  # type: ignore[union-attr]


def test_another_placeholder() -> None:
    """Connectors may be configured to write one of their own, as text or bytes."""
    for option in ("~gone~", "hex:7e676f6e657e"):
        value = change("u", {"id": 1, "name": "~gone~", "n": 1})
        (found,) = net(value, extra={"unavailable_value": option})
        assert (found[HAS_PREFIX + "name"], found["n"]) == (False, "1")


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


def test_a_new_row_that_is_not_whole_is_refused() -> None:
    """Its value stands nowhere: a null in its place would be a loss in silence."""
    value = change("c", {"id": 2, "name": UNAVAILABLE}, source=POSTGRES)
    for before in (0, 1, 300):
        with pytest.raises(BadRecord, match="name: a new row without this value") as error:
            decode(*[change("c", ROW)] * before, value)
        assert error.value.index == before


def test_a_bad_record_leaves_the_rest() -> None:
    """Those before it decode by the same decoder as if it had not been there."""
    decoder = FORMAT.table_decoder(Mode.UPSERT, None)
    good, bad = change("c", ROW), change("c", {"id": 1, "NAME": "x"})
    with pytest.raises(BadRecord, match="differ by case only") as error:
        decoder.decode(0, [0, 1], [good, bad])
    assert (error.value.index, decoder.schema) == (1, None)
    found = decoder.decode(0, [0], [good])
    assert found is not None
    assert found.table.to_pylist() == [{OP: "U", "id": "1", "name": "a"}]


def test_the_table_is_named() -> None:
    """Several may share a target."""
    with pytest.raises(BadRecord, match=r"^shop\.orders: key column id is null"):
        decode(change("c", {"id": None, "name": "a"}, key={"id": 1}))


def test_columns_come_and_go() -> None:
    """A new one is learned from the rows; one that is missing keeps what is stored."""
    values = [
        change("c", ROW),
        change("c", {**ROW, "id": 2, "n": 1}),
        change("u", {**ROW, "id": 2}),
    ]
    assert net(*values) == [
        {OP: "U", "id": "1", "name": "a", "n": None, HAS_PREFIX + "n": False},
        {OP: "U", "id": "2", "name": "a", "n": "1", HAS_PREFIX + "n": True},
    ]


def test_numbers_of_no_declared_type_keep_their_digits() -> None:
    """Whatever kinds of JSON values a column had before."""
    given = ["1", "-0.10", "1e3", "18446744073709551616", '"x"', "true", "null", '{"a": 1.50}']
    values = []
    for n, text in enumerate(given):
        value = dumps(envelope("c", {"id": n, "v": "@"})).replace(b'"@"', text.encode())
        values.append(pack(dumps({"id": n}), value))
    told = [row["v"] for row in rows(*values)]
    assert told == ["1", "-0.10", "1e3", "18446744073709551616", "x", "true", None, '{"a": 1.50}']


def test_names_that_json_escapes() -> None:
    """They take the careful way, always, and are right."""
    row = {"id": 1, 'a"b': "x", "ü\n": "y"}
    assert rows(*[change("c", row)] * 3)[2] == {OP: "U", "id": "1", 'a"b': "x", "ü\n": "y"}


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


def test_a_record_without_its_place_is_refused() -> None:
    """Nor is a row that is not whole: which change of which column came last can't be told."""
    lsn = {"positions": "postgres-lsn"}
    with pytest.raises(BadRecord, match=r"no source\.lsn"):
        decode(at(None, "c", ROW), extra=lsn)
    with pytest.raises(BadRecord, match="column name is missing"):
        decode(at(5, "u", {"id": 1, "name": UNAVAILABLE}), extra=lsn)


def test_positions_of_others_are_refused() -> None:
    """They are none that these records tell."""
    with pytest.raises(ValueError, match="no other positions than postgres-lsn"):
        DebeziumJson(FormatOptions(extra={"positions": "tidb-commit-ts"}))
    with pytest.raises(ValueError, match="no other positions than tidb-commit-ts"):
        CanalJson(FormatOptions(extra={"positions": "postgres-lsn"}))


def test_a_changelog_shows_null_for_what_was_not_sent() -> None:
    """It lists what was told; no row of a table is made of it."""
    value = change("c", {"id": 2, "name": UNAVAILABLE, "n": 1}, source=POSTGRES)
    found = decode(*[change("c", {**ROW, "n": 1})] * 2, value, mode=Mode.APPEND).table
    assert found["name"].to_pylist() == ["a", "a", None]
