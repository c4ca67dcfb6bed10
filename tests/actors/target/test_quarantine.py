"""Quarantine: what a refused target gets is spilled, counts as done, and is written later, once."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from actors.contract import messages as msg
from actors.contract.figures import Figures, ProcessorFigures
from actors.contract.writes import TargetState
from offsets.position import TopicPartition
from tests.actors.target.processor_rig import S0, ProcessorRig, canal

T = "lake.db.t"


def rig_of(folder: Path, **settings: Any) -> ProcessorRig:
    rig = ProcessorRig(folder, quarantine=True, **settings)
    rig.refusing[T] = "the type can't widen"
    return rig


def quarantined(folder: Path, **settings: Any) -> ProcessorRig:
    """A target with one written message and three spilled ones; another one beside it."""
    rig = rig_of(folder, **settings)
    del rig.refusing[T]
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    rig.refusing[T] = "the type can't widen"
    rig.send("t", (2, canal("t", 1, "b")), (3, canal("t", 2, "c")))
    rig.settle()
    rig.send("t", (5, canal("t", 1, "d")))
    rig.settle()
    return rig


def retry(rig: ProcessorRig, target: str = T) -> object:
    (answer,) = rig.feed(msg.RetryTarget(target))
    return answer


def test_a_refused_target_counts_as_done_once_it_is_spilled(tmp_path: Path) -> None:
    """From the first unwritten message on: those of the refused write are read again."""
    rig = quarantined(tmp_path)
    assert rig.done(T) == 5
    assert rig.listed[T].lanes == {S0: (2, 5)}
    assert rig.states[T].hwms == {S0: 1}
    assert not rig.heard(msg.PipelineFailed)


def test_nothing_counts_as_done_while_the_disk_is_full(tmp_path: Path) -> None:
    """Else a crash would lose it."""
    rig = rig_of(tmp_path)
    rig.disk_full = True
    rig.send("t", (2, canal("t", 1, "b")))
    rig.settle()
    assert rig.done(T) == -1
    rig.disk_full = False
    rig.settle()
    assert rig.done(T) == 2


def test_a_release_goes_on_while_the_disk_is_full(tmp_path: Path) -> None:
    """It is what gives room: what comes meanwhile waits for its end in memory, however much."""
    rig = quarantined(tmp_path, batch_bytes=1)
    rig.disk_full = True
    rig.send("t", (6, canal("t", 2, "e")), (7, canal("t", 3, "f")))
    rig.settle()
    assert rig.done(T) == 5
    del rig.refusing[T]
    retry(rig)
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "e", (3,): "f"}
    assert rig.done(T) == 7
    assert not rig.heard(msg.PipelineFailed)


def test_a_release_that_broke_off_on_a_full_disk_is_spilled_into_again(tmp_path: Path) -> None:
    """What waited for the release has room by now."""
    rig = quarantined(tmp_path, batch_bytes=1)
    rig.disk_full = True
    rig.send("t", (6, canal("t", 2, "e")))
    retry(rig)
    rig.settle()
    assert rig.done(T) == 5
    rig.disk_full = False
    rig.settle()
    assert rig.done(T) == 6


def test_a_bad_record_that_waits_for_its_store_is_done_when_it_is_spilled(tmp_path: Path) -> None:
    """It is not stored, and need not be: the release comes to it. The frontier goes on."""
    rig = rig_of(tmp_path, dead_letters=True)
    rig.send("t", (2, canal("t", 1, "b")), (3, canal("t", None)))
    rig.settle()
    assert rig.listed[T].lanes == {S0: (2, 3)}
    assert rig.done(T) == 3


def test_the_spill_is_listed_before_its_messages_count_as_done(tmp_path: Path) -> None:
    """No snapshot may pass them without naming where they are."""
    rig = rig_of(tmp_path)
    rig.send("t", (2, canal("t", 1, "b")))
    rig.settle()
    kinds = [type(m) for _, m in rig.told if isinstance(m, msg.SpillListed | msg.Written)]
    assert kinds == [msg.SpillListed, msg.Written]


def test_a_spill_that_a_crash_left_unlisted_is_listed_before_it_counts(tmp_path: Path) -> None:
    """It is durable, the offset file does not know it yet, and its messages are read again."""
    quarantined(tmp_path)
    rig = rig_of(tmp_path)
    assert rig.listed == {}
    rig.send("t", (2, canal("t", 1, "b")))
    assert rig.listed[T].lanes == {S0: (2, 5)}
    kinds = [type(m) for _, m in rig.told if isinstance(m, msg.SpillListed | msg.Written)]
    assert kinds == [msg.SpillListed, msg.Written]


def test_others_go_on(tmp_path: Path) -> None:
    """A target of the same processor is written as ever."""
    rig = quarantined(tmp_path)
    rig.send("u", (6, canal("u", 1, "x")))
    rig.settle()
    assert rig.rows["lake.db.u"] == {(1,): "x"}


def test_a_release_writes_the_spill_and_then_what_came_meanwhile(tmp_path: Path) -> None:
    """In order, and then the spill is gone."""
    rig = quarantined(tmp_path)
    del rig.refusing[T]
    answer = retry(rig)
    assert isinstance(answer, msg.RetryAnswer)
    assert answer.begun
    rig.send("t", (7, canal("t", 2, "e")))
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "e"}
    assert rig.states[T].hwms == {S0: 7}
    assert T not in rig.listed
    assert not list(tmp_path.glob("p.spill/*.spill"))


def test_no_release_begins_beside_an_opening_of_before(tmp_path: Path) -> None:
    """Its late answer would be taken for the release's own."""
    rig = quarantined(tmp_path)
    del rig.refusing[T]
    assert retry(rig) == msg.RetryAnswer(True, ANY)
    rig.feed(msg.Forget((S0,), 1))
    not_yet = retry(rig)
    assert isinstance(not_yet, msg.RetryAnswer)
    assert not not_yet.begun
    assert "an opening of it has not ended yet" in not_yet.line
    rig.settle()
    assert retry(rig) == msg.RetryAnswer(True, ANY)
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "c"}


