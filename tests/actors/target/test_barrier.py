"""What a target makes of a DDL message, by policy and routes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from actors.contract.raw_messages import Messages
from actors.contract.writes import Doubt, TargetState
from actors.target.barrier import Barrier, BarrierPlanner
from actors.target.batching import DataError
from actors.target.buffer import TargetBuffer
from actors.target.ddl_view import is_shadow
from actors.target.pending import PendingShare
from changes.formats.canal.json import CanalJson
from changes.formats.debezium.json import DebeziumJson
from changes.model.model import (
    AddColumn,
    Column,
    DdlPolicy,
    DropColumn,
    DropTable,
    FormatOptions,
    Mode,
    TableName,
    TableSchema,
    TargetName,
    TruncateTable,
)
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from tests.changes.formats.debezium.messages import record

P0 = TopicPartition("binlog", 0)
SCHEMA = TableSchema((Column("id", pa.int64()), Column("a", pa.string())), ("id",))
STORED = TargetState(SCHEMA, Mode.UPSERT, {P0: 5}, "1")
ALL = Route(("s.*",), (), "lake.{database}.{table}", Mode.UPSERT)


def plan(
    sql: str,
    *,
    policy: DdlPolicy | None = None,
    routes: Sequence[Route] = (ALL,),
    table: str = "t",
    state: TargetState = STORED,
    offset: int = 6,
    options: FormatOptions | None = None,
    router: Router | None = None,
) -> Barrier:
    """Plan the statement for the first target of ``s.table``."""
    router = router or Router(routes)
    planner = BarrierPlanner(CanalJson(options or FormatOptions()), router, policy or DdlPolicy())
    buffer = TargetBuffer(router.targets(TableName("s", table))[0], state=state)
    body = {"database": "s", "table": "t", "type": "ALTER", "isDdl": True, "sql": sql}
    value = json.dumps(body).encode()
    buffer.cover({P0: offset}, {P0: 1})
    chunk = PendingShare(P0, 1, Messages.of([offset], [value]), True, 0.0)
    return planner.plan(buffer, chunk, "b1")


def steps(barrier: Barrier) -> list[object]:
    """The steps of the one statement that is to be written."""
    assert barrier.batch is not None
    (statement,) = barrier.batch.ddl
    return list(statement)


def test_a_replay_does_nothing() -> None:
    """The target shows the statement's offset already."""
    assert plan("TRUNCATE t", offset=5) == Barrier()


def test_a_statement_that_no_row_shows_does_nothing() -> None:
    """No write, and what is known of the columns stays."""
    assert plan("ALTER TABLE t ADD INDEX i (a)") == Barrier()


@pytest.mark.parametrize(
    ("sql", "keep", "follow"),
    [
        ("ALTER TABLE t DROP a", DropColumn("a", keep=True), DropColumn("a")),
        ("DROP TABLE t", DropTable(keep=True), DropTable()),
    ],
)
def test_what_is_dropped_is_kept_unless_it_is_to_go(sql: str, keep: object, follow: object) -> None:
    """Kept, and said so, or gone as in the source."""
    kept = plan(sql)
    assert (steps(kept), kept.forget, len(kept.notes)) == ([keep], True, 1)
    assert steps(plan(sql, policy=DdlPolicy("follow", "follow"))) == [follow]


def test_truncate_is_followed_unless_it_is_not_wanted() -> None:
    """Kept rows are named in the log."""
    assert steps(plan("TRUNCATE t")) == [TruncateTable()]
    kept = plan("TRUNCATE t", policy=DdlPolicy(truncate="keep"))
    assert kept.batch is None
    assert kept.notes == ["s.t was truncated, and what is stored is kept"]


@pytest.mark.parametrize(
    "sql", ["ALTER TABLE t DROP a", "DROP TABLE t", "TRUNCATE t", "RENAME TABLE t TO u"]
)
def test_a_policy_stops(sql: str) -> None:
    """The statement is named with its place."""
    with pytest.raises(DataError, match=r"binlog:0 offset 6: s\.t: .* is not followed: "):
        plan(sql, policy=DdlPolicy("stop", "stop", "stop", "stop"))


@pytest.mark.parametrize(
    "sql",
    ["DROP TABLE t", "TRUNCATE t", "RENAME TABLE t TO u", "ALTER TABLE t CHANGE a b text"],
)
def test_a_table_of_several_lanes_stops_where_older_rows_may_still_come(sql: str) -> None:
    """The other lanes may bring what was there before the statement, whatever the policy."""
    lanes = replace(STORED, positions="tidb-commit-ts")
    with pytest.raises(DataError, match="whose rows come in several partitions is not"):
        plan(sql, state=lanes)


