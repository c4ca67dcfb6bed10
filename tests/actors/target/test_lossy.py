"""Statements that may change stored values without a row: reported, stopped or quarantined."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.raw_messages import Messages
from actors.contract.writes import Doubt, TargetState
from actors.target.barrier import Barrier, BarrierPlanner, notes_of
from actors.target.batching import DataError
from actors.target.buffer import TargetBuffer
from actors.target.columns import Columns
from actors.target.divergence import remarks_of
from actors.target.pending import PendingShare
from changes.formats.canal.json import CanalJson
from changes.model.model import Column, DdlPolicy, FormatOptions, Mode, TableName, TableSchema
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from offsets.snapshot import TargetMark
from tests.actors.target.processor_rig import S0, ProcessorRig, canal

P0 = TopicPartition("binlog", 0)
COLUMNS = (
    Column("id", pa.int64()),
    Column("Price", pa.decimal128(10, 2)),
    Column("name", pa.string()),
    Column("n", pa.int32()),
)
STORED = TargetState(TableSchema(COLUMNS, ("id",)), Mode.UPSERT, {P0: 5}, "1")
TYPES = {"id": "bigint", "price": "decimal(10,2)", "name": "varchar(20)", "n": "int(11)"}
ALL = Route(("s.*",), (), "lake.{database}.{table}", Mode.UPSERT)
T = "lake.db.t"
AT = "at binlog:0 offset 6"


def plan(
    sql: str,
    types: dict[str, str] | None = None,
    *,
    state: TargetState = STORED,
    route: Route = ALL,
    policy: DdlPolicy | None = None,
) -> tuple[TargetBuffer, Barrier]:
    """Plan a statement at offset 6 for a target whose columns' types are known so."""
    router = Router([route])
    planner = BarrierPlanner(CanalJson(FormatOptions()), router, policy or DdlPolicy())
    (target,) = router.targets(TableName("s", "t"))
    buffer = TargetBuffer(target, state=state, columns=Columns(dict(types or {})))
    body = {"database": "s", "table": "t", "type": "ALTER", "isDdl": True, "sql": sql}
    value = json.dumps(body).encode()
    buffer.cover({P0: 6}, {P0: 1})
    return buffer, planner.plan(
        buffer, PendingShare(P0, 1, Messages.of([6], [value]), True, 0.0), "b1"
    )


def doubts(sql: str, types: dict[str, str] | None = None, **given: Any) -> list[Doubt]:
    """What the statement's write says of stored rows."""
    _, barrier = plan(sql, types, **given)
    return [] if barrier.batch is None else list(barrier.batch.doubts)


@pytest.mark.parametrize(
    ("clause", "what"),
    [
        ("MODIFY price decimal(10,1)", "column price from decimal(10,2) to decimal(10,1)"),
        ("MODIFY name char(20)", "column name from varchar(20) to char(20)"),
        ("CHANGE name title varchar(10)", "column name from varchar(20) to varchar(10)"),
        ("MODIFY n smallint NOT NULL", "column n from int(11) to smallint"),
        ("MODIFY n int AS (id + 1) STORED", "column n is computed from other columns"),
        ("CONVERT TO CHARACTER SET latin1", "CONVERT TO CHARACTER SET latin1"),
        ("CONVERT TO CHARACTER SET binary", "CONVERT TO CHARACTER SET binary"),  # texts are bytes
    ],
)
def test_a_narrower_column_is_told(clause: str, what: str) -> None:
    """By table, column, both types and place: nothing was said, and the rows differed."""
    assert doubts(f"ALTER TABLE t {clause}", TYPES) == [Doubt(f"s.t: {what} {AT}")]


@pytest.mark.parametrize(
    "clause",
    [
        "MODIFY price decimal(12,2)",
        "MODIFY name varchar(20) COMMENT 'x'",
        "CHANGE name title text",
        "MODIFY n bigint NULL",
        "MODIFY id bigint NOT NULL AUTO_INCREMENT",
        "CONVERT TO CHARACTER SET utf8mb4",
        "MODIFY gone int",
    ],
)
def test_a_wider_or_equal_column_says_nothing(clause: str) -> None:
    """Neither does one of which nothing is stored."""
    assert doubts(f"ALTER TABLE t {clause}", TYPES) == []


def test_what_is_not_known_is_told() -> None:
    """After a restart the lake's types are all that is known: texts may have had any length."""
    assert doubts("ALTER TABLE t MODIFY name varchar(255)") == [
        Doubt(f"s.t: column name from what is stored as string to varchar(255) {AT}")
    ]
    assert doubts("ALTER TABLE t MODIFY n int") == []
    assert doubts("ALTER TABLE t MODIFY price decimal(10,2)") == []


def test_not_null_depends_on_the_stored_nulls() -> None:
    """The sink looks, by the name that it has: 0 and '' take the place of nulls."""
    sql = "ALTER TABLE t MODIFY price decimal(10,2) NOT NULL"
    assert doubts(sql, TYPES) == [Doubt(f"s.t: column price NOT NULL over nulls {AT}", "Price")]
    assert doubts(sql, TYPES | {"price": "decimal(10,2) not null"}) == []


