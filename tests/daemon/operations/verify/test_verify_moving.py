"""Verification of a real table that changes: rows on their way, other keys, what stops it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from daemon.operations.engine.port import Advanced
from daemon.operations.engine.record import JobRequest
from daemon.operations.verify.job.kind import VerifyKind
from daemon.operations.verify.work import Work
from offsets.snapshot import SpillMark
from tests.daemon.operations.verify.rig import Rig
from tests.databases.base.servers import Server
from tests.needs import needed

pytestmark = pytest.mark.integration


@pytest.fixture
def rig(
    servers: Mapping[str, Server],
    drivers: None,
    spark: SparkSession,
    tmp_path: Path,
    lake_conf: Mapping[str, str],
) -> Rig:
    """A schema of MariaDB without a table."""
    with needed():
        server = servers["mariadb"]
    return Rig(server, spark, tmp_path, lake_conf)


@pytest.fixture
def numbered(rig: Rig) -> Rig:
    """100 rows with a number as key, and their equal target."""
    rig.run(f"CREATE TABLE {rig.schema}.t (id BIGINT PRIMARY KEY, note VARCHAR(20))")
    rows = ", ".join(f"({number}, 'note {number}')" for number in range(100))
    rig.run(f"INSERT INTO {rig.schema}.t VALUES {rows}")
    rig.filled({"id": "long", "note": "string"})
    return rig


def change(rig: Rig, id_: int, note: str, type_: str = "UPDATE") -> bytes:
    """Canal's message of a row."""
    message = {
        "database": rig.schema, "table": "t", "type": type_, "isDdl": False,
        "es": round(time.time() * 1000), "pkNames": ["id"],
        "mysqlType": {"id": "bigint", "note": "varchar(20)"},
        "data": [{"id": str(id_), "note": note}],
        "old": [{"note": "old"}] if type_ == "UPDATE" else None,
    }  # fmt: skip
    return json.dumps(message).encode()


def test_a_row_on_its_way_is_no_difference(numbered: Rig) -> None:
    """The source has it, the log has it, and the target gets it while the job waits."""
    rig = numbered
    rig.run(f"UPDATE {rig.schema}.t SET note = 'new' WHERE id = 5")
    rig.log.produce(change(rig, 5, "new"))
    rig.control.behind = 1_000_000

    def arrive() -> None:
        if rig.control.behind:
            rig.lake("UPDATE {t} SET note = 'new' WHERE id = 5")
            rig.control.behind = 0

    rig.control.before_wait = arrive
    (table,) = rig.verified()["tables"]
    assert table["equal"], table
    assert any("waits until what came before is written" in m for m in rig.control.messages)


def test_a_row_that_changes_at_each_look_is_undecided_and_a_calm_one_is_told(
    numbered: Rig,
) -> None:
    """The one has a change in the log from before the first look until after the second."""
    rig = numbered
    rig.lake("UPDATE {t} SET note = 'stale' WHERE id IN (5, 6)")
    produce = rig.log.produce

    def busy(*values: bytes) -> None:
        produce(change(rig, 5, "note 5"))
        produce(*values)

    rig.log.produce = busy  # type: ignore[method-assign]
    (table,) = rig.verified()["tables"]
    assert [row["key"] for row in table["rows_that_differ"]] == [{"id": "6"}]
    assert table["undecided"] == [{"key": ["5"], "why": "it changes all the time"}]
    assert not table["equal"]


def test_without_news_of_the_log_rows_are_undecided(numbered: Rig) -> None:
    """The partition is named. With ``idle_s`` they are told, and what was assumed."""
    rig = numbered
    rig.lake("UPDATE {t} SET note = 'stale' WHERE id = 5")
    rig.log.beats = False
    settings = rig.config.pipeline["p"].verify
    settings.__dict__["wait_s"] = 0.001
    (table,) = rig.verified()["tables"]
    assert "in shop:0: an idle source needs a heartbeat" in table["undecided"][0]["why"]
    settings.__dict__.update(wait_s=60.0, idle_s=0.001)
    (table,) = rig.verified()["tables"]
    assert table["differing"] == 1
    assert "was assumed" in table["notes"][0]


