"""The shop's stream: replayed naively it gives the shop's own final state, and it holds it all."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from demo.expected import arrow_type, expected_tables, keys_of
from demo.shop import Message, Shop
from demo.tables import TABLES

CHANGES = 40_000


def _play(changes: int, seed: int = 1) -> tuple[Shop, list[Message]]:
    shop = Shop(changes, seed)
    return shop, list(shop.messages())


@pytest.fixture(scope="module")
def played() -> tuple[Shop, list[Message]]:
    """A shop whose stream was taken whole, and the stream."""
    return _play(CHANGES)


@pytest.fixture(scope="module")
def shop(played: tuple[Shop, list[Message]]) -> Shop:
    """The shop of ``played``."""
    return played[0]


@pytest.fixture(scope="module")
def messages(played: tuple[Shop, list[Message]]) -> list[Message]:
    """The stream of ``played``."""
    return played[1]


@pytest.fixture(scope="module")
def decoded(messages: list[Message]) -> list[dict[str, Any]]:
    """The messages as JSON."""
    return [json.loads(message.value) for message in messages]


def _replay(decoded: list[dict[str, Any]]) -> dict[str, dict[tuple[str, ...], dict[str, Any]]]:
    """Apply the messages one row after the other, as MySQL's replica would."""
    tables: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {}
    for message in decoded:
        rows = tables.setdefault(message["table"], {})
        if message["isDdl"]:
            column = message["sql"].split("`")[3]
            for row in rows.values():
                row[column] = "0" if "DEFAULT 0" in message["sql"] else None
            continue
        keys = message["pkNames"] or []
        for number, data in enumerate(message["data"]):
            before = data | (message["old"][number] if message["old"] else {})
            old_key = tuple(before[key] for key in keys)
            key = tuple(data[key] for key in keys)
            if not keys:
                continue
            if message["type"] == "INSERT":
                assert key not in rows, f"inserted twice: {key}"
            else:
                assert rows.pop(old_key) == before, "the before image is not the stored row"
            if message["type"] != "DELETE":
                assert key not in rows, f"moved onto another row: {key}"
                rows[key] = dict(data)
    return tables


def test_replay_gives_the_final_state(shop: Shop, decoded: list[dict[str, Any]]) -> None:
    """Applying each row, with every before image checked, ends at the shop's own rows."""
    replayed = _replay(decoded)
    for name, live in shop.live.items():
        if live.spec.keys:
            expected = {
                key: dict(zip(live.names, row, strict=True)) for key, row in live.rows.items()
            }
            assert replayed[name] == expected


def test_changelog_holds_every_row(shop: Shop, decoded: list[dict[str, Any]]) -> None:
    """A table without a key is expected as the list of its changes, each with its place."""
    offsets = [3 * number + 1 for number in range(len(decoded))]
    found = expected_tables(shop, offsets)["click_log"]
    marks = ["_op", "_PARTITION", "_offset", "_index"]
    expected = [
        (message["type"][0], 0, offset, index, row["session_id"])
        for offset, message in zip(offsets, decoded, strict=True)
        if message["table"] == "click_log"
        for index, row in enumerate(message["data"])
    ]
    columns = [found[name].to_pylist() for name in [*marks, "session_id"]]
    assert expected == list(zip(*columns, strict=True))


def test_the_same_seed_gives_the_same_stream() -> None:
    """Two runs with one seed are equal to the byte; another seed differs."""
    assert _play(2000, 7)[1] == _play(2000, 7)[1]
    assert _play(2000, 7)[1] != _play(2000, 8)[1]


@pytest.mark.parametrize("changes", [1, 50, 99, 1000, 12_345])
def test_as_many_changes_as_asked(changes: int) -> None:
    """The rows of all messages add up to the number asked for."""
    assert sum(message.rows for message in _play(changes)[1]) == changes


def test_every_table_has_its_share(messages: list[Message]) -> None:
    """Twelve tables at least, the hottest twenty times as hot as the coldest, none empty."""
    heat = Counter(message.table for message in messages).most_common()
    assert len(heat) >= 12
    assert heat[0][1] > 20 * heat[-1][1] > 0


def test_keys_of_every_kind() -> None:
    """Composite keys, text keys, a key of two texts, and a table without a key."""
    kinds = [[str(arrow_type(f.mysql_type)) for f in t.fields[: t.keys]] for t in TABLES]
    assert [] in kinds
    assert ["string"] in kinds
    assert ["string", "string"] in kinds
    assert ["int64", "int32"] in kinds


def test_members_as_canal_has_them(decoded: list[dict[str, Any]]) -> None:
    """Every value is text or null, old comes with updates only, DDL carries a statement only."""
    for message in decoded:
        if message["isDdl"]:
            assert message["type"] == "ALTER"
            assert message["sql"]
            absent = ("data", "old", "mysqlType", "sqlType", "pkNames")
            assert [message[name] for name in absent] == [None] * 5
            continue
        assert (message["old"] is not None) == (message["type"] == "UPDATE")
        for row in message["data"]:
            assert row.keys() == message["mysqlType"].keys() == message["sqlType"].keys()
            assert all(value is None or type(value) is str for value in row.values())
        assert message["es"] % 1000 == 0 <= message["ts"] - message["es"]


