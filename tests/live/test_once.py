"""The check of a topic can fail: made records with a double, a gap, an exchange."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.once import faults
from tests.live.sources import FIRST_NUMBER, MARKER

WRITTEN = [FIRST_NUMBER + 1, FIRST_NUMBER + 4]


def row(name: str, order: int, number: int, table: str = MARKER, op: str = "c") -> dict[str, Any]:
    """A row of a transaction, MariaDB's or PostgreSQL's, each at an event of its own."""
    is_gtid = ":" not in name
    pos = int(name.rpartition("-")[2]) * 1000 + order if is_gtid else int(name.partition(":")[2])
    source = {"file": "bin.1", "pos": pos, "row": 0} if is_gtid else {"lsn": pos}
    return {
        "op": op, "after": {"id": number}, "source": {"table": table, **source},
        "transaction": {"id": name, "total_order": order, "data_collection_order": order},
    }  # fmt: skip


def boundary(status: str, name: str, count: int | None = None) -> dict[str, Any]:
    """A transaction's beginning or end."""
    tables = [{"data_collection": "a.b", "event_count": count}] if count else []
    return {"status": status, "id": name, "event_count": count, "data_collections": tables}


def transaction(name: str, first: int, count: int, table: str = MARKER) -> Iterator[Any]:
    """A whole one."""
    yield boundary("BEGIN", name)
    yield from (row(name, place + 1, first + place, table) for place in range(count))
    yield boundary("END", name, count)


def topic() -> list[Any]:
    """Of three transactions, two of them the writer's, with what is in a topic beside them."""
    return [
        {"ddl": "CREATE TABLE …", "source": {"table": "t"}},
        *transaction("0-2-5", FIRST_NUMBER, 2),
        {"ts_ms": 1},
        *transaction("0-2-9", 7, 2, "t"),
        *transaction("0-2-10", FIRST_NUMBER + 2, 3),
    ]


FIRST, SECOND, END, LAST = 7, 8, 9, 11
"""Rows and the end of the second transaction; the first row of the third."""


def test_a_topic_that_is_right_has_no_fault() -> None:
    """Nor has one without anything."""
    assert faults(topic(), WRITTEN) == []
    assert faults([], []) == []


def test_a_boundary_that_a_reader_repeats_is_none() -> None:
    """Behind all rows, or amid them: from there it counts the rest."""
    begin = boundary("BEGIN", "0-2-9")
    behind = topic()
    behind[END:END] = [begin]
    behind[END + 1] = boundary("END", "0-2-9", 0)
    assert faults(behind, WRITTEN) == []
    behind[END:END] = [boundary("END", "0-2-9", 2)]
    assert faults(behind, WRITTEN) == []
    amid = topic()
    amid[SECOND]["transaction"]["total_order"] = 1
    amid[SECOND : END + 1] = [begin, amid[SECOND], boundary("END", "0-2-9", 1)]
    assert faults(amid, WRITTEN) == []
    amid.insert(SECOND, {**amid[FIRST], "transaction": {"id": "0-2-9", "total_order": 1}})
    assert faults(amid, WRITTEN) != []


def test_what_a_database_does_in_a_way_of_its_own_is_right() -> None:
    """TRUNCATE of MariaDB has no end; the UPDATE of a key is two rows at one position. Names of
    PostgreSQL's transactions have each record's position, and follow one another by the ends'."""
    begin = boundary("BEGIN", "0-2-7")
    truncate = [begin, {**row("0-2-7", 1, 0, "t", "t"), "after": None}]
    assert faults([*truncate, *transaction("0-2-8", FIRST_NUMBER, 2)], WRITTEN[:1]) == []
    old, new = row("0-2-7", 1, 8, "t", "d"), row("0-2-7", 2, 9, "t")
    new["source"] = old["source"]
    assert faults([begin, old, new, boundary("END", "0-2-7", 2)], []) == []
    first = [row("731:7", 1, FIRST_NUMBER), row("731:9", 2, FIRST_NUMBER + 1)]
    first = [boundary("BEGIN", "731:6"), *first, boundary("END", "731:12", 2)]
    assert faults([*first, *transaction("730:26", FIRST_NUMBER + 2, 3)], WRITTEN) == []


def _double_by_another_reader(t: list[Any]) -> None:
    """It begins again at a row that is there."""
    again = [{**one, "transaction": {"id": "0-2-9", "total_order": n}}
             for n, one in enumerate(t[FIRST : SECOND + 1], 1)]  # fmt: skip
    t[END : END + 1] = [boundary("BEGIN", "0-2-9"), *again, boundary("END", "0-2-9", 2)]


def _gap_by_another_reader(t: list[Any]) -> None:
    """It begins again behind a row of the same event that is not there."""
    for place, one in enumerate(t[LAST : LAST + 3]):
        one["source"] |= {"pos": 10_001, "row": place}
    t[LAST + 2]["transaction"]["total_order"] = 1
    t[LAST + 1 : LAST + 4] = [
        boundary("BEGIN", "0-2-10"),
        t[LAST + 2],
        boundary("END", "0-2-10", 1),
    ]


@pytest.mark.parametrize(
    ("made", "said"),
    {
        "double": (lambda t: t.insert(SECOND, t[FIRST]), "0-2-9: its row 2 says that it is row 1"),
        "double by another reader": (_double_by_another_reader, "9001, 0) follows one at"),
        "gap": (lambda t: t.pop(FIRST), "0-2-9: its row 1 says that it is row 2"),
        "gap at the end": (lambda t: t.pop(SECOND), "transaction 0-2-9 counts 2 rows, and has 1"),
        "gap by another reader": (_gap_by_another_reader, "10001, 2) follows one at"),
        "exchange": (
            lambda t: t.__setitem__(slice(FIRST, END), [t[SECOND], t[FIRST]]),
            "0-2-9: its row 1 says that it is row 2",
        ),
        "positions exchanged": (
            lambda t: t[FIRST]["source"].update(pos=9900), "9002, 0) follows one at",
        ),
        "transaction twice": (lambda t: t.extend(t[6:10]), "0-2-9 comes a second time"),
        "transactions exchanged": (
            lambda t: t.__setitem__(slice(6, 15), [*t[10:15], *t[6:10]]),
            "0-2-9 ends before the one before it",
        ),
        "transaction missing": (
            lambda t: t.__delitem__(slice(10, 15)), "the writer's transaction 2 ends at",
        ),
        "no end": (lambda t: t.pop(END), "transaction 0-2-9 has rows and no end"),
        "end twice": (lambda t: t.insert(END, t[END]), "transaction 0-2-9 ends a second time"),
        "another's end": (lambda t: t.insert(END, t[-1]), "under way, and 0-2-10 ends"),
        "row behind the end": (
            lambda t: t.__setitem__(slice(SECOND, END + 1), [t[END], t[SECOND]]),
            "0-2-9 has a row behind its end",
        ),
        "another number": (
            lambda t: t[LAST + 1]["after"].update(id=FIRST_NUMBER + 2),
            f"0-2-10 has number {FIRST_NUMBER + 2} behind {FIRST_NUMBER + 2}",
        ),
        "no beginning": (lambda t: t.pop(6), "0-2-5 is under way, and a row is of"),
        "no transaction": (lambda t: t[FIRST].pop("transaction"), "and a row is of None"),
    }.values(),
)  # fmt: skip
def test_what_is_twice_missing_or_out_of_order_is_named(made: Any, said: str) -> None:
    """By the transaction that it is in."""
    records = topic()
    made(records)
    found = faults(records, WRITTEN)
    assert any(said in one for one in found), found