def test_it_is_still_in_quarantine_after_a_restart(tmp_path: Path) -> None:
    """What is read again is dropped where the spill has it, and acknowledged; the rest follows."""
    rig = quarantined(tmp_path)
    rig.start()
    rig.send("t", (3, canal("t", 2, "c")), (5, canal("t", 1, "d")))
    assert rig.done(T) == 5
    rig.send("t", (5, canal("t", 1, "d")), (8, canal("t", 3, "f")))
    rig.settle()
    assert rig.listed[T].lanes == {S0: (2, 8)}
    del rig.refusing[T]
    retry(rig)
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "c", (3,): "f"}


@pytest.mark.parametrize("steps", range(6))
def test_a_crash_in_the_middle_of_a_release_loses_and_doubles_nothing(
    tmp_path: Path, steps: int
) -> None:
    """Whenever it is: the marks tell how far the replay came, and it begins again."""
    rig = quarantined(tmp_path, batch_bytes=150)
    del rig.refusing[T]
    retry(rig)
    for _ in range(steps):
        rig.tick()
        if rig.work:
            rig.write()
    rig.start()
    retry(rig)
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "c"}
    assert rig.states[T].hwms == {S0: 5}


def test_a_release_that_is_refused_again_leaves_the_spill_whole(tmp_path: Path) -> None:
    """The cause is not gone: back into quarantine, with the reason."""
    rig = quarantined(tmp_path)
    retry(rig)
    rig.settle()
    assert rig.listed[T].lanes == {S0: (2, 5)}
    del rig.refusing[T]
    retry(rig)
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "c"}


def test_a_revoke_during_a_release_begins_it_anew(tmp_path: Path) -> None:
    """Messages of the spill that were dropped with the partition must not be taken as written."""
    rig = quarantined(tmp_path, batch_bytes=150)
    del rig.refusing[T]
    retry(rig)
    rig.write()
    rig.tick()
    rig.feed(msg.Forget((S0,), 1))
    rig.settle()
    retry(rig)
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "c"}
    assert not list(tmp_path.glob("p.spill/*.spill"))


def replaying(folder: Path) -> ProcessorRig:
    """A release whose first write waits to be let through."""
    rig = quarantined(folder, batch_bytes=150)
    del rig.refusing[T]
    retry(rig)
    rig.write()
    rig.tick()
    assert isinstance(rig.work[0], msg.WriteBatch)
    return rig


@pytest.mark.parametrize("kind", [msg.FailureKind.RETRY, msg.FailureKind.RACED])
def test_a_write_of_a_release_is_tried_again(tmp_path: Path, kind: msg.FailureKind) -> None:
    """Its messages are of no assignment: given up like those of one that ended, they would be
    passed over, and the spill let go."""
    rig = replaying(tmp_path)
    rig.failing[T] = kind
    rig.write()
    del rig.failing[T]
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "c"}
    assert T not in rig.listed


