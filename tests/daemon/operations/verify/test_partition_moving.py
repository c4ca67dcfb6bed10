"""Verification of one partition while its rows change, and what it leaves alone."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from actors.contract.writes import Doubt, StagedBatch
from changes.model.model import Mode
from daemon.operations.engine.record import JobRequest
from daemon.operations.verify.job.kind import VerifyKind
from offsets.fence import Span
from offsets.snapshot import Snapshot
from tests.daemon.operations.copies import Copy
from tests.daemon.operations.verify.partitions import DAY, copied
from tests.daemon.operations.verify.rig import LANE
from tests.databases.base.servers import Server


@pytest.fixture
def mariadb(servers: Mapping[str, Server], tmp_path: Path) -> Copy:
    """MariaDB in both."""
    return copied(servers, ("mariadb", "mariadb"), tmp_path)


def moved(copy: Copy, id_: int, made: str) -> None:
    """A row changes its day at the source, and in its log."""
    copy.run(f"UPDATE {{t}} SET made = '{made}' WHERE id = {id_}")
    copy.log.produce(
        json.dumps(
            {"database": copy.schema, "table": "t", "type": "UPDATE", "isDdl": False,
             "es": round(time.time() * 1000), "pkNames": ["id"],
             "mysqlType": {"id": "bigint", "made": "datetime(6)"},
             "data": [{"id": str(id_), "made": made}], "old": [{"made": "2000-01-01"}]}
        ).encode()
    )  # fmt: skip


@pytest.mark.parametrize("repair", [False, True])
def test_a_row_that_moves_meanwhile_is_no_difference(mariadb: Copy, repair: bool) -> None:
    """Into the partition, and out of it: the target gets it while the job waits."""
    copy = mariadb
    moves = {12: "2026-11-24 09:30:00", 22: "2026-11-25 09:30:00"}
    for id_, made in moves.items():
        moved(copy, id_, made)
    copy.control.behind = 1_000_000

    def arrive() -> None:
        if copy.control.behind:
            copy.plant(
                *(f"UPDATE {{t}} SET made = '{at}' WHERE id = {k}" for k, at in moves.items())
            )
            copy.control.behind = 0

    copy.control.before_wait = arrive
    table = copy.verified(partition=DAY, repair=repair)
    assert table["equal"], table
    assert not copy.control.behind
    assert not table["repaired"]


def test_a_row_that_goes_to_and_fro_is_undecided_and_never_deleted(mariadb: Copy) -> None:
    """At each look it is in another partition."""
    copy = mariadb
    copy.plant("UPDATE {t} SET made = '2026-11-25 09:30:00' WHERE id = 22")
    produce, days = copy.log.produce, ["2026-11-24 09:30:00", "2026-11-26 09:30:00"] * 99

    def busy(*values: bytes) -> None:
        copy.log.produce = produce  # type: ignore[method-assign]
        moved(copy, 22, days.pop())
        copy.log.produce = busy  # type: ignore[method-assign]
        produce(*values)

    copy.log.produce = busy  # type: ignore[method-assign]
    table = copy.verified(partition=DAY, repair=True)
    assert table["undecided"] == [{"key": ["22"], "why": "it changes all the time"}], table
    assert not table["repaired"]
    assert 22 in copy.stored()["id"].to_pylist()


def test_a_doubt_about_the_table_stays(mariadb: Copy) -> None:
    """A repair of one partition leaves ``rows_may_differ``: it has seen no other row."""
    copy = mariadb
    state = copy.writer.open(copy.target)
    lanes = {lane: Span(mark, mark) for lane, mark in state.hwms.items()}
    lanes[LANE] = Span(lanes[LANE].after, lanes[LANE].through + 1)
    doubt = StagedBatch(
        batch_id="doubt", target=copy.target, mode=Mode.UPSERT, schema=state.schema, lanes=lanes,
        doubts=(Doubt("MODIFY note"),),
    )  # fmt: skip
    assert copy.writer.write(doubt).rows_may_differ == "MODIFY note"
    copy.plant("UPDATE {t} SET note = 'x' WHERE id = 10")
    kept: list[Snapshot] = []
    copy.control.edit = lambda pipeline, change: kept.append(
        change(copy.control.snapshot(pipeline))
    )
    table = copy.verified(partition=DAY, repair=True)
    assert len(table["repaired"]) == 1, table
    assert kept[0].targets[str(copy.target)].rows_may_differ == "MODIFY note"
    assert copy.writer.open(copy.target).rows_may_differ == "MODIFY note"


def test_a_column_that_can_t_select_leaves_the_table_uncompared(mariadb: Copy) -> None:
    """It is not equal then, and says why."""
    for condition in ("made=2026-11-25Z", "note=2026-11-25", "lost=2026-11-25"):
        table = mariadb.verified(partition=condition)
        assert table["skipped"].startswith("--partition: "), table
        assert not table["equal"]


def test_a_plan_names_the_partition_and_leaves_the_sample_out(mariadb: Copy) -> None:
    """A pipeline that compares a sample on its schedule compares all of a partition."""
    mariadb.config.pipeline["p"].verify.__dict__["sample"] = 0.1
    wanted = JobRequest("verify", "p", (str(mariadb.target),), {"partition": DAY})
    plan = VerifyKind().plan(mariadb.control, wanted)
    name = str(mariadb.target)
    of = f"{name}: is compared with {mariadb.schema}.t of shop, rows of {DAY} alone"
    assert plan.lines == (of,)
    assert plan.document["partition"] == DAY
    params = {"sample": 1.0, "partition": DAY, "tables": [f"{mariadb.schema}.t"]}
    assert plan.wanted[0].params == params
    assert VerifyKind().wrong(plan.wanted[0]) == []
    broken = JobRequest("verify", "p", (name,), {**params, "partition": "made"})
    assert '"partition" is none: ' in "".join(VerifyKind().wrong(broken))
