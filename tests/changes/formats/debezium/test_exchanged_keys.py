"""Keys that rows exchange in Debezium's records: by two halves that announce each other, or by one
record of a configured key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from changes.formats import FORMATS
from changes.model.model import OP, FormatOptions, Mode
from changes.routes.fold import concat_changes, fold
from tests.changes.formats.debezium.messages import (
    POSTGRES,
    UNAVAILABLE,
    change,
    envelope,
    wrapped,
)
from tests.changes.formats.debezium.messages import record as debezium_record

Image = tuple[int, str]
SWAP = [((1, "a"), (2, "a")), ((2, "b"), (1, "b"))]
NEW, OLD = [("__debezium.newkey", b"x")], [("__debezium.oldkey", b"x")]


def debezium(was: Image, now: Image, *, tombstone: bool = True) -> list[bytes]:
    """The halves of a changed key as Debezium writes them."""
    rows = [{"id": key, "name": name} for key, name in (was, now)]
    ends = change("d", None, rows[0], headers=NEW)
    begins = change("c", rows[1], None, headers=OLD)
    return [ends, *([debezium_record(None, {"id": was[0]})] if tombstone else []), begins]


def debezium_net(
    *calls: Sequence[bytes], keys: tuple[str, ...] | None = None
) -> dict[int, str | None]:
    format_ = FORMATS["debezium-json"](FormatOptions())
    decode, offset, pieces = format_.table_decoder(Mode.UPSERT, keys).decode, 0, []
    for values in calls:
        changes = decode(0, range(offset, offset + len(values)), values)
        offset += len(values)
        if changes is not None:
            pieces.append(changes.table)
    rows = fold(concat_changes(pieces), ["id"]).to_pylist()
    return {int(row["id"]): None if row[OP] == "D" else row["name"] for row in rows}


@pytest.mark.parametrize("tombstone", [True, False])
@pytest.mark.parametrize("cut", range(6))
def test_debeziums_halves_exchange_two_keys(tombstone: bool, cut: int) -> None:
    """Delete and insert of one row, delete and insert of the other, in any batches."""
    swap = [each for was, now in SWAP for each in debezium(was, now, tombstone=tombstone)]
    calls = [swap[:cut], swap[cut:]] if cut else [swap]
    assert debezium_net(*calls) == {1: "b", 2: "a"}


def test_debeziums_row_that_comes_back_leaves_nothing_behind() -> None:
    """It is the row that has just come."""
    moves = [*debezium((1, "a"), (2, "b")), *debezium((2, "b"), (1, "c"))]
    assert debezium_net(moves) == {1: "c", 2: None}


def test_a_row_that_is_deleted_after_it_came_is_gone() -> None:
    """A delete that announces no new key is one."""
    gone = change("d", None, {"id": 2, "name": "other"})
    assert debezium_net([*debezium((1, "a"), (2, "a")), gone]) == {1: None, 2: None}


def test_an_old_image_of_nulls_proves_nothing() -> None:
    """Under REPLICA IDENTITY DEFAULT only the key of a deleted row is told."""
    back = [change("d", None, {"id": 2, "name": None}, headers=NEW),
            change("c", {"id": 1, "name": "a"}, headers=OLD)]  # fmt: skip
    assert debezium_net([*debezium((1, "a"), (2, "a")), *back]) == {1: "a", 2: None}


KINDS = {"id": "int32", "name": "string", "n": "int64", "d": "double"}
UNTOLD = {"name": "", "n": 0, "d": 1.5}
"""Columns NOT NULL, and one with a default, as they come where PostgreSQL told the key alone."""


def of_postgres(
    was: Mapping[str, Any], now: Mapping[str, Any], old: Mapping[str, Any], *, schema: bool
) -> list[bytes]:
    """The halves of a changed key; ``old`` is what the delete has beside it."""
    halves = (("d", {"id": was["id"], **old}, None, NEW), ("c", None, now, OLD))
    found = []
    for op, before, after, headers in halves:
        told: Any = envelope(op, after, before, POSTGRES)
        key = {"id": (after or was)["id"]}
        value = wrapped(told, KINDS) if schema else told
        found.append(debezium_record(value, key, headers))
    return found


@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize("cut", range(6))
def test_what_stands_for_values_that_were_not_told_proves_nothing(schema: bool, cut: int) -> None:
    """A row that changes its key thrice, under REPLICA IDENTITY DEFAULT: Debezium puts 0 and the
    like into columns that take no NULL, Kafka Connect the default."""
    rows = [{"id": key, "name": "a", "n": 5, "d": None} for key in (1, 2, 3, 4)]
    moves = [
        half for was, now in pairwise(rows) for half in of_postgres(was, now, UNTOLD, schema=schema)
    ]
    calls = [moves[:cut], moves[cut:]] if cut else [moves]
    assert debezium_net(*calls) == {1: None, 2: None, 3: None, 4: "a"}


@pytest.mark.parametrize("schema", [True, False])
def test_a_whole_old_image_of_postgres_shows_that_another_row_stands_there(schema: bool) -> None:
    """REPLICA IDENTITY FULL, a key that is checked at the end: as with the others."""
    one, two = {"name": "a", "n": 5, "d": 1.5}, {"name": "b", "n": 5, "d": 1.5}
    swap = [
        half
        for was, now, row in ((1, 2, one), (2, 1, two))
        for half in of_postgres({"id": was}, {"id": now, **row}, row, schema=schema)
    ]
    assert debezium_net(swap) == {1: "b", 2: "a"}


def unsent(was: int, now: int) -> list[bytes]:
    """The halves of a changed key whose row has a value that was not sent."""
    old = {"name": "big", "n": 7, "d": None}
    new = {"id": now, "name": UNAVAILABLE, "n": 7, "d": None}
    return of_postgres({"id": was}, new, old, schema=True)


def test_a_moved_value_that_was_not_sent_keeps_what_is_known_of_the_others() -> None:
    """REPLICA IDENTITY FULL: the row of key 2 leaves it after another one has come there, and
    between them a row moves whose long text did not change."""
    one, two = {"name": "a", "n": 5, "d": 1.5}, {"name": "b", "n": 5, "d": 1.5}
    first = of_postgres({"id": 1}, {"id": 2, **one}, one, schema=True)
    last = of_postgres({"id": 2}, {"id": 3, **two}, two, schema=True)
    found = debezium_net([*first, *unsent(5, 6), *last])
    assert found == {1: None, 2: "a", 3: "b", 5: None, 6: None}


def by_index(pk: int, was: int, now: int, name: str) -> bytes:
    """An update under REPLICA IDENTITY USING INDEX: the old row has the index's column alone."""
    old = {"pk": 0, "id": was, "name": ""}
    return change("u", {"pk": pk, "id": now, "name": name}, old, key={"pk": pk}, source=POSTGRES)


def test_partial_images_of_a_configured_key_are_told_apart_by_their_records_keys() -> None:
    """A unique constraint that is checked at the end: ``SET id = id + 1``."""
    assert debezium_net([by_index(7, 1, 2, "a"), by_index(8, 2, 3, "b")], keys=("id",)) == {
        1: None, 2: "a", 3: "b"
    }  # fmt: skip


def test_one_row_that_moves_on_leaves_nothing_behind_by_partial_images() -> None:
    moves = [by_index(7, 1, 2, "a"), by_index(7, 2, 3, "a"), by_index(7, 3, 4, "b")]
    assert debezium_net(moves, keys=("id",)) == {1: None, 2: None, 3: None, 4: "b"}
