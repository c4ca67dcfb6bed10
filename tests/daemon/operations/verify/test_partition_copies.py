"""Verification of one partition of targets in a database: what is in it is found wherever each side
has it, and nothing else is told or touched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.daemon.operations.copies import Copy
from tests.daemon.operations.verify.partitions import DAY, WAYS, copied, told
from tests.databases.base.servers import Server
from tests.needs import needed


@pytest.fixture(params=WAYS, ids="-".join)
def copy(request: pytest.FixtureRequest, servers: Mapping[str, Server], tmp_path: Path) -> Copy:
    """Between two kinds of databases."""
    return copied(servers, request.param, tmp_path)


PLANTED = {
    10: ("differs", "UPDATE {t} SET note = 'x' WHERE id = 10"),
    11: ("missing", "DELETE FROM {t} WHERE id = 11"),
    12: ("differs", "UPDATE {t} SET made = '2026-11-26 00:00:00' WHERE id = 12"),
    13: ("differs", "UPDATE {t} SET made = NULL WHERE id = 13"),
    21: ("differs", "UPDATE {t} SET made = '2026-11-25 23:59:59.999999' WHERE id = 21"),
    99: ("extra", "INSERT INTO {t} (id, made, note) VALUES (99, '2026-11-25 00:00:00', 'x')"),
}
"""By key what is told of it: 12 and 21 are in another partition on either side."""
OUTSIDE = (
    "UPDATE {t} SET note = 'x' WHERE id = 5",
    "DELETE FROM {t} WHERE id = 25",
    "UPDATE {t} SET made = '2026-11-26 00:00:00' WHERE id = 6",
    "INSERT INTO {t} (id, made, note) VALUES (98, '2026-11-26 00:00:00', 'x')",
    "INSERT INTO {t} (id, made, note) VALUES (97, NULL, 'x')",
)


def test_each_row_of_the_partition_is_found_wherever_it_is(copy: Copy) -> None:
    """A row that the target has here and the source elsewhere is moved there, not deleted; one that
    the source has here is written here. Rows of other partitions are not told, and stay wrong."""
    assert copy.verified(partition=DAY)["equal"]
    copy.plant(*(sql for _, sql in PLANTED.values()), *OUTSIDE)
    table = copy.verified(partition=DAY, repair=True)
    assert told(table) == {key: what for key, (what, _) in PLANTED.items()}, table
    assert (table["rows"], len(table["repaired"])) == (10, len(PLANTED)), table["notes"]
    again = copy.verified(partition=DAY)
    assert again["equal"], again
    assert again["rows"] == again["target_rows"] == 10
    rest = copy.verified()
    assert told(rest) == {5: "differs", 25: "missing", 6: "differs", 98: "extra", 97: "extra"}
    stored = {row["id"]: row for row in copy.stored().to_pylist()}
    assert str(stored[21]["made"]) == "2026-11-26 01:00:00"
    assert 99 not in stored


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("made=2026-11-25T05:00:00..2026-11-25T06:00:00", [15]),
        ("made=2026-11-25T05:00:00.000001..2026-11-25T06:00:00.000001", [16]),
        ("seen=2026-11-25Z", [*range(10, 20)]),
        ("seen=2026-11-25+05:00", [*range(10, 20)]),
        ("seen=2026-11-25-05:00", [*range(15, 20), *range(20, 25)]),
        ("seen=2026-11-25T05:00+08:00..2026-11-25T01:30Z", [10, 11]),
        ("day=2026-11-26", [*range(20, 30)]),
        ("day=2026-11-24..2026-11-26", [*range(20)]),
        ("made=0001-01-01..9999-12-31", [*range(30)]),
        ("seen=0001-01-02Z..9999-12-30Z", [*range(30)]),
        ("made=2027-01-01", []),
    ],
)
def test_which_rows_are_in_it(copy: Copy, condition: str, rows: list[int]) -> None:
    """The same ones on both sides: the beginning is in it, the end is not; an instant's day is that
    of the zone. All rows are wrong, and those of the partition are told."""
    assert copy.verified(partition=condition)["target_rows"] == len(rows)
    copy.plant("UPDATE {t} SET note = concat(note, '!')")
    table = copy.verified(partition=condition)
    assert (sorted(told(table)), table["target_rows"]) == (rows, len(rows))


def test_zero_dates_are_in_no_day_of_their_own(
    servers: Mapping[str, Server], tmp_path: Path
) -> None:
    """MySQL compares 2026-11-00 as a number; the target has NULL, and no day. A year of zero is
    before all days. None of them is a difference, and a real one beside them is told."""
    with needed():
        server = servers["mariadb"]
    copy = Copy(server, server, tmp_path)
    copy.run(
        "CREATE TABLE {t} (id INT PRIMARY KEY, made DATETIME NULL, day DATE NULL, seen TIMESTAMP)",
        "SET SESSION sql_mode = ''",
        "INSERT INTO {t} VALUES (1, '2026-11-00', '2026-11-00', '2026-11-01'),"
        " (2, '0000-00-00', '0000-00-00', '0000-00-00'), (3, '2026-11-01', '2026-11-01',"
        " '2026-11-01'), (4, NULL, NULL, '2026-11-01'), (5, '2026-00-05', '2026-00-05',"
        " '2026-11-02')",
    )
    copy.loaded()
    conditions = (
        "made=2026-10-01..2026-11-02", "day=2026-10-01..2026-11-02", "made=2025-12-31..2026-12-01",
        "day=0001-01-01..9999-12-31", "seen=1970-01-01Z", "seen=2026-11-01Z",
    )  # fmt: skip
    for condition in conditions:
        table = copy.verified(partition=condition)
        assert table["equal"], (condition, table)
    copy.plant("UPDATE {t} SET made = '2026-11-02' WHERE id = 3")
    assert told(copy.verified(partition=conditions[0])) == {3: "differs"}


def test_infinite_dates_are_in_no_partition(servers: Mapping[str, Server], tmp_path: Path) -> None:
    """PostgreSQL's; the target has NULL for them."""
    with needed():
        server = servers["postgresql"]
    copy = Copy(server, server, tmp_path)
    copy.run(
        "CREATE TABLE {t} (id int PRIMARY KEY, seen timestamptz)",
        "INSERT INTO {t} VALUES (1, 'infinity'), (2, '-infinity'), (3, '2026-11-25 00:00+00')",
    )
    copy.loaded()
    table = copy.verified(partition="seen=0001-01-02Z..9999-12-30Z")
    assert (table["equal"], table["rows"], table["target_rows"]) == (True, 1, 1), table