def test_a_table_that_another_lane_may_be_making_stops_too() -> None:
    """Not there yet as this lane sees it: nothing to empty now, and rows of before later."""
    options = FormatOptions(extra={"positions": "tidb-commit-ts"})
    with pytest.raises(DataError, match="TRUNCATE of a table whose rows come in several"):
        plan("TRUNCATE t", state=TargetState(), options=options)
    assert plan("TRUNCATE t", state=TargetState()).batch is None


def test_columns_of_a_table_of_several_lanes_are_added_and_kept() -> None:
    """The statement may come once in each lane, and rows of before it behind it."""
    lanes = replace(STORED, positions="tidb-commit-ts")
    added = plan("ALTER TABLE t ADD b int", state=lanes)
    assert steps(added) == [AddColumn(Column("b", pa.int32()))]
    kept = plan("ALTER TABLE t DROP a", policy=DdlPolicy(drop_column="follow"), state=lanes)
    assert (kept.batch, kept.notes) == (None, ["s.t column a was dropped and is kept"])


def test_columns_that_are_added_do_not_forget() -> None:
    """What is known of the others stays good."""
    barrier = plan("ALTER TABLE t ADD b int DEFAULT 3")
    assert steps(barrier) == [AddColumn(Column("b", pa.int32()), 3)]
    assert not barrier.forget


@pytest.mark.parametrize(
    "sql", ["TRUNCATE t", "DROP TABLE t", "ALTER TABLE t RENAME COLUMN a TO b"]
)
def test_a_changelog_keeps_what_happened(sql: str) -> None:
    """Nothing is taken away from it."""
    log = TargetState(SCHEMA, Mode.APPEND, {P0: 5}, "1")
    route = Route(("s.*",), (), "lake.{database}.{table}", Mode.APPEND)
    barrier = plan(sql, state=log, routes=[route])
    assert barrier.batch is None
    assert barrier.forget
    assert barrier.notes


MERGED = Route(("s.*",), (), "lake.{database}.all", Mode.UPSERT)


@pytest.mark.parametrize("sql", ["TRUNCATE t", "ALTER TABLE t RENAME COLUMN a TO b"])
@pytest.mark.parametrize(
    "routes",
    [
        [MERGED],
        [Route(("s.t", "s.u"), (), "lake.s.x", Mode.UPSERT)],
        [
            Route(("s.t",), (), "lake.s.x", Mode.UPSERT),
            Route(("s.u",), (), "lake.{database}.x", Mode.UPSERT),
        ],
        [Route(("*.t",), (), "lake.s.{table}", Mode.UPSERT)],
    ],
)
def test_one_of_several_tables_can_not_take_from_all(sql: str, routes: list[Route]) -> None:
    """The others' rows are in the same target."""
    with pytest.raises(DataError, match="one of several tables"):
        plan(sql, routes=routes)


def test_a_table_alone_in_its_target_is_no_shard() -> None:
    """However its route is written."""
    for pattern in ("s.t", "s.t*"):
        named = "lake.s.x" if pattern == "s.t" else "lake.x.{table}"
        assert steps(plan("TRUNCATE t", routes=[Route((pattern,), (), named, Mode.UPSERT)]))


def test_a_column_dropped_in_one_of_several_tables_stays() -> None:
    """The others may have it still."""
    barrier = plan("ALTER TABLE t DROP a", policy=DdlPolicy("follow"), routes=[MERGED])
    assert barrier.batch is None
    assert barrier.notes


def test_a_renamed_table_has_two_ends() -> None:
    """The one moves, the other waits for it; each in its own lane, also without a table."""
    there, here = TargetName("lake", "s", "t"), TargetName("lake", "s", "u")
    moves = plan("RENAME TABLE t TO u").batch
    takes = plan("RENAME TABLE t TO u", table="u", state=TargetState()).batch
    assert moves is not None
    assert takes is not None
    assert (moves.target, moves.moves_to, moves.takes_from) == (there, here, None)
    assert (takes.target, takes.moves_to, takes.takes_from) == (here, None, there)


def test_a_renamed_table_in_a_target_of_one_name_changes_nothing() -> None:
    """Both names lead to the same target."""
    assert plan("RENAME TABLE t TO u", routes=[MERGED]).batch is None