def test_a_fenced_write_of_a_release_leaves_the_spill_whole(tmp_path: Path) -> None:
    """A former owner's write may have landed: released again, by the marks as they are."""
    rig = replaying(tmp_path)
    rig.failing[T] = msg.FailureKind.STRAGGLER
    rig.write()
    del rig.failing[T]
    rig.settle()
    assert rig.listed[T].lanes == {S0: (2, 5)}
    assert not rig.heard(msg.PipelineFailed)
    retry(rig)
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "c"}


def test_a_release_can_begin_anew_though_a_write_of_it_waited_for_its_next_attempt(
    tmp_path: Path,
) -> None:
    """Nobody would end that write: it is let go with the partitions."""
    rig = replaying(tmp_path)
    rig.failing[T] = msg.FailureKind.RETRY
    rig.write()
    del rig.failing[T]
    rig.feed(msg.Forget((S0,), 1))
    answer = retry(rig)
    assert isinstance(answer, msg.RetryAnswer)
    assert answer.begun
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "c"}


def test_a_release_goes_on_when_a_partition_goes_that_it_does_not_hold(tmp_path: Path) -> None:
    """Members come and go: nothing of the spill was dropped with it."""
    rig = replaying(tmp_path)
    rig.feed(msg.Forget((TopicPartition("binlog", 1),), 1))
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "c"}
    assert T not in rig.listed


def test_a_revoke_waits_for_the_write_of_a_release(tmp_path: Path) -> None:
    """The next owner must find the marks as they will be."""
    rig = replaying(tmp_path)
    rig.feed(msg.Forget((S0,), 1))
    rig.feed(msg.Settle((S0,), 7))
    assert not rig.heard(msg.Settled)
    rig.write()
    assert [said.ticket for said in rig.heard(msg.Settled)] == [7]


def test_a_spill_that_another_member_has_passed_is_not_replayed(tmp_path: Path) -> None:
    """Its changes are older than what the target shows: they would bring old rows back."""
    rig = quarantined(tmp_path)
    del rig.refusing[T]
    held = rig.states[T]
    rig.states[T] = TargetState(held.schema, held.mode, {S0: 9}, "v")
    retry(rig)
    rig.settle()
    assert rig.listed[T].lanes == {S0: (2, 5)}
    assert rig.rows[T] == {(1,): "a"}


def test_a_full_spill_lets_nothing_pass(tmp_path: Path) -> None:
    """What is beyond the bound waits, and holds the frontier."""
    rig = quarantined(tmp_path, quarantine_bytes=900)
    rig.send("t", (9, canal("t", 9, "z")))
    rig.settle()
    assert rig.done(T) == 5


def test_a_stop_does_not_wait_for_room_in_a_full_spill(tmp_path: Path) -> None:
    """What has no room held the memory, so what came behind it was not taken, until the drain's
    time was over; nothing was named. It is read again: the frontier is below it."""
    rig = quarantined(tmp_path, quarantine_bytes=900, memory_bytes=100)
    rig.send("t", (9, canal("t", 9, "z")))
    rig.settle()
    assert rig.held
    rig.feed(msg.Drain(5))
    assert not rig.held
    assert not rig.heard(msg.Drained)
    rig.send("t", (10, canal("t", 10, "z")))  # waited in the mailbox
    assert rig.heard(msg.Drained)
    assert rig.done(T) == 5
    (left,) = [log.fields for log in rig.logs if log.event == "left_for_the_next_start"]
    assert (left["target"], left["messages"]) == (T, 1)


def test_a_stop_does_not_wait_for_a_disk_that_is_full(tmp_path: Path) -> None:
    """What can't be spilled is read again; the drain waited for it until its time was over."""
    rig = quarantined(tmp_path)
    rig.disk_full = True
    rig.send("t", (9, canal("t", 9, "z")))
    rig.settle()
    rig.feed(msg.Drain(4))
    rig.settle()
    assert rig.heard(msg.Drained)
    assert rig.done(T) == 5
    (left,) = [log.fields for log in rig.logs if log.event == "left_for_the_next_start"]
    assert (left["target"], left["messages"]) == (T, 1)


def test_a_stop_does_not_wait_for_what_must_be_read_again_for_a_full_disk(tmp_path: Path) -> None:
    """Messages of a write that was refused are in memory no more."""
    rig = rig_of(tmp_path)
    rig.disk_full = True
    rig.send("t", (2, canal("t", 1, "b")))
    rig.settle()
    rig.feed(msg.Drain(1))
    rig.settle()
    assert rig.heard(msg.Drained)
    assert rig.done(T) == -1