def test_a_day_in_the_key_makes_another_row(servers: Mapping[str, Server], tmp_path: Path) -> None:
    """The source has no such key: it is extra, and the row of the other day is that day's."""
    with needed():
        server = servers["mariadb"]
    copy = Copy(server, server, tmp_path)
    copy.run(
        "CREATE TABLE {t} (code VARCHAR(9), day DATE, n INT, PRIMARY KEY (code, day))",
        "INSERT INTO {t} VALUES ('a', '2026-11-25', 1), ('b', '2026-11-25', 2),"
        " ('b', '2026-11-26', 3)",
    )
    copy.loaded()
    copy.plant("UPDATE {t} SET day = '2026-11-24' WHERE code = 'a'")
    table = copy.verified(partition="day=2026-11-24", repair=True)
    (row,) = table["rows_that_differ"]
    assert (row["key"], row["what"]) == ({"code": "a", "day": "2026-11-24"}, "extra")
    assert copy.verified(partition="day=2026-11-24")["equal"]
    (row,) = copy.verified(partition="day=2026-11-25", repair=True)["rows_that_differ"]
    assert (row["key"], row["what"]) == ({"code": "a", "day": "2026-11-25"}, "missing")
    assert copy.verified()["equal"]


@pytest.mark.parametrize("ways", WAYS, ids="-".join)
def test_a_bound_that_is_finer_than_the_column(
    servers: Mapping[str, Server], tmp_path: Path, ways: tuple[str, str]
) -> None:
    """It is not rounded to the column's digits: a row that the target lacks would be out of the
    partition on both sides."""
    with needed():
        source, into = (servers[kind] for kind in ways)
    copy = Copy(source, into, tmp_path)
    postgres = source.kind == "postgresql"
    types = ("timestamp(0)", "timestamptz(0)") if postgres else ("DATETIME(0)", "TIMESTAMP(0)")
    copy.run(
        f"CREATE TABLE {{t}} (id BIGINT PRIMARY KEY, made {types[0]} NULL, seen {types[1]} NULL)",
        "INSERT INTO {t} VALUES (1, '2026-11-25 05:00:00', '2026-11-25 05:00:00')",
    )
    copy.loaded()
    copy.plant("DELETE FROM {t}")
    inside = (
        "made=2026-11-25..2026-11-25T05:00:00.3", "seen=2026-11-25Z..2026-11-25T05:00:00.000001Z",
        "made=2026-11-25T04:59:59.999999..2026-11-25T05:00:00.000001",
        "seen=2026-11-25T04:59:59.5Z..2026-11-25T05:00:00.4Z",
    )  # fmt: skip
    for condition in inside:
        assert told(copy.verified(partition=condition)) == {1: "missing"}, condition
    behind = (
        "made=2026-11-25T05:00:00.3..2026-11-26", "seen=2026-11-25T05:00:00.4Z..2026-11-26Z"
    )  # fmt: skip
    for condition in behind:
        assert copy.verified(partition=condition)["rows"] == 0, condition