@pytest.mark.parametrize("table", ["t", "u"])
def test_a_name_that_no_route_takes_stops(table: str) -> None:
    """Where the rows would be lost, or come from nowhere."""
    only = Route((f"s.{table}",), (), "lake.{database}.{table}", Mode.UPSERT)
    with pytest.raises(DataError, match="which no route takes along"):
        plan("RENAME TABLE t TO u", table=table, routes=[only])


@pytest.mark.parametrize(
    "sql",
    [
        "RENAME TABLE t TO _t_del, _t_gho TO t",
        "RENAME TABLE t TO _t_old, _t_new TO t",
        "RENAME TABLE t TO _t_20260102030405_del, _t_gho TO t",
        "RENAME TABLE t TO `lhma_2026_01_02_03_04_05_678_t`, lhmn_t TO t",
    ],
)
def test_an_online_schema_change_without_its_shadow_tables(sql: str) -> None:
    """The table goes on, its columns are learned anew, and the log says what can differ."""
    route = Route(("s.t",), (), "lake.{database}.{table}", Mode.UPSERT)
    barrier = plan(sql, routes=[route])
    assert barrier.forget
    assert "online schema change" in barrier.notes[0]
    assert barrier.batch is not None
    assert (barrier.batch.ddl, barrier.batch.path) == ((), None)
    (doubt,) = barrier.batch.doubts
    assert doubt.what.endswith(" took the place of s.t at binlog:0 offset 6")


def test_another_table_that_takes_the_place_stops() -> None:
    """A table that was filled out of sight may hold anything."""
    route = Route(("s.t",), (), "lake.{database}.{table}", Mode.UPSERT)
    with pytest.raises(DataError, match="no route takes along"):
        plan("RENAME TABLE t TO t_2025, t_2026 TO t", routes=[route])


def test_shadow_names_belong_to_their_table() -> None:
    """Another table's shadows are strangers."""
    t, database = TableName("s", "t"), "other"
    new, old = TableName("s", "_t_gho"), TableName("s", "_t_del")
    assert is_shadow(t, new=new, old=old)
    assert not is_shadow(TableName("s", "x"), new=new, old=old)
    assert not is_shadow(t, new=new._replace(database=database), old=old)


def test_a_configured_key_is_not_renamed() -> None:
    """The configuration would name a column that is gone."""
    keyed = Route(("s.*",), (), "lake.{database}.{table}", Mode.UPSERT, ("id",))
    with pytest.raises(DataError, match="renaming id, a key of the route"):
        plan("ALTER TABLE t CHANGE id oid bigint", routes=[keyed])


@pytest.mark.parametrize(
    ("sql", "table"), [("RENAME TABLE t TO u", "t"), ("RENAME TABLE u TO t", "u")]
)
def test_a_table_that_was_renamed_is_not_rebuilt(sql: str, table: str) -> None:
    """What it held under its other name is in that one's messages: the new table would lack it."""
    stand_in = {TargetName("lake", "s", "t"): TargetName("lake", "s", "t__rebuild_1")}
    with pytest.raises(DataError, match=r"RENAME TABLE while lake\.s\.t is being rebuilt"):
        plan(sql, table=table, router=Router((ALL,), stand_in))


def test_a_statement_that_nobody_understands_is_reported_and_rows_go_on() -> None:
    """The columns are learned anew from the rows that follow; the table is marked, no more."""
    unread = plan("ALTER TABLE t FROBNICATE a")
    assert (unread.forget, unread.notes) == (True, [])
    assert unread.batch is not None
    assert (unread.batch.ddl, unread.batch.path, unread.batch.is_barrier) == ((), None, True)
    assert unread.batch.doubts == (Doubt("s.t: a statement not understood at binlog:0 offset 6"),)
    (what,) = unread.unread
    assert what.startswith("s.t: a statement that is not understood")
    assert "ALTER TABLE t FROBNICATE a" in what


def test_a_statement_that_nobody_understands_stops_where_that_is_wanted() -> None:
    """Named with its place, as any that is not followed."""
    with pytest.raises(DataError, match=r"offset 6: s\.t: a statement that is not understood"):
        plan("ALTER TABLE t FROBNICATE a", policy=DdlPolicy(not_understood="stop"))


NONE_YET, GONE = TargetState(), TargetState(hwms={P0: 5})


def passed_over(sql: str, state: TargetState) -> Barrier:
    """Plan a statement of MySQL that Debezium passed over."""
    planner = BarrierPlanner(DebeziumJson(FormatOptions()), Router([ALL]), DdlPolicy())
    buffer = TargetBuffer(Router([ALL]).targets(TableName("s", "t"))[0], state=state)
    body = {"source": {"connector": "mysql", "db": "s"}, "databaseName": "s", "tableChanges": []}
    buffer.cover({P0: 6}, {P0: 1})
    messages = Messages.of([6], [record({**body, "ddl": sql})])
    return planner.plan(buffer, PendingShare(P0, 1, messages, True, 0.0), "b1")