def test_messages_of_many_sizes(messages: list[Message]) -> None:
    """From one row to eight, small ones more often."""
    sizes = Counter(message.rows for message in messages if message.rows)
    assert set(sizes) == set(range(1, 9))
    assert sizes[1] > sizes[2] > sizes[3] > sizes[8]


def test_old_over_reports(decoded: list[dict[str, Any]]) -> None:
    """Some old holds a column whose value didn't change in that row."""
    told_unchanged = sum(
        data[name] == value
        for message in decoded
        if message["type"] == "UPDATE"
        for data, old in zip(message["data"], message["old"], strict=True)
        for name, value in old.items()
    )
    assert told_unchanged > 100


def _key_moves(decoded: list[dict[str, Any]]) -> list[tuple[str, list[tuple[Any, Any]]]]:
    """For each message, the rows that changed their key: (old key, new key)."""
    moves = []
    for message in decoded:
        if message["type"] == "UPDATE" and message["pkNames"]:
            keys = message["pkNames"]
            pairs = [
                (tuple((data | old)[key] for key in keys), tuple(data[key] for key in keys))
                for data, old in zip(message["data"], message["old"], strict=True)
            ]
            moves.append((message["table"], [pair for pair in pairs if pair[0] != pair[1]]))
    return moves


def test_keys_change(decoded: list[dict[str, Any]]) -> None:
    """Rows move to other keys in several tables."""
    assert len({table for table, pairs in _key_moves(decoded) if pairs}) >= 6


def test_a_message_frees_a_key_and_takes_it(decoded: list[dict[str, Any]]) -> None:
    """Rows of one message move up in a chain, each onto the key that the one before has left."""
    chains = [
        pairs
        for _, pairs in _key_moves(decoded)
        if any(left[0] == taken[1] for left, taken in pairwise(pairs))
    ]
    assert chains


def test_deleted_keys_come_back(decoded: list[dict[str, Any]]) -> None:
    """A key that was deleted is inserted again later."""
    gone, back = set(), 0
    for message in decoded:
        for row in message["data"] or []:
            key = (message["table"], *(row[name] for name in message["pkNames"] or []))
            if message["type"] == "DELETE":
                gone.add(key)
            elif message["type"] == "INSERT":
                back += len(key) > 1 and key in gone
    assert back > 10


def test_columns_are_added(shop: Shop, decoded: list[dict[str, Any]]) -> None:
    """Two ALTERs in mid-stream: older rows show NULL in the one column, 0 in the other."""
    places = {m["table"]: place for place, m in enumerate(decoded) if m["isDdl"]}
    assert places.keys() == {"orders", "products"}
    assert all(0.2 * len(decoded) < place < 0.8 * len(decoded) for place in places.values())
    state = expected_tables(shop, range(len(decoded)))
    assert state["orders"]["gift_note"].null_count > 0
    assert state["products"]["rating"].null_count == 0
    assert 0 in state["products"]["rating"].to_pylist()


def test_values_at_the_edge(decoded: list[dict[str, Any]]) -> None:
    """Unsigned above 2^63, the ends of the integers, full decimals, old dates, odd texts, nulls."""
    seen: dict[str, set[Any]] = {}
    for message in decoded:
        for row in message["data"] or []:
            for column, value in row.items():
                seen.setdefault(f"{message['table']}.{column}", set()).add(value)
    assert max(int(number or 0) for number in seen["customers.loyalty_no"]) >= 2**63
    assert {"1000-01-01", "9999-12-31", None} <= seen["customers.born"]
    assert {"-2147483648", "2147483647"} <= seen["inventory.quantity"]
    assert {"99999999.99", "-99999999.99"} <= seen["order_items.price"]
    assert {"4.9E-324", "1.7976931348623157E308"} <= seen["shipments.weight"]
    assert {"", "null", "emoji 🛒🧾", "line\nbreak\ttab", None} <= seen["reviews.body"]


def test_types_drift_with_the_value(decoded: list[dict[str, Any]]) -> None:
    """sqlType names the next larger type where the last row's unsigned value needs its top bit."""
    seen = {
        (m["sqlType"]["loyalty_no"], int(m["data"][-1]["loyalty_no"] or 0) >= 2**63)
        for m in decoded
        if m["table"] == "customers" and m["data"]
    }
    assert seen == {(-5, False), (3, True)}


def test_keys_tell_the_expected_rows_apart(shop: Shop, messages: list[Message]) -> None:
    """No two rows of an expected table share what keys_of names."""
    keys = keys_of(shop)
    for name, table in expected_tables(shop, range(len(messages))).items():
        rows = list(zip(*(table[key].to_pylist() for key in keys[name]), strict=True))
        assert len(rows) == len(set(rows))