def test_after_a_restart_nobody_knows_how_old_a_quarantine_is(tmp_path: Path) -> None:
    """Its age was the machine's uptime, the clock's own beginning."""
    rig = quarantined(tmp_path)
    rig.start()
    rig.now = 86_400.0
    (reply,) = rig.feed(Figures())
    assert isinstance(reply, ProcessorFigures)
    (figures,) = reply.targets
    assert figures.error is not None
    assert (figures.error.age_s, figures.error.lasting) == (None, True)


def test_a_target_is_named_once(tmp_path: Path) -> None:
    """The sink names it already, and so does who shows the reason."""
    rig = quarantined(tmp_path, quarantine_bytes=900, quarantine_full_stops=True)
    rig.refusing["lake.db.u"] = "lake.db.u: the type can't widen"
    rig.send("u", (8, canal("u", 1, "a")))
    rig.settle()
    reasons = [log.fields["reason"] for log in rig.logs if log.event == "quarantined"]
    assert [str(reason).count("lake.db.") for reason in reasons] == [1, 1]
    rig.send("t", (9, canal("t", 9, "z")))
    rig.settle()
    assert rig.heard(msg.PipelineFailed)[0].reason.count(T) == 1


def test_a_full_spill_stops_the_pipeline_where_that_is_configured(tmp_path: Path) -> None:
    """The culprit is named."""
    rig = quarantined(tmp_path, quarantine_bytes=900, quarantine_full_stops=True)
    rig.send("t", (9, canal("t", 9, "z")))
    rig.settle()
    assert T in rig.heard(msg.PipelineFailed)[0].reason


def test_a_drain_ends_while_a_target_is_in_quarantine(tmp_path: Path) -> None:
    """What waits for the spill is spilled first."""
    rig = quarantined(tmp_path)
    rig.send("t", (9, canal("t", 9, "z")))
    rig.feed(msg.Drain(4))
    assert rig.heard(msg.Drained)
    assert rig.done(T) == 9


def test_a_refused_statement_is_spilled_with_what_follows(tmp_path: Path) -> None:
    """The target goes into quarantine before it; what came before it is written."""
    rig = rig_of(tmp_path)
    del rig.refusing[T]
    drop = canal("t", 1, isDdl=True, type="ALTER", sql="ALTER TABLE t DROP PRIMARY KEY", data=None)
    rig.send("t", (1, canal("t", 1, "a")))
    rig.send("t", (2, drop), ddl=True)
    rig.send("t", (3, canal("t", 3, "c")))
    rig.settle()
    assert rig.rows[T] == {(1,): "a"}
    assert rig.listed[T].lanes == {S0: (2, 3)}


def test_without_the_policy_a_refused_target_stops_its_pipeline(tmp_path: Path) -> None:
    """The default."""
    rig = ProcessorRig(tmp_path)
    rig.refusing[T] = "no"
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    assert rig.heard(msg.PipelineFailed)
    assert rig.done(T) == -1


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("lake.db.unknown", None),
        ("lake.db.u", msg.RetryAnswer(False, "lake.db.u is not in quarantine")),
    ],
)
def test_a_wrong_release_is_answered(tmp_path: Path, target: str, answer: object) -> None:
    """Unknown, or not in quarantine."""
    rig = quarantined(tmp_path)
    rig.send("u", (6, canal("u", 1, "x")))
    assert retry(rig, target) == answer


def half_ended(folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> ProcessorRig:
    """A release whose spill is written and whose folder can't be synced, for now."""
    rig = quarantined(folder, **settings)
    del rig.refusing[T]

    real = os.fsync

    def fails(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError("no space left")
        real(handle)

    monkeypatch.setattr(os, "fsync", fails)
    retry(rig)
    rig.settle()
    assert T in rig.listed
    return rig


def test_nothing_goes_into_a_spill_that_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is asked for again, and would take along what came meanwhile."""
    with monkeypatch.context() as patch:
        rig = half_ended(tmp_path, patch, batch_bytes=150)
        rig.send("t", (7, canal("t", 3, "e")), (8, canal("t", 4, "f")))
        rig.settle()
    rig.tick(60)
    rig.settle()
    assert rig.rows[T] == {(1,): "d", (2,): "c", (3,): "e", (4,): "f"}
    assert rig.done(T) == 8


def test_a_revoke_while_a_spill_is_let_go_does_not_begin_the_release_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is written, and its file may be gone."""
    with monkeypatch.context() as patch:
        rig = half_ended(tmp_path, patch)
        rig.feed(msg.Forget((S0,), 1))
    rig.tick(60)
    assert T not in rig.listed
    assert "not in quarantine" in str(retry(rig))