@pytest.mark.parametrize("optional", ["", "IF NOT EXISTS"])
def test_a_table_that_debezium_did_not_see_made_is_refused_where_it_was_renamed_away(
    optional: str,
) -> None:
    """Its rows would be read by the former columns, whatever the policy. A target that has no table
    yet may get it a second time, which is told."""
    sql = f"CREATE TABLE {optional} t (id INT)"
    with pytest.raises(DataError, match=r"offset 6: s\.t: CREATE TABLE that Debezium passed over"):
        passed_over(sql, GONE)
    assert len(passed_over(sql, NONE_YET).unread) == 1
    assert len(passed_over(sql, STORED).unread) == (not optional)


NOW = "ALTER TABLE t ADD made datetime DEFAULT now()"


def test_a_new_column_whose_stored_values_are_unknown_needs_a_table_without_rows() -> None:
    """In the source all stored rows show the moment of the statement; the sink knows of any."""
    (step,) = steps(plan(NOW))
    assert isinstance(step, AddColumn)
    assert re.search(
        r"^s\.t: ADD COLUMN made: DEFAULT now .* is not followed: .* \(at binlog:0 offset 6\)$",
        str(step.needs_no_rows),
    )
    told = plan(NOW)
    assert told.batch is not None
    assert told.batch.doubts == ()
    (declared,) = steps(plan(NOW, routes=[replace(ALL, types=(("made", "string"),))]))
    assert isinstance(declared, AddColumn)
    assert declared.needs_no_rows == step.needs_no_rows


def test_a_table_that_is_not_there_has_no_rows() -> None:
    """It is made from its first row."""
    assert plan(NOW, state=TargetState()).batch is None


def test_where_other_lanes_may_lag_no_row_is_the_last_of_before() -> None:
    """What they still bring was stored when the column came, and shows a value nobody told."""
    lanes = TargetState(SCHEMA, Mode.UPSERT, {P0: 5}, "1", "tidb-commit-ts")
    with pytest.raises(DataError, match=r"ADD COLUMN made: DEFAULT now .* is not a constant"):
        plan(NOW, state=lanes)


def test_a_new_column_whose_stored_values_are_unknown_is_null_where_that_is_wanted() -> None:
    """Added, and the log says what differs from the source."""
    told = plan(NOW, policy=DdlPolicy(unknown_default="null"))
    assert steps(told) == [AddColumn(Column("made", pa.timestamp("us")))]
    (note,) = told.notes
    assert note.startswith("s.t ADD COLUMN made: ")
    assert note.endswith("NULL in stored rows")
    assert told.batch is not None
    (doubt,) = told.batch.doubts
    assert doubt.what.startswith("s.t: ADD COLUMN made: ")


def test_a_changelog_needs_no_default() -> None:
    """Its stored events did not have the column, in the source either."""
    log = TargetState(SCHEMA, Mode.APPEND, {P0: 5}, "1")
    assert steps(plan(NOW, state=log)) == [AddColumn(Column("made", pa.timestamp("us")))]


TYPED = replace(ALL, types=(("N", "bigint"), ("a", "string")))


def test_an_added_column_has_its_declared_type() -> None:
    """As the rows that follow will bring it, its default too."""
    told = plan("ALTER TABLE t ADD n int DEFAULT 5", routes=[TYPED])
    assert steps(told) == [AddColumn(Column("n", pa.int64()), 5)]
    text = plan("ALTER TABLE t ADD n varchar(9) DEFAULT '7'", routes=[TYPED])
    assert steps(text) == [AddColumn(Column("n", pa.int64()), 7)]
    with pytest.raises(DataError, match="ADD COLUMN n: DEFAULT 'x' is none of the declared type"):
        plan("ALTER TABLE t ADD n varchar(9) DEFAULT 'x'", routes=[TYPED])


def test_a_column_of_a_declared_type_is_not_renamed() -> None:
    """Under its new name its rows would have another type; its case may change."""
    with pytest.raises(DataError, match="renaming a, of a declared type, is not followed"):
        plan("ALTER TABLE t RENAME COLUMN a TO b", routes=[TYPED])
    assert plan("ALTER TABLE t RENAME COLUMN a TO A", routes=[TYPED]).batch is not None
