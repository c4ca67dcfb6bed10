"""A message in which statements stand beside rows of their own target, in the processor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from actors.contract import messages as msg
from actors.contract.figures import Figures, ProcessorFigures
from actors.contract.multi_entry import entry_groups
from changes.formats import FORMATS
from changes.model.model import DdlPolicy, FormatOptions, Mode, TableName, TruncateTable
from changes.routes.routing import Route, Router
from offsets.fence import Span
from offsets.position import EntryStep
from offsets.snapshot import TargetMark
from tests.actors.target.processor_rig import ROUTES, S0, ProcessorRig
from tests.changes.formats import protobuf_records as wire

TARGET = "lake.db.t"
CANAL = FORMATS["canal-protobuf"](FormatOptions())
LOG = (Route(("*",), (), "lake.{database}.{table}", Mode.APPEND, None),)
TRUNCATE = wire.canal_ddl("TRUNCATE", "TRUNCATE TABLE t", "t", "db")


def rows(*keys: int, table: str = "t", name: str = "n") -> bytes:
    made = [
        wire.canal_row((), [wire.canal_column("id", str(key), "int(11)", key=True),
                            wire.canal_column("name", name, "varchar(9)")])
        for key in keys
    ]  # fmt: skip
    return wire.canal_rows("INSERT", made, table, "db")


def ddl(sql: str) -> bytes:
    return wire.canal_ddl("ALTER", sql, "t", "db")


def packet(*entries: bytes) -> bytes:
    return wire.canal_packet(*entries)


def started(state_dir: Path | None = None, **more: Any) -> ProcessorRig:
    """A processor whose table has a row, written with the message at offset 0."""
    rig = ProcessorRig(state_dir, "canal-protobuf", **more)
    rig.send("t", (0, packet(rows(0))))
    rig.settle()
    return rig


def send(rig: ProcessorRig, offset: int, *entries: bytes) -> None:
    rig.send("t", (offset, packet(*entries)), ddl=True)


def taken(rig: ProcessorRig) -> msg.WriteBatch:
    """The write that is due; it ends well."""
    write = rig.work[0]
    assert isinstance(write, msg.WriteBatch)
    rig.write()
    return write


BARE = packet(
    rows(1), TRUNCATE, rows(9, table="u"), rows(2), rows(3), ddl("ALTER TABLE t ADD c int")
)


def test_a_message_is_cut_where_statements_stand() -> None:
    """Places are counted over all entries, so that two targets of a statement name one place."""
    router = Router(ROUTES)
    (route,) = router.targets(TableName("db", "t"))
    found = entry_groups(CANAL, router, route, BARE)
    assert [(each.ddl, each.done, each.last) for each in found] == [
        (False, 1, False), (True, 2, False), (False, 5, False), (True, 6, True),
    ]  # fmt: skip
    decoder = CANAL.table_decoder(Mode.UPSERT, None)
    changes = decoder.decode(0, [5], [found[2].value])
    assert changes is not None
    assert changes.table["id"].to_pylist() == [2, 3]


def test_each_entry_group_is_a_write_and_the_last_one_is_acknowledged() -> None:
    """Before it the mark is below the message; each write tells the step it finds and leaves."""
    rig = started()
    send(rig, 5, rows(1, 2), TRUNCATE, rows(3))
    writes = [taken(rig), taken(rig), taken(rig)]
    assert [(w.batch.begun, w.batch.step) for w in writes] == [
        (0, EntryStep(5, 1)), (1, EntryStep(5, 2)), (2, EntryStep(5, 3)),
    ]  # fmt: skip
    assert [w.batch.lanes[S0] for w in writes] == [Span(0, 4), Span(4, 4), Span(4, 5)]
    assert [(dict(w.epochs), dict(w.through)) for w in writes] == [
        ({S0: 1}, {}), ({S0: 1}, {}), ({S0: 1}, {S0: 5}),
    ]  # fmt: skip
    assert writes[1].batch.ddl == ((TruncateTable(),),)
    assert rig.rows[TARGET] == {(3,): "n"}
    assert rig.done(TARGET) == 5
    assert not rig.work


def test_what_is_in_is_dropped_at_a_replay() -> None:
    """A restart between two writes goes on with the third entry group."""
    rig = started()
    message = (rows(1), TRUNCATE, rows(2))
    send(rig, 5, *message)
    taken(rig)
    taken(rig)
    rig.start()
    rig.epoch += 1
    send(rig, 5, *message)
    rig.write()  # the opening
    write = taken(rig)
    assert (write.batch.begun, write.batch.step, write.batch.ddl) == (2, EntryStep(5, 3), ())
    assert rig.rows[TARGET] == {(2,): "n"}
    assert not rig.work


def test_a_retried_entry_group_is_the_same_write() -> None:
    """Its reply was lost: the sink, which shows the step, says that it is covered."""
    rig = started()
    send(rig, 5, rows(1), TRUNCATE)
    first = rig.work[0]
    rig.failing[TARGET] = msg.FailureKind.RETRY
    rig.write()
    rig.failing.clear()
    rig.tick(60)
    assert taken(rig) == first


def test_what_follows_waits_for_the_last_entry_group() -> None:
    """And is one batch with its own mark then."""
    rig = started()
    send(rig, 5, rows(1), TRUNCATE, rows(2))
    rig.send("t", (6, packet(rows(3))), (7, packet(rows(4))))
    for _ in range(3):
        taken(rig)
    rig.tick()
    write = taken(rig)
    assert (write.batch.lanes[S0], write.batch.step) == (Span(5, 7), None)
    assert sorted(rig.rows[TARGET]) == [(2,), (3,), (4,)]


def test_a_changelog_counts_the_rows_of_a_message_on() -> None:
    """Also over a restart: the step tells how many there are."""
    rig = started(routes=LOG)
    message = (rows(1, 2), ddl("ALTER TABLE t ADD c int DEFAULT 7"), rows(3), TRUNCATE, rows(4, 5))
    send(rig, 5, *message)
    taken(rig)
    assert taken(rig).batch.step == EntryStep(5, 2, 2)
    rig.start()
    rig.epoch += 1
    send(rig, 5, *message)
    rig.settle()
    assert sorted(rig.rows[TARGET]) == [(0, 0), *((5, index) for index in range(5))]
    assert rig.done(TARGET) == 5


def test_entry_groups_without_effect_need_no_write() -> None:
    """An index, a table that is there: the message is done with its rows."""
    rig = started()
    send(
        rig, 5, ddl("ALTER TABLE t ADD INDEX i (name)"), rows(1), ddl("ALTER TABLE t ADD KEY (id)")
    )
    write = taken(rig)
    assert write.batch.step == EntryStep(5, 2)
    assert rig.done(TARGET) == 0
    end = taken(rig)
    assert end.batch.is_barrier
    assert (end.batch.lanes[S0], end.batch.begun, end.batch.ddl) == (Span(4, 5), 2, ())
    assert rig.done(TARGET) == 5


def test_a_message_without_effect_is_done_without_a_write() -> None:
    """As a statement alone would be."""
    rig = started()
    send(rig, 5, ddl("ALTER TABLE t ADD INDEX i (name)"), ddl("ALTER TABLE t ADD KEY (id)"))
    assert not rig.work
    assert rig.done(TARGET) == 5


def test_a_bad_record_beside_a_statement_refuses_the_target() -> None:
    """It becomes no dead letter: what follows it may rest on what it would have done."""
    rig = started(dead_letters=True)
    bad = wire.canal_row((), [wire.canal_column("id", "x", "int(11)", key=True)])
    send(rig, 5, rows(1), TRUNCATE, wire.canal_rows("INSERT", [bad], "t", "db"), rows(2))
    taken(rig)
    taken(rig)
    (failed,) = rig.heard(msg.PipelineFailed)
    assert "binlog:0 offset 5: db.t" in failed.reason
    assert not rig.heard(msg.DeadLetter)
    assert not rig.work
    assert rig.done(TARGET) == 0


def test_a_statement_that_the_policy_refuses_stops_behind_the_rows_before_it() -> None:
    """With its place; another policy at the next start goes on from there."""
    rig = started(ddl=DdlPolicy(truncate="stop"))
    send(rig, 5, rows(1), TRUNCATE, rows(2))
    taken(rig)
    (failed,) = rig.heard(msg.PipelineFailed)
    assert "binlog:0 offset 5: db.t: TRUNCATE is not followed" in failed.reason
    assert rig.states[TARGET].steps == {S0: EntryStep(5, 1)}
    assert not rig.work


def test_a_statement_that_nobody_understands_beside_rows_is_told() -> None:
    """As one alone is: what was known of the columns is forgotten, the rows go on."""
    rig = started()
    send(rig, 5, rows(1), ddl("ALTER TABLE t FROBNICATE"), rows(2))
    rig.settle()
    (figures,) = rig.feed(Figures())
    assert isinstance(figures, ProcessorFigures)
    assert figures.targets[0].ddl_not_understood == 1
    assert sorted(rig.rows[TARGET]) == [(0,), (1,), (2,)]
    assert rig.done(TARGET) == 5


def test_a_revoke_waits_for_an_entry_group_and_goes_no_further() -> None:
    """The next owner finds the step, and the message still to be read."""
    rig = started()
    send(rig, 5, rows(1), TRUNCATE, rows(2))
    rig.feed(msg.Forget((S0,), rig.epoch))
    rig.feed(msg.Settle((S0,), 1))
    assert not rig.heard(msg.Settled)
    taken(rig)
    assert rig.heard(msg.Settled)
    assert not rig.work
    assert rig.done(TARGET) == 0


def test_a_spill_takes_the_whole_message_and_a_release_what_is_left(tmp_path: Path) -> None:
    """The sink refuses the second entry group: the first is not applied again."""
    rig = started(tmp_path, quarantine=True)
    send(rig, 5, rows(1), TRUNCATE, rows(2))
    taken(rig)
    rig.refusing[TARGET] = "it can't hold that"
    rig.write()
    rig.tick()
    assert rig.done(TARGET) == 5  # it is in the spill
    (listed,) = (mark.lanes for mark in rig.listed.values())
    assert listed == {S0: (5, 5)}
    rig.refusing.clear()
    rig.feed(msg.RetryTarget(TARGET))
    rig.write()  # the opening
    rig.tick()
    assert taken(rig).batch.begun == 1
    rig.settle()
    assert rig.rows[TARGET] == {(2,): "n"}
    assert not rig.listed


def test_the_last_entry_group_in_flight_is_spilled_from_the_log(tmp_path: Path) -> None:
    """It is no more at hand when it is refused."""
    rig = started(tmp_path, quarantine=True)
    send(rig, 5, TRUNCATE, rows(2))
    taken(rig)
    rig.refusing[TARGET] = "it can't hold that"
    rig.write()
    rig.tick()
    assert rig.listed[TARGET].lanes == {S0: (5, 5)}
    rig.refusing.clear()
    rig.feed(msg.RetryTarget(TARGET))
    rig.settle()
    assert rig.rows[TARGET] == {(2,): "n"}


def again(rig: ProcessorRig, offset: int, *entries: bytes) -> msg.OpenTarget:
    """The partition goes and comes, the next write not being done; gives the opening."""
    if rig.work:
        rig.failing[TARGET] = msg.FailureKind.RETRY
        rig.write()
        rig.failing.clear()
    rig.feed(msg.Forget((S0,), rig.epoch))
    rig.epoch += 1
    send(rig, offset, *entries)
    opening = rig.work[0]
    assert isinstance(opening, msg.OpenTarget)
    while rig.work and isinstance(rig.work[0], msg.OpenTarget):
        rig.write()
    return opening


def test_what_is_recorded_amid_a_message_names_no_version() -> None:
    """Marks that were put back from there would lack the step, and rows would come twice."""
    rig = started()
    message = (rows(1), TRUNCATE)
    send(rig, 5, *message)
    taken(rig)
    opening = again(rig, 5, *message)
    assert opening.recorded == TargetMark(None, {S0: 4})
    rig.settle()
    opening = again(rig, 6, rows(2), TRUNCATE)
    assert opening.recorded == TargetMark("v", {S0: 5})


def test_a_step_that_the_target_lost_is_done_again() -> None:
    """It was rolled back beneath us: all that is above the mark is applied, in order."""
    rig = started()
    message = (ddl("ALTER TABLE t ADD INDEX i (name)"), rows(1), TRUNCATE, rows(2))
    send(rig, 5, *message)
    taken(rig)
    rig.states[TARGET] = replace(rig.states[TARGET], steps={})
    again(rig, 5, *message)
    write = taken(rig)
    assert (write.batch.begun, write.batch.step) == (0, EntryStep(5, 2))


def test_a_message_that_was_begun_by_other_routes_is_not_gone_past() -> None:
    """What is left of it would be missing, or what is in would come twice."""
    rig = started()
    message = (rows(1), TRUNCATE, rows(2))
    send(rig, 5, *message)
    taken(rig)
    rig.start()
    rig.epoch += 1
    rig.send("t", (5, packet(rows(1), rows(2))))
    rig.settle()
    (failed,) = rig.heard(msg.PipelineFailed)
    assert "binlog:0 offset 5: lake.db.t holds the first 1 entry of" in failed.reason
    assert rig.rows[TARGET] == {(0,): "n", (1,): "n"}