def test_types_are_followed_from_statement_to_statement() -> None:
    """What one made of a column is what the next finds."""
    buffer, barrier = plan(
        "ALTER TABLE t CHANGE name title varchar(10) NOT NULL, RENAME COLUMN n TO m, DROP price",
        TYPES,
    )
    notes_of(buffer, barrier)
    assert buffer.columns.types == {"id": "bigint", "title": "varchar(10) not null", "m": "int(11)"}
    for forgets in ("CONVERT TO CHARACTER SET utf8mb4", "FROBNICATE", "RENAME TO u"):
        buffer, barrier = plan(f"ALTER TABLE t {forgets}", TYPES)
        notes_of(buffer, barrier)
        assert buffer.columns.types == {}


def test_tables_that_share_a_target_are_not_known_by_one_of_them() -> None:
    """What rows of one told is not true of the others."""
    shared = Route(("s.*",), (), "lake.all.t", Mode.UPSERT)
    (doubt,) = doubts("ALTER TABLE t MODIFY name varchar(20)", TYPES, route=shared)
    assert "what is stored as string" in doubt.what


def test_nothing_stored_and_a_list_of_what_happened_have_no_doubt() -> None:
    """A table that is not there yet; a changelog."""
    sql = "ALTER TABLE t MODIFY price decimal(10,1)"
    assert doubts(sql, TYPES, state=TargetState(hwms={P0: 5})) == []
    changelog = TargetState(STORED.schema, Mode.APPEND, {P0: 5}, "1")
    assert doubts(sql, TYPES, state=changelog) == []


@pytest.mark.parametrize(("policy", "quarantine"), [("stop", False), ("quarantine", True)])
def test_a_lossy_change_stops_where_that_is_wanted(policy: Any, quarantine: bool) -> None:
    """Named with what helps today, which a rebuild from the log is not."""
    with pytest.raises(DataError) as refused:
        plan("ALTER TABLE t MODIFY n tinyint", TYPES, policy=DdlPolicy(lossy_change=policy))
    assert refused.value.quarantine is quarantine
    said = str(refused.value)
    assert said.startswith("binlog:0 offset 6: s.t: column n from int(11) to tinyint at binlog:0")
    assert 'ddl.lossy_change = "report"' in said
    assert "execute-snapshot" in said
    assert doubts("ALTER TABLE t MODIFY n bigint", TYPES) == []


def test_the_log_says_what_the_mark_says() -> None:
    """Once the write that carries it is published; a null that was not there is no news."""
    buffer, barrier = plan("ALTER TABLE t MODIFY n int NOT NULL, MODIFY name char(3)", TYPES)
    assert barrier.batch is not None
    me = Address("p", "processor")
    buffer.life.looked()
    buffer.life.submit(msg.WriteBatch(barrier.batch, {P0: 1}, {P0: 6}, me, me))
    null, narrowed = barrier.batch.doubts
    assert remarks_of(buffer, STORED) == []
    marked = TargetState(STORED.schema, Mode.UPSERT, {P0: 6}, "2", rows_may_differ=narrowed.what)
    (said,) = remarks_of(buffer, marked)
    assert (said.event, said.fields["what"]) == ("rows_may_differ", narrowed.what)  # type: ignore[attr-defined]
    assert null.if_null == "n"


def statement(sql: str) -> bytes:
    """As Canal sends it."""
    body = {"database": "db", "table": "t", "type": "ALTER", "isDdl": True, "sql": sql}
    return json.dumps(body).encode()


def filled(tmp_path: Path, **settings: Any) -> ProcessorRig:
    """A target with one row, by whose message its columns are int(11) and varchar(9)."""
    rig = ProcessorRig(tmp_path, **settings)
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    return rig


def test_the_rows_tell_what_the_columns_were(tmp_path: Path) -> None:
    """From the messages to the mark and the log; a wider column is followed without a word."""
    rig = filled(tmp_path)
    rig.send("t", (2, statement("ALTER TABLE t MODIFY name varchar(10)")), ddl=True)
    rig.settle()
    rig.send("t", (3, canal("t", 1, "a")))
    rig.settle()
    assert rig.states[T].rows_may_differ is None
    rig.send("t", (4, statement("ALTER TABLE t MODIFY name char(8)")), ddl=True)
    rig.settle()
    what = "db.t: column name from varchar(9) to char(8) at binlog:0 offset 4"
    assert (rig.states[T].rows_may_differ, rig.logged("rows_may_differ")) == (what, [what])
    rig.send("t", (5, canal("t", 1, "b")))
    rig.settle()
    assert rig.logged("rows_may_differ") == [what]