def test_keys_that_the_collation_takes_for_the_same(rig: Rig) -> None:
    """A row under another case is two rows that differ: one is extra, one is missing."""
    rig.run(
        f"CREATE TABLE {rig.schema}.t (code VARCHAR(20) COLLATE utf8mb4_general_ci,"
        " part INT, note VARCHAR(20), PRIMARY KEY (code, part))",
        f"INSERT INTO {rig.schema}.t SELECT CONCAT('Key ', seq), seq % 3, 'x' FROM"
        " (SELECT 1 AS seq UNION SELECT 2 UNION SELECT 3 UNION SELECT 44) s",
    )
    rig.filled({"code": "string", "part": "int", "note": "string"})
    assert rig.verified()["equal"]
    rig.lake("UPDATE {t} SET code = 'KEY 2' WHERE code = 'Key 2'")
    (table,) = rig.verified()["tables"]
    found = {(row["key"]["code"], row["what"]) for row in table["rows_that_differ"]}
    assert found == {("Key 2", "missing"), ("KEY 2", "extra")}


def test_numbers_and_a_second_column_as_key(rig: Rig) -> None:
    """Ranges are of the first column alone."""
    rig.run(
        f"CREATE TABLE {rig.schema}.t (shop INT, code VARCHAR(9), n INT, PRIMARY KEY (shop, code))",
        f"INSERT INTO {rig.schema}.t WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM"
        " s WHERE n < 900) SELECT n DIV 300, CONCAT('c', n), n FROM s",
    )
    rig.filled({"shop": "int", "code": "string", "n": "int"})
    rig.lake("UPDATE {t} SET n = 0 WHERE code = 'c700'")
    (table,) = rig.verified()["tables"]
    assert [row["key"] for row in table["rows_that_differ"]] == [{"shop": "2", "code": "c700"}]
    assert table["rows"] == 900


def step(rig: Rig, job: Any) -> Any:
    outcome = VerifyKind().step(job, rig.control)  # type: ignore[arg-type]
    assert isinstance(outcome, Advanced)
    return replace(job, memory=json.loads(json.dumps(outcome.memory)))


def test_a_table_that_is_altered_is_begun_again(numbered: Rig) -> None:
    """Between the first pass and the looks."""
    rig = numbered
    rig.lake("UPDATE {t} SET note = 'stale' WHERE id = 5")
    job = step(rig, rig.job())
    rig.run(f"ALTER TABLE {rig.schema}.t ADD COLUMN later INT")
    job = step(rig, job)
    assert (table := Work.of(job.memory).table) is not None
    assert (table.restarts, table.left) == (1, None)
    (found,) = rig.finished(job)["tables"]
    assert found["differing"] == 1
    assert found["notes"] == ["the target lacks the columns later: `columns` in its route says so"]


def test_a_step_that_is_asked_to_leave_is_left_and_repeated(numbered: Rig) -> None:
    """With the memory of before it."""
    rig = numbered
    rig.lake("UPDATE {t} SET note = 'stale' WHERE id = 5")
    job = rig.job()
    rig.control.asked = "pause"
    assert step(rig, job).memory == {}
    rig.control.asked = ""
    assert rig.finished(job)["differing"] == 1


def test_a_target_in_quarantine_is_not_compared(numbered: Rig) -> None:
    """Its changes are in its spill, though they count as done."""
    numbered.control.spills = {str(numbered.target): SpillMark(1, {})}
    result = numbered.verified()
    assert result["tables"][0]["skipped"] == "it is in quarantine: its changes are in its spill"
    assert not result["equal"]


def test_a_target_that_is_not_there_is_not_equal(numbered: Rig) -> None:
    """A table that the stream has brought no row of."""
    numbered.run(f"CREATE TABLE {numbered.schema}.u (id INT PRIMARY KEY)")
    result = numbered.verified()
    assert [table["skipped"] is None for table in result["tables"]] == [True, False]
    assert not result["equal"]


def test_what_is_chosen_is_told_before(numbered: Rig) -> None:
    """Patterns of targets and of tables; one that chooses nothing is refused."""
    schema = numbered.schema
    kind, look = VerifyKind(), numbered.control
    plan = kind.plan(look, JobRequest("verify", "p", (f"{schema}.?",)))
    assert plan.lines == (f"lake.{schema}.t: is compared with {schema}.t of shop",)
    assert plan.wanted[0].params == {"sample": 1.0, "tables": [f"{schema}.t"]}
    plan = kind.plan(look, JobRequest("verify", "p", (f"{schema}.?", "lake.nothing.*")))
    assert plan.refusals == ("lake.nothing.*: no table of pipeline p is called so",)
