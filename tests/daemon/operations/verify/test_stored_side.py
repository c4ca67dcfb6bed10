"""Verification of targets that are tables of a database: each planted difference is found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from daemon.operations.load.source_tables import SourceTables
from databases.base.errors import DatabaseRefused
from tests.daemon.operations.copies import Copy
from tests.databases.base.servers import Server
from tests.needs import needed

COLUMNS = {
    "mariadb": """id BIGINT PRIMARY KEY, name VARCHAR(40), note LONGTEXT, price DECIMAL(10,2),
        ratio DOUBLE, made DATETIME(6), seen TIMESTAMP(6) NULL, day DATE, raw VARBINARY(20),
        flag TINYINT(1), big BIGINT UNSIGNED, small FLOAT, took TIME(3), kind ENUM('a', 'b')""",
    "postgresql": """id bigint PRIMARY KEY, name varchar(40), note text, price numeric(10,2),
        ratio double precision, made timestamp(6), seen timestamptz(6), day date, raw bytea,
        flag boolean, big numeric(20,0), small real, took time(3), kind varchar(3)""",
}
WAYS = [
    ("mariadb", "postgresql"),
    ("mariadb", "mariadb"),
    ("postgresql", "mariadb"),
    *(
        pytest.param((source, into), marks=pytest.mark.soak)
        for source, into in (("mysql", "mysql"), ("postgresql", "mysql"), ("mysql", "postgresql"))
    ),
]

PLANTED = {
    11: ("missing", "DELETE FROM {t} WHERE id = 11"),
    -1: ("extra", "INSERT INTO {t} (id, name) VALUES (-1, 'extra')"),
    12: ("name price", "UPDATE {t} SET name = 'before', price = 1.00 WHERE id = 12"),
    13: ("note", "UPDATE {t} SET note = left(note, length(note) - 1) WHERE id = 13"),
    14: ("price", "UPDATE {t} SET price = price + 0.01 WHERE id = 14"),
    15: ("ratio", "UPDATE {t} SET ratio = 15.100000000000001e0 WHERE id = 15"),
    7: ("note", "UPDATE {t} SET note = NULL WHERE id = 7"),
    57: ("name", "UPDATE {t} SET name = '' WHERE id = 57"),
    17: ("name", "UPDATE {t} SET name = concat(name, ' ') WHERE id = 17"),
    18: ("made", "UPDATE {t} SET made = made + INTERVAL {us} WHERE id = 18"),
    19: ("seen", "UPDATE {t} SET seen = seen + INTERVAL {us} WHERE id = 19"),
    20: ("day", "UPDATE {t} SET day = day + INTERVAL {day} WHERE id = 20"),
    21: ("raw", "UPDATE {t} SET raw = {bytes} WHERE id = 21"),
    22: ("name", "UPDATE {t} SET name = upper(name) WHERE id = 22"),
    107: ("flag", "UPDATE {t} SET flag = '0' WHERE id = 107"),
    24: ("big", "UPDATE {t} SET big = big - 1 WHERE id = 24"),
    25: ("took", "UPDATE {t} SET took = concat(took, '1') WHERE id = 25"),
    26: ("small", "UPDATE {t} SET small = 26.250002 WHERE id = 26"),
    27: ("kind", "UPDATE {t} SET kind = 'B' WHERE id = 27"),
}
"""By key the columns that differ once the statement is done, each on a row of its own."""

WORDS = {
    "mysql": {"{us}": "1 MICROSECOND", "{day}": "1 DAY", "{bytes}": "concat(raw, X'00')"},
    "mariadb": {"{us}": "1 MICROSECOND", "{day}": "1 DAY",
                "{bytes}": "concat(raw, X'00')"},
    "postgresql": {"{us}": "'1 microsecond'", "{day}": "'1 day'",
                   "{bytes}": "raw || '\\x00'"},
}  # fmt: skip


def row(number: int, kind: str) -> str:
    if number % 50 == 7:
        return f"({number}, NULL, ''{', NULL' * 11})"
    flag = str(number % 2 == 1) if kind == "postgresql" else str(number % 2)
    return (
        f"({number}, 'näme {number}', '{'long ' * 20}{number}', {number}.05, {number}.1,"
        f" '2024-01-02 03:04:05.{number:06}', '2024-06-02 03:04:05.{number:06}', '2024-02-29',"
        f" 'raw{number}', {flag}, 1844674407370955{number:04}, {number}.25, '03:04:05.5', 'b')"
    )


@pytest.fixture(params=WAYS, ids="-".join)
def copy(request: pytest.FixtureRequest, servers: Mapping[str, Server], tmp_path: Path) -> Copy:
    """A table of 300 rows, and its equal copy."""
    with needed():
        source, into = (servers[kind] for kind in request.param)
    made = Copy(source, into, tmp_path)
    rows = ", ".join(row(number, source.kind) for number in range(300))
    columns = COLUMNS.get(source.kind, COLUMNS["mariadb"])
    made.run(f"CREATE TABLE {{t}} ({columns})", f"INSERT INTO {{t}} VALUES {rows}")
    made.loaded()
    return made


def plant(copy: Copy) -> None:
    for _, sql in PLANTED.values():
        for word, means in WORDS[copy.into.kind].items():
            sql = sql.replace(word, means)
        copy.plant(sql)


def test_a_copy_that_is_equal_is_equal(copy: Copy) -> None:
    """Whatever types the two databases have for a value. Every column is compared."""
    table = copy.verified()
    assert table["equal"], table
    assert table["rows"] == table["target_rows"] == 300
    assert table["notes"] == []


def test_every_planted_difference_is_found_and_repaired(copy: Copy) -> None:
    """And no other row is told; the second look finds nothing."""
    plant(copy)
    table = copy.verified(repair=True)
    found = {int(each["key"]["id"]): each for each in table["rows_that_differ"]}
    assert found.keys() == PLANTED.keys()
    for key, told in found.items():
        shown = " ".join(told["columns"]) if told["what"] == "differs" else told["what"]
        assert shown == PLANTED[key][0]
    assert not table["undecided"]
    assert len(table["repaired"]) == len(PLANTED), table["notes"]
    again = copy.verified()
    assert again["equal"], again
    assert again["rows"] == again["target_rows"] == 300


def test_rows_that_are_too_long_for_a_hash_are_looked_at(
    servers: Mapping[str, Server], tmp_path: Path
) -> None:
    """MariaDB makes no text above max_allowed_packet: nulls on both sides would look equal."""
    with needed():
        server = servers["mariadb"]
    copy = Copy(server, server, tmp_path)
    copy.run("CREATE TABLE {t} (id INT PRIMARY KEY, a LONGTEXT, b LONGTEXT)")
    copy.loaded()
    row = "INSERT INTO {t} VALUES (1, REPEAT('x', 2200000), REPEAT('y', 2200000))"
    copy.run(row)
    copy.plant(row)
    server.run(["SET GLOBAL max_allowed_packet = 4194304"])
    try:
        assert copy.verified()["equal"]
        copy.plant("UPDATE {t} SET b = CONCAT(LEFT(b, 2199999), 'z') WHERE id = 1")
        table = copy.verified()
    finally:
        server.run(["SET GLOBAL max_allowed_packet = 16777216"])
    assert [list(found["columns"]) for found in table["rows_that_differ"]] == [["b"]]


def test_what_the_source_never_has_is_not_taken_for_null(
    servers: Mapping[str, Server], tmp_path: Path
) -> None:
    """An infinite date at the source is null in the stream; at the target it is a difference."""
    with needed():
        server = servers["postgresql"]
    copy = Copy(server, server, tmp_path)
    copy.run("CREATE TABLE {t} (id int PRIMARY KEY, day date, n numeric(5,2))")
    copy.run("INSERT INTO {t} VALUES (1, 'infinity', 'NaN'), (2, NULL, NULL), (3, NULL, NULL)")
    copy.loaded()
    assert copy.verified()["equal"]
    copy.plant("UPDATE {t} SET day = 'infinity' WHERE id = 2", "UPDATE {t} SET n = 'NaN'")
    table = copy.verified(repair=True)
    assert [list(found["columns"]) for found in table["rows_that_differ"]] == [
        ["n"], ["day", "n"], ["n"],
    ]  # fmt: skip
    assert copy.verified()["equal"]


def test_texts_that_differ_from_the_source_s_are_read(
    servers: Mapping[str, Server], tmp_path: Path
) -> None:
    """PostgreSQL's numbers without a scale are kept as texts; a wider decimal has more digits."""
    with needed():
        server = servers["postgresql"]
    copy = Copy(server, server, tmp_path, {"types": {"n": "decimal(20,4)"}})
    copy.run("CREATE TABLE {t} (id int PRIMARY KEY, n numeric(5,2), v numeric, j jsonb)")
    copy.run("INSERT INTO {t} VALUES (1, 1.5, 1.50, '{\"a\": 1}'), (2, NULL, 0.000001, NULL)")
    copy.loaded()
    table = copy.verified()
    assert table["equal"], table
    copy.plant("UPDATE {t} SET v = '1.51' WHERE id = 1")
    table = copy.verified(repair=True)
    assert [list(found["columns"]) for found in table["rows_that_differ"]] == [["v"]]
    assert copy.verified()["equal"]


def test_a_column_of_the_user_s_own_is_not_lost_by_a_load(
    servers: Mapping[str, Server], tmp_path: Path
) -> None:
    """The table that a load makes would not have it; a comparison says that it has it."""
    with needed():
        server = servers["mariadb"]
    copy = Copy(server, server, tmp_path)
    copy.run("CREATE TABLE {t} (id INT PRIMARY KEY, a TEXT)", "INSERT INTO {t} VALUES (1, 'x')")
    copy.loaded()
    copy.plant("ALTER TABLE {t} ADD COLUMN mine INT")
    tables = SourceTables(copy.control, "p")  # type: ignore[arg-type]
    try:
        with pytest.raises(DatabaseRefused, match="your column mine"):
            tables.describe(copy.table, str(copy.target))
    finally:
        tables.close()
    assert copy.verified()["equal"]