def lost_and_read_again(rig: ProcessorRig) -> None:
    """The write that waits is overtaken by a straggler: its lane is read again."""
    target = rig.work.popleft().batch.target
    rig.feed(msg.Failed(target, msg.FailureKind.STRAGGLER, "moved"))
    rig.epoch += 1
    rig.settle()


def test_a_statement_that_is_planned_again_finds_what_the_rows_are(tmp_path: Path) -> None:
    """Given up, it has changed no row: the type that it gave the column is not the stored one's,
    nor is what rows behind it told. It was written without its mark."""
    rig = filled(tmp_path, buffer_bytes=1)
    alter = (2, statement("ALTER TABLE t MODIFY name char(8)"))
    rig.send("t", alter, ddl=True)
    rig.send("t", (3, canal("t", 2, "b", mysqlType={"id": "int(11)", "name": "char(8)"})))
    lost_and_read_again(rig)
    rig.send("t", alter, ddl=True)
    rig.settle()
    assert rig.states[T].rows_may_differ == (
        "db.t: column name from what is stored as string to char(8) at binlog:0 offset 2"
    )


def test_a_statement_that_a_release_comes_to_finds_what_the_rows_are(tmp_path: Path) -> None:
    """Its write was refused, so it is planned a second time, from the spill."""
    rig = filled(tmp_path, quarantine=True)
    rig.refusing[T] = "no"
    rig.send("t", (2, statement("ALTER TABLE t MODIFY name char(8)")), ddl=True)
    rig.settle()
    assert rig.listed[T].lanes == {S0: (2, 2)}
    rig.refusing.clear()
    rig.feed(msg.RetryTarget(T))
    rig.settle()
    assert rig.states[T].hwms == {S0: 2}
    assert "char(8)" in str(rig.states[T].rows_may_differ)


def test_what_another_member_may_have_done_is_not_known(tmp_path: Path) -> None:
    """It had the partition meanwhile, and a statement that made the column longer."""
    rig = filled(tmp_path)
    rig.feed(msg.Forget((S0,), rig.epoch))
    rig.epoch += 1
    rig.states[T] = replace(rig.states[T], hwms={S0: 2})
    rig.send("t", (3, statement("ALTER TABLE t MODIFY name varchar(20)")), ddl=True)
    rig.settle()
    assert "what is stored as string" in str(rig.states[T].rows_may_differ)


def test_rows_tell_their_types_again_after_a_hand_over(tmp_path: Path) -> None:
    """So that what is harmless goes on being followed without a word."""
    rig = filled(tmp_path)
    rig.feed(msg.Forget((S0,), rig.epoch))
    rig.epoch += 1
    rig.send("t", (2, canal("t", 2, "b")))
    rig.send("t", (3, statement("ALTER TABLE t MODIFY name varchar(10)")), ddl=True)
    rig.settle()
    assert (rig.states[T].hwms, rig.states[T].rows_may_differ) == ({S0: 3}, None)


def test_a_lossy_change_quarantines_its_target_alone(tmp_path: Path) -> None:
    """Also where targets that are refused stop: others go on, and a release comes to it again."""
    rig = filled(tmp_path, ddl=DdlPolicy(lossy_change="quarantine"))
    rig.send("t", (2, statement("ALTER TABLE t MODIFY name char(8)")), ddl=True)
    rig.send("t", (3, canal("t", 2, "b")))
    rig.settle()
    assert rig.listed[T].lanes == {S0: (2, 3)}
    assert (rig.states[T].hwms, rig.done(T)) == ({S0: 1}, 3)
    assert not rig.heard(msg.PipelineFailed)
    rig.feed(msg.RetryTarget(T))
    rig.settle()
    assert rig.states[T].hwms == {S0: 1}
    assert rig.listed[T].lanes == {S0: (2, 3)}


def test_a_lossy_change_stops_the_pipeline(tmp_path: Path) -> None:
    """As any statement that is not followed."""
    rig = filled(tmp_path, ddl=DdlPolicy(lossy_change="stop"))
    rig.send("t", (2, statement("ALTER TABLE t MODIFY name char(8)")), ddl=True)
    rig.settle()
    (failed,) = rig.heard(msg.PipelineFailed)
    assert "db.t: column name from varchar(9) to char(8)" in failed.reason
    assert rig.states[T].hwms == {S0: 1}


def test_a_doubt_that_a_crash_left_unsaid_is_said_at_the_opening(tmp_path: Path) -> None:
    """The mark was published, the log and the recorded mark were not."""
    rig = filled(tmp_path)
    rig.states[T] = replace(rig.states[T], rows_may_differ="what happened")
    rig.recorded = {T: TargetMark("v", {S0: 1})}
    rig.start()
    rig.send("t", (2, canal("t", 1, "b")))
    rig.settle()
    assert rig.logged("rows_may_differ") == ["what happened"]
    rig.recorded = {T: TargetMark("v", {S0: 2}, rows_may_differ="what happened")}
    rig.start()
    rig.send("t", (3, canal("t", 1, "c")))
    rig.settle()
    assert rig.logged("rows_may_differ") == ["what happened"]
