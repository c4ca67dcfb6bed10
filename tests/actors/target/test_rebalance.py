"""What a processor does when partitions go to another member, and when they come back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.raw_messages import Messages
from actors.contract.writes import TargetState
from actors.runtime.effect_handlers import Settling
from actors.runtime.mailbox import Tick
from actors.target.attempts import RACES_AT_ONCE
from actors.target.rule import ProcessorLogic
from changes.formats import FORMATS
from changes.model.model import Column, FormatOptions, Mode, TableSchema, TargetName
from changes.routes.routing import Route, Router, TargetRoute
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from tests.actors.settings import settings_of

A, B = TopicPartition("binlog", 0), TopicPartition("binlog", 1)
ME = Address("p", "processor", 0)
TARGET = TargetName("lake", "s", "log")
ROUTE = TargetRoute(TARGET, Mode.APPEND, None)
LOG = Watermarks(0, 1000)


class Driven:
    """A processor whose disk takes everything; what it tells is kept, the sink's answers are
    the test's."""

    def __init__(self, target: str = "lake.s.log", **more: Any) -> None:
        routes = [Route(("*",), (), target, Mode.APPEND, None)]
        settings = settings_of(batch_messages=1, retry_base_s=1.0, group="g@cluster", **more)
        self.logic = ProcessorLogic(
            ME, FORMATS["canal-json"](FormatOptions()), Router(routes), settings, "run", lambda: 1.0
        )
        self.told: list[fx.Tell] = []
        self.removed: list[str] = []
        self.staged: list[fx.Stage] = []
        self.files = 0
        self.disk_full = False
        self.now = 0.0

    def hear(self, message: object) -> list[object]:
        """Feed a message; returns what was told."""
        before = len(self.told)
        waiting = [message]
        while waiting:
            for effect in self.logic.handle(waiting.pop(0), self.now):
                match effect:
                    case fx.Tell():
                        self.told.append(effect)
                    case fx.RemoveStaged(paths):
                        self.removed += paths
                    case fx.Stage() if self.disk_full:
                        waiting.append(msg.StageFailed(TARGET, "disk full"))
                    case fx.Stage():
                        self.staged.append(effect)
                        waiting.append(self._staged())
                    case _:
                        pass
        return [tell.message for tell in self.told[before:]]

    def _staged(self) -> msg.Staged:
        self.files += 1
        schema = TableSchema((Column("id", pa.int32()),), ())
        return msg.Staged(TARGET, f"f{self.files}", 1, 1, 1, schema=schema, mode=Mode.APPEND)

    def data(self, source: TopicPartition, epoch: int, *offsets: int) -> list[object]:
        share = msg.Share(ROUTE, Messages(list(offsets), [b"{}"] * len(offsets), 100))
        return self.hear(msg.RecordBatch(epoch, source, (share,), 100, LOG))

    def opened(self, **hwms: int) -> list[object]:
        marks = {{"A": A, "B": B}[lane]: mark for lane, mark in hwms.items()}
        return self.hear(msg.Opened(TARGET, TargetState(hwms=marks, version="1")))

    def failed(self, kind: msg.FailureKind) -> list[object]:
        return self.hear(msg.Failed(TARGET, kind, "the lane stands at 9, expected -1"))

    def written(self, write: msg.WriteBatch) -> list[object]:
        marks = {source: span.through for source, span in write.batch.lanes.items()}
        return self.hear(
            msg.Written(TARGET, write.epochs, write.through, TargetState(hwms=marks), 1)
        )


def only(kind: type[Any], told: list[object]) -> Any:
    (found,) = (message for message in told if isinstance(message, kind))
    return found


def settled(told: list[object]) -> list[int]:
    return [message.ticket for message in told if isinstance(message, msg.Settled)]


def writing(**more: Any) -> tuple[Driven, msg.WriteBatch]:
    """A processor with a write of lane A under way."""
    driven = Driven()
    driven.data(A, 1, 5)
    return driven, only(msg.WriteBatch, driven.opened(**more))


def writing_both() -> tuple[Driven, msg.WriteBatch]:
    """A processor with a write of both lanes under way, and more of B behind it."""
    driven = Driven()
    driven.data(A, 1, 5)
    driven.data(B, 2, 7)
    driven.opened()
    write = only(msg.WriteBatch, driven.opened())  # asked again: B came while it was being opened
    assert set(write.epochs) == {A, B}
    driven.data(B, 2, 8)
    return driven, write


