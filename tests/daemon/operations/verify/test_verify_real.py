"""Verification on real servers: equal tables are equal, and each planted difference is found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.daemon.operations.verify.rig import Rig
from tests.databases.base.servers import Server
from tests.needs import needed

pytestmark = pytest.mark.integration

COLUMNS = {
    "mariadb": """id BIGINT PRIMARY KEY, name VARCHAR(40), note VARCHAR(400), price DECIMAL(10,2),
        ratio DOUBLE, made DATETIME(6), seen TIMESTAMP(6) NULL, day DATE, raw VARBINARY(20),
        flag TINYINT""",
    "postgresql": """id bigint PRIMARY KEY, name varchar(40), note text, price numeric(10,2),
        ratio double precision, made timestamp(6), seen timestamptz(6), day date, raw bytea,
        flag smallint""",
}
TYPES = {
    "id": "long",
    "name": "string",
    "note": "string",
    "price": "decimal(10, 2)",
    "ratio": "double",
    "made": "timestamp",
    "seen": "timestamptz",
    "day": "date",
    "raw": "binary",
    "flag": "int",
}


@pytest.fixture(params=["mariadb", "postgresql"])
def rig(
    request: pytest.FixtureRequest,
    servers: Mapping[str, Server],
    drivers: None,
    spark: SparkSession,
    tmp_path: Path,
    lake_conf: Mapping[str, str],
) -> Rig:
    """A table of 300 rows, and its equal target."""
    with needed():
        server = servers[request.param]
    made = Rig(server, spark, tmp_path, lake_conf)
    made.run(f"CREATE TABLE {made.schema}.t ({COLUMNS[server.kind]})")
    made.run(f"INSERT INTO {made.schema}.t VALUES " + ", ".join(map(values_of, range(300))))
    made.filled(TYPES)
    return made


def values_of(number: int) -> str:
    if number % 50 == 7:
        return f"({number}, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    note = "long " * 20 + str(number)
    return (
        f"({number}, 'name {number}', '{note}', {number}.05, {number}.1,"
        f" '2024-01-02 03:04:05.{number:06}', '2024-06-02 03:04:05.{number:06}', '2024-02-29',"
        f" 'raw{number}', {number % 100})"
    )


PLANTED = {
    11: ("missing", "DELETE FROM {t} WHERE id = 11"),
    -1: ("extra", "INSERT INTO {t} (id, name) VALUES (-1, 'extra')"),
    12: ("name price", "UPDATE {t} SET name = 'before', price = 1.00 WHERE id = 12"),
    13: ("note", "UPDATE {t} SET note = left(note, length(note) - 1) WHERE id = 13"),
    14: ("price", "UPDATE {t} SET price = price + 0.01 WHERE id = 14"),
    15: ("ratio", "UPDATE {t} SET ratio = 15.100000000000001D WHERE id = 15"),
    16: ("name note", "UPDATE {t} SET name = note, note = name WHERE id = 16"),
    7: ("note", "UPDATE {t} SET note = NULL WHERE id = 7"),
    57: ("name", "UPDATE {t} SET name = '' WHERE id = 57"),
    17: ("name", "UPDATE {t} SET name = concat(name, ' ') WHERE id = 17"),
    18: ("made", "UPDATE {t} SET made = made + INTERVAL '0.000001' SECOND WHERE id = 18"),
    19: ("seen", "UPDATE {t} SET seen = seen + INTERVAL '0.000001' SECOND WHERE id = 19"),
    20: ("day", "UPDATE {t} SET day = day + 1 WHERE id = 20"),
    21: ("raw", "UPDATE {t} SET raw = concat(raw, X'00') WHERE id = 21"),
    22: ("name", "UPDATE {t} SET name = upper(name) WHERE id = 22"),
    107: ("flag", "UPDATE {t} SET flag = 0 WHERE id = 107"),
}
"""By key the columns that differ once the statement is done, each on a row of its own."""


def test_an_equal_table_is_equal(rig: Rig) -> None:
    """Each type, nulls and empty texts too; every column is compared."""
    (table,) = rig.verified()["tables"]
    assert table["equal"], table
    assert table["rows"] == table["target_rows"] == 300
    assert table["notes"] == []


def test_every_planted_difference_is_found(rig: Rig) -> None:
    """Missing and extra rows, stale ones, truncated text, last digits, swapped columns, null and
    empty, blanks at the end, a microsecond, a byte, another case. And no other row is told."""
    for _, sql in PLANTED.values():
        rig.lake(sql)
    (table,) = rig.verified()["tables"]
    found = {int(row["key"]["id"]): row for row in table["rows_that_differ"]}
    assert found.keys() == PLANTED.keys()
    for key, row in found.items():
        wanted = PLANTED[key][0]
        shown = " ".join(row["columns"]) if row["what"] == "differs" else row["what"]
        assert shown == wanted
    assert not table["equal"]
    assert not table["undecided"]


def test_what_is_told_of_a_row(rig: Rig) -> None:
    """What is wrong with each row, and the columns with both values."""
    rig.lake("DELETE FROM {t} WHERE id IN (20, 21)")
    rig.lake("INSERT INTO {t} (id, name) VALUES (-5, 'extra')")
    rig.lake("UPDATE {t} SET price = price + 0.01, ratio = 0.5D WHERE id = 30")
    result = rig.verified()
    (table,) = result["tables"]
    found = {row["key"]["id"]: row for row in table["rows_that_differ"]}
    assert {key: row["what"] for key, row in found.items()} == {
        "20": "missing", "21": "missing", "-5": "extra", "30": "differs",
    }  # fmt: skip
    assert found["30"]["columns"] == {"price": ["30.05", "30.06"], "ratio": ["30.1", "0.5"]}
    assert found["20"]["columns"]["name"] == ["name 20", None]
    assert found["-5"]["columns"]["name"] == [None, "extra"]
    assert result["differing"] == 4
    assert not result["equal"]


def test_numbers_whose_type_tells_no_digits(
    servers: Mapping[str, Server],
    drivers: None,
    spark: SparkSession,
    tmp_path: Path,
    lake_conf: Mapping[str, str],
) -> None:
    """Each row of such a table was told as different, equal or not."""
    with needed():
        server = servers["postgresql"]
    made = Rig(server, spark, tmp_path, lake_conf)
    made.run(
        f"CREATE TABLE {made.schema}.t (id bigint PRIMARY KEY, paid money, n numeric)",
        f"INSERT INTO {made.schema}.t VALUES (1, '-12.34', 1.50), (2, '0', 1e20),"
        " (3, '7.1', 0.000000100), (4, NULL, NULL)",
    )
    made.filled({"id": "long", "paid": "decimal(38, 2)", "n": "string"})
    (table,) = made.verified()["tables"]
    assert table["equal"], table
    made.lake("UPDATE {t} SET paid = -12.35, n = '1.51' WHERE id = 1")
    (table,) = made.verified()["tables"]
    (found,) = table["rows_that_differ"]
    assert found["columns"] == {"paid": ["-12.34", "-12.35"], "n": ["1.5", "1.51"]}
