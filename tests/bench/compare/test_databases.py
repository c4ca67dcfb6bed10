"""Databases as places of the compared tables, on the real servers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from bench.compare.databases import Database, compare
from bench.compare.declared import created
from bench.compare.expected import Expected, fold
from bench.compare.rows import COLUMNS, texts
from bench.compare.run import NoFigure
from bench.compare.workloads import Workload, workloads
from tests.needs import missing

EVERY = workloads(0.001)
KINDS = ("databases-postgresql", "databases-mariadb")

BUSY = (
    "SELECT count(*) FROM bench.t0 a, bench.t0 b, bench.t0 c, bench.t1 d"
    " WHERE d.id < 20 AND a.qty + b.qty > c.qty + d.qty;"
)
"""A tenth of a second of work and more: processor time is told in hundredths."""


def of(*rows: tuple[int, int]) -> Expected:
    expected = Expected()
    for key, version in rows:
        expected.keys.append(key)
        expected.versions.append(version)
    return expected


def shown(key: int, version: int) -> tuple[str, ...]:
    return tuple(texts(key, version).values())


def test_each_difference_is_told_with_its_row() -> None:
    """What is missing, what is too many, what is there twice; nothing where both are the same."""
    both = of((1, 7), (2, 8))
    assert compare("t0", both, (shown(2, 8), shown(1, 7))) == []
    assert compare("t0", both, (shown(1, 7),)) == [f"t0: 1 missing: {shown(2, 8)}"]
    twice = (shown(1, 7), shown(2, 8), shown(2, 8))
    assert compare("t0", both, twice) == [f"t0: 1 too many: {shown(2, 8)}"]
    assert compare("t0", both, (shown(1, 7), shown(2, 6))) == [
        f"t0: 1 missing: {shown(2, 8)}",
        f"t0: 1 too many: {shown(2, 6)}",
    ]


def skip_without(server: str, failed: NoFigure) -> NoReturn:
    """Skip the test where the server is not installed; what else went wrong is raised."""
    if "is missing: `apt-get" in str(failed):
        missing(server, str(failed))
    raise failed


def small(name: str) -> Workload:
    return replace(EVERY[name], changes=400, tables=2)


def inserted(workload: Workload) -> list[str]:
    """The expected rows of each table, put there by hand."""
    fraction = "" if workload.database == "postgresql" else ".000000"
    return [
        f"INSERT INTO bench.{table.name} VALUES "
        + ", ".join(
            "('"
            + "', '".join([*shown(key, version)[:-1], shown(key, version)[-1] + fraction])
            + "')"
            for key, version in zip(rows.keys, rows.versions, strict=True)
        )
        + ";"
        for table, rows in zip(workload.specs, fold(workload, workload.messages), strict=True)
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_a_run_begins_with_empty_tables_and_its_rows_are_read_as_they_are(
    name: str, tmp_path: Path
) -> None:
    """Equal where every row is there, different where one is not, and where none is."""
    workload = small(name)
    place = Database(tmp_path, workload)
    try:
        with place.lake(True) as properties:
            assert properties["type"] == workload.database
            assert len(place.verdict(workload.messages).differences) == 5
            place.ask("\n".join(inserted(workload)))
            found = place.verdict(workload.messages)
            assert (found.differences, found.scan_s > 0) == ([], True)
            place.ask(BUSY)
            assert place.served().requests is None
            assert place.served().cpu_s > 0
            key = fold(workload, workload.messages)[1].keys[0]
            place.ask(f"UPDATE bench.t1 SET qty = 1 + qty WHERE id = {key};")
            assert [line[:15] for line in place.verdict(workload.messages).differences] == [
                "t1: 1 missing: ", "t1: 1 too many:",
            ]  # fmt: skip
    except NoFigure as failed:
        skip_without(workload.database, failed)


@pytest.mark.long
def test_freshness_is_from_sent_to_committed(tmp_path: Path) -> None:
    """Of each row by the time of its commit; a row that was sent an hour ago is an hour late."""
    workload = replace(EVERY["databases-fresh"], changes=10, tables=1)
    place = Database(tmp_path, workload)
    rows = inserted(workload)[0].replace("')", "', (extract(epoch FROM now()) - 3600) * 1000)")
    try:
        with place.lake(True):
            place.ask(rows)
            found = place.verdict(workload.messages)
    except NoFigure as failed:
        skip_without("postgresql", failed)
    assert found.differences == []
    assert found.delays_s
    assert all(3600 <= delay < 3660 for delay in found.delays_s)


def test_tables_are_declared_alike() -> None:
    """The same columns, the key first, in each database's words."""
    specs = EVERY["databases-postgresql"].specs[:1]
    postgres, mariadb = (list(created(kind, "bench", specs)) for kind in ("postgresql", "mariadb"))
    assert postgres[0] == "CREATE SCHEMA bench"
    assert mariadb[0] == "CREATE DATABASE bench"
    for statement in (postgres[1], mariadb[1]):
        assert all(f"{column.name} " in statement for column in COLUMNS)
        assert statement.endswith(", PRIMARY KEY (id))")