def forget(driven: Driven, *sources: TopicPartition, epoch: int = 2) -> list[object]:
    return driven.hear(msg.Forget(sources, epoch))


def test_a_revoke_waits_for_nobody_where_nothing_is_written() -> None:
    """What only waits is dropped and read again by whoever gets the partition."""
    driven = Driven()
    driven.data(A, 1, 5)
    forget(driven, A)
    assert settled(driven.hear(msg.Settle((A,), 3))) == [3]


def test_a_revoke_waits_for_the_write_under_way() -> None:
    """Its end is what the next owner's marks must show."""
    driven, write = writing()
    forget(driven, A)
    assert settled(driven.hear(msg.Settle((A,), 3))) == []
    assert settled(driven.written(write)) == [3]


def test_a_revoke_does_not_wait_for_writes_of_other_partitions() -> None:
    """They may take as long as they like."""
    driven, _ = writing()
    forget(driven, B)
    assert settled(driven.hear(msg.Settle((B,), 3))) == [3]


def test_a_failed_write_ends_the_waiting_and_is_not_tried_again() -> None:
    """It would land under the next owner's hands."""
    driven, write = writing()
    forget(driven, A)
    driven.hear(msg.Settle((A,), 3))
    told = driven.failed(msg.FailureKind.RETRY)
    assert settled(told) == [3]
    assert driven.removed == [write.batch.path]
    driven.now = 100.0
    assert not [m for m in driven.hear(Tick()) if isinstance(m, msg.WriteBatch)]


def test_a_write_between_two_attempts_is_given_up_at_the_revoke() -> None:
    """Nothing of it is under way, so nothing is waited for."""
    driven, write = writing()
    driven.failed(msg.FailureKind.RETRY)
    forget(driven, A)
    assert driven.removed == [write.batch.path]
    assert settled(driven.hear(msg.Settle((A,), 3))) == [3]


def test_the_lanes_that_stay_are_read_again_when_their_batch_is_given_up() -> None:
    """Their messages were nowhere but in that batch; what came behind them has a gap before it."""
    driven, _ = writing_both()
    forget(driven, A)
    told = driven.failed(msg.FailureKind.RETRY)
    assert only(msg.Reread, told).epochs == {B: 2}
    driven.data(B, 2, 9)  # still of the old reading
    assert not [m for m in driven.opened() if isinstance(m, msg.WriteBatch)]
    driven.data(B, 3, 7, 8, 9)
    driven.opened()
    (write,) = [t.message for t in driven.told[-1:] if isinstance(t.message, msg.WriteBatch)]
    assert write.batch.lanes[B].through == 9


def test_a_fenced_write_of_a_lane_that_is_gone_stops_nobody() -> None:
    """The next owner was faster: dropped, and the marks are read again when something comes."""
    driven, _ = writing()
    forget(driven, A)
    told = driven.failed(msg.FailureKind.FENCED)
    assert told == [msg.OpenTarget(TARGET, ME)]


def test_a_write_fenced_by_another_group_names_both_and_stops() -> None:
    """Nobody outside the group has any business there, be it before this owner's first write."""
    driven, _ = writing()
    reason = only(msg.PipelineFailed, driven.failed(msg.FailureKind.FENCED)).reason
    for part in ("stands at 9, expected -1", f"{A} offsets 0..5", "another writer", "binlogd run"):
        assert part in reason


def test_stragglers_of_the_own_group_are_forgiven_however_many_they_are() -> None:
    """They land after this owner's look at the marks: from a member that was stopped for a while
    and writes what it holds, not knowing that its partition has gone."""
    driven, _ = writing()
    for count in range(1, 30):
        told = driven.failed(msg.FailureKind.STRAGGLER)
        assert only(msg.Reread, told).epochs == {A: count}
        assert only(msg.OpenTarget, told)
        driven.opened(A=10 * count)
        driven.data(A, count + 1, 5, 10 * count + 1)
        write = only(msg.WriteBatch, driven.opened(A=10 * count))
        assert write.batch.lanes[A] == (10 * count, 10 * count + 1)


