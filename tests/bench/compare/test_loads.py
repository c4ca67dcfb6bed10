"""First loads: the source's table, who is asked, and what the loaded tables are compared with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.compare.job import CATALOG, NAMESPACE
from bench.compare.lake import VerifyLoad, verify_load
from bench.compare.places import Folder
from bench.compare.sources import Source, statements
from bench.compare.workloads import workloads
from bench.peers.loads.binlogd_load import reading

EVEN, SKEWED = (workloads(0.1)[name] for name in ("load-even", "load-skewed"))
LINES = (
    "1\tcustomer 1\t\t-99999.99\t1\t2026-01-01 00:00:01.000001",
    "2\t\\N\tŽilina\t0.01\t2\t\\N",
)


def test_every_row_is_made_once_whatever_the_scale() -> None:
    """In steps that a server answers in time."""
    scripts = [one for one in statements(EVEN, Path("dump")) if "INSERT" in one]
    ends = [tuple(map(int, one.split("seq_")[1].rstrip(";").split("_to_"))) for one in scripts]
    assert [first for first, _ in ends] == [1, *(last + 1 for _, last in ends[:-1])]
    assert ends[-1][1] == EVEN.changes


def test_the_key_of_one_of_them_is_skewed() -> None:
    """Between least and greatest nearly all rows are in two places."""
    assert "SELECT seq, " in list(statements(EVEN, Path("dump")))[1]
    assert "SELECT CASE WHEN seq % 10" in list(statements(SKEWED, Path("dump")))[1]


@pytest.mark.integration
def test_rows_change_until_the_contestant_has_them(tmp_path: Path) -> None:
    """Then the last change is made, and the dump has what the server has."""
    workload = replace(workloads(0.1)["replicate"], changes=1000, churn=2000)
    source = Source(Folder(tmp_path), workload)
    try:
        source.prepare(None)
        before = source.dump.read_text()
        changed = f"SELECT id FROM {NAMESPACE}.t0 WHERE name LIKE 'new %'"
        with source.changed(workload.churn, "run 7") as (begun, loaded):
            begun()
            assert source.dump.read_text() == before
            while not source.server.ask(f"{changed} LIMIT 1").rows:
                pass
            loaded()
        lines = source.dump.read_text().splitlines()
    finally:
        source.close()
    assert len(lines) == 1001
    assert lines[0].startswith("0\trun 7\t")
    assert any("\tnew " in line for line in lines)


def test_the_reading_ends_when_all_rows_are_there() -> None:
    """Not with the job, which waits for the log after that."""
    begun_s, ended_s = reading(
        ["j: waiting, 0 rows: t: is read in 7 s, when", "j: running, 9 rows: range", "more"],
        " 9 rows: ",
    )
    assert 6.9 < begun_s - ended_s <= 7.0
    begun_s, ended_s = reading(["j: 0 rows: t: 3 ranges", "j: running, 9 rows: range"], " 9 rows: ")
    assert 0 <= ended_s - begun_s < 0.1
    with pytest.raises(SystemExit, match="did not say"):
        reading(["j: waiting, 0 rows: t: is read in 7 s, when"], " 9 rows: ")


@pytest.mark.integration
def test_a_loaded_table_is_compared_with_the_databases_own_text(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Value by value: the last digit, a blank for NULL, a row twice, a row that is missing."""
    (spec,), dump = EVEN.specs, tmp_path / "dump"
    dump.write_text("".join(f"{line}\n" for line in LINES))
    name = f"{CATALOG}.{NAMESPACE}.{spec.name}"
    columns = ", ".join(f"{column.name} {column.spark}" for column in spec.columns)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE}")
    spark.sql(f"CREATE TABLE {name} ({columns}) USING iceberg")
    time = "TIMESTAMP_NTZ'2026-01-01 00:00:01.000001'"
    first = f"(1, 'customer 1', '', -99999.99, 1, {time})"
    second = "(2, NULL, 'Žilina', 0.01, 2, NULL)"

    def found(*rows: str) -> list[str]:
        spark.sql(f"DELETE FROM {name}")
        spark.sql(f"INSERT INTO {name} VALUES {', '.join(rows)}")
        return verify_load(spark, VerifyLoad({}, spec, str(dump))).differences

    try:
        assert found(second, first) == []
        for wrong in (
            [first], [first, second, second], [first.replace("99.99", "99.98"), second],
            [first, second.replace("NULL, 'Ž", "'', 'Ž")], [first.replace("001'", "002'"), second],
            [first.replace("''", "NULL"), second],
        ):  # fmt: skip
            assert found(*wrong), wrong
    finally:
        spark.sql(f"DROP TABLE {name}")