def test_a_straggler_is_forgiven_in_a_lane_that_was_written_under_its_assignment() -> None:
    """This owner wrote first, and the former one, who looked at the marks again, behind it."""
    driven, write = writing()
    driven.written(write)
    driven.data(A, 1, 6)
    told = driven.failed(msg.FailureKind.STRAGGLER)
    assert only(msg.Reread, told).epochs == {A: 1}
    assert not [m for m in told if isinstance(m, msg.PipelineFailed)]


def test_a_write_carries_its_group() -> None:
    """By it the target tells who moved a mark."""
    _, write = writing()
    assert write.batch.group == "g@cluster"


def test_a_mark_that_moved_back_is_no_straggler() -> None:
    """Reading on from the frontier would leave out what was taken back. A way out is named."""
    driven, _ = writing(A=4)
    driven.failed(msg.FailureKind.STRAGGLER)
    reason = only(msg.PipelineFailed, driven.opened(A=2)).reason
    assert "rolled back" in reason
    assert f"`binlogd tables rebuild {TARGET}`" in reason


def test_marks_are_read_again_for_a_partition_that_comes() -> None:
    """Another member has moved them since the target was opened here."""
    driven, write = writing()
    driven.written(write)
    assert driven.data(B, 2, 7) == [msg.OpenTarget(TARGET, ME)]
    assert only(msg.WriteBatch, driven.opened(A=5, B=6)).batch.lanes[B] == (6, 7)


def test_decoders_learn_of_columns_that_another_member_has_added() -> None:
    """A row may lack one of them, and then has no value of it."""
    driven, write = writing()
    driven.written(write)
    forget(driven, A)
    driven.data(A, 3, 6)
    state = TargetState(TableSchema((Column("new", pa.string()),), ()), hwms={A: 5}, version="1")
    driven.hear(msg.Opened(TARGET, state))
    assert [stage.stored for stage in driven.staged] == [None, state.schema]
    assert driven.staged[0].generation < driven.staged[1].generation


def test_files_that_wait_do_not_keep_decoders_from_such_columns() -> None:
    """Of another lane, by the former decoder: they are written first, and nothing is staged
    behind that write; then it is told."""
    driven = Driven(buffer_bytes=100)
    driven.data(B, 2, 7)
    write = only(msg.WriteBatch, driven.opened())
    driven.data(B, 2, 8)
    driven.data(A, 3, 6)
    assert [bool(stage.lanes) for stage in driven.staged] == [True, True]
    driven.written(write)
    schema = TableSchema((Column("new", pa.string()),), ())
    state = TargetState(schema, hwms={A: 5, B: 7}, version="1")
    write = only(msg.WriteBatch, driven.hear(msg.Opened(TARGET, state)))
    assert driven.staged[-1].earlier_files == ("f2",)
    driven.data(B, 2, 9)
    driven.hear(Tick())
    assert {stage.generation for stage in driven.staged} == {0}
    driven.hear(msg.Written(TARGET, write.epochs, write.through, replace(state, hwms={A: 6, B: 8})))
    last = driven.staged[-1]
    assert (last.generation, last.stored, last.earlier_files) == (1, schema, ())


def test_marks_are_read_after_the_old_write_has_ended() -> None:
    """Revoked and assigned again in the middle of its write, which outlived the waiting."""
    driven, write = writing()
    forget(driven, A)
    assert driven.data(A, 3, 5, 6) == []
    assert driven.written(write) == [msg.OpenTarget(TARGET, ME)]
    assert only(msg.WriteBatch, driven.opened(A=5)).batch.lanes[A] == (5, 6)


def test_a_failed_old_write_gives_way_to_what_was_read_again() -> None:
    """Given up, then the marks, then the same messages under the new assignment."""
    driven, _ = writing()
    forget(driven, A)
    driven.data(A, 3, 5, 6)
    told = driven.failed(msg.FailureKind.RETRY)
    assert told == [msg.OpenTarget(TARGET, ME)]
    assert only(msg.WriteBatch, driven.opened()).batch.lanes[A] == (-1, 6)


def test_a_batch_that_could_not_be_staged_goes_on_with_the_lanes_that_stay() -> None:
    """The disk was full; of what was revoked nothing is written any more."""
    driven = Driven()
    driven.disk_full = True
    driven.data(A, 1, 5)
    driven.data(B, 2, 7)
    driven.opened()
    driven.opened()
    forget(driven, A)
    driven.disk_full, driven.now = False, 100.0
    assert set(only(msg.WriteBatch, driven.hear(Tick())).epochs) == {B}


def renaming(driven: Driven) -> list[object]:
    """A statement in lane A by which the target's name gets another table."""
    body = {"database": "s", "table": "log", "type": "RENAME", "isDdl": True}
    sql = "RENAME TABLE s.log TO s.old, s.new TO s.log"
    value = json.dumps({**body, "sql": sql}).encode()
    share = msg.Share(ROUTE, Messages([5], [value], len(value)), ddl=True)
    return driven.hear(msg.RecordBatch(1, A, (share,), 100, LOG))


def test_marks_are_read_again_when_the_name_has_another_table() -> None:
    """Another member's lane stands in that table where it stood there, not where it did here."""
    driven = Driven("lake.{database}.{table}")
    renaming(driven)
    write = only(msg.WriteBatch, driven.opened(A=4, B=9))
    assert driven.written(write) == [msg.OpenTarget(TARGET, ME)]
    driven.opened(A=5, B=2)
    driven.data(B, 1, 3)
    assert only(msg.WriteBatch, driven.opened(A=5, B=2)).batch.lanes == {B: (2, 3)}


def staged_behind_a_write() -> Driven:
    """A processor that has messages 6 and 7 of lane A staged behind the write of 5, and B to come:
    A has gone to another member meanwhile, without a word of it."""
    driven = Driven(buffer_bytes=1)
    driven.data(A, 1, 5)
    write = only(msg.WriteBatch, driven.opened())
    driven.data(A, 1, 6, 7)
    assert driven.files == 2
    driven.data(B, 2, 3)
    assert driven.written(write) == [msg.OpenTarget(TARGET, ME)]
    return driven


def test_what_is_staged_is_fenced_by_a_mark_that_came_past_it() -> None:
    """The look that B needs shows where A's owner has come to: not where these rows belong."""
    driven = staged_behind_a_write()
    late = only(msg.WriteBatch, driven.opened(A=6))
    assert late.batch.lanes == {A: (5, 7), B: (-1, 3)}
    told = driven.failed(msg.FailureKind.STRAGGLER)
    assert only(msg.Reread, told).epochs == {A: 1, B: 2}
    assert driven.removed == ["f3"]
    driven.data(B, 3, 3)
    driven.opened(A=9)
    assert only(msg.WriteBatch, driven.opened(A=9)).batch.lanes == {B: (-1, 3)}


def test_what_is_staged_goes_on_from_another_tables_mark() -> None:
    """Which is below it: nothing of it is there."""
    driven = Driven("lake.{database}.{table}", buffer_bytes=1)
    driven.data(B, 1, 9)
    driven.written(only(msg.WriteBatch, driven.opened(A=4)))
    renaming(driven)
    write = only(msg.WriteBatch, driven.opened(A=4, B=9))
    driven.data(B, 1, 10, 11)
    assert driven.written(write) == [msg.OpenTarget(TARGET, ME)]
    assert only(msg.WriteBatch, driven.opened(A=5, B=2)).batch.lanes == {B: (2, 11)}


def test_a_lost_race_is_run_again_at_once() -> None:
    """Members that share a target meet at its publish; the sink is well."""
    driven, write = writing()
    for _ in range(RACES_AT_ONCE):
        driven.failed(msg.FailureKind.RACED)
        driven.now += 0.5
        assert only(msg.WriteBatch, driven.hear(Tick())) == write
    driven.failed(msg.FailureKind.RACED)
    driven.now += 0.5
    assert driven.hear(Tick()) == []


def test_word_of_an_earlier_revoke_does_not_end_a_later_ones_waiting() -> None:
    """The first one's waiting was given up; its processor spoke too late."""
    settling = Settling()
    settling.tell(msg.Settled(ME, 1))
    assert settling.wait(2, {ME}, until=0.0) == {ME}
    settling.tell(msg.Settled(ME, 2))
    assert settling.wait(2, {ME}, until=0.0) == set()
