"""A sink that is away: its targets fill their own spill, others go on, nobody has to help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.figures import Figures, ProcessorFigures, TargetFigures
from changes.model.model import Mode
from changes.routes.routing import Route
from offsets.position import TopicPartition
from tests.actors.target.processor_rig import S0, ProcessorRig, canal

T, U = "lake.db.t", "other.db.u"
ROUTES = (
    Route(("db.t",), (), "lake.{database}.{table}", Mode.UPSERT, None),
    Route(("db.u",), (), "other.{database}.{table}", Mode.UPSERT, None),
)
LISTS = (Route(("db.t",), (), "lake.{database}.{table}", Mode.APPEND, None),)
S1 = TopicPartition("binlog", 1)
AWAY = msg.FailureKind.RETRY


def rig_of(folder: Path, **settings: Any) -> ProcessorRig:
    return ProcessorRig(folder, **({"away_after_s": 5.0, "routes": ROUTES} | settings))


def away(folder: Path, **settings: Any) -> ProcessorRig:
    """A target with one written message, one in a write that fails, one behind it; 6 s later."""
    rig = rig_of(folder, **settings)
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    rig.failing[T] = AWAY
    rig.send("t", (2, canal("t", 1, "b")))
    rig.tick()
    rig.write()
    rig.send("t", (3, canal("t", 2, "c")))
    for _ in range(6):
        rig.tick()
        while rig.work:
            rig.write()
    return rig


def figures(rig: ProcessorRig, target: str = T) -> TargetFigures:
    (answer,) = rig.feed(Figures())
    assert isinstance(answer, ProcessorFigures)
    return next(each for each in answer.targets if each.target == target)


def test_what_waits_for_it_is_spilled_and_counts_as_done(tmp_path: Path) -> None:
    """From the first unwritten message on; it is no quarantine, and says what it waits for."""
    rig = away(tmp_path)
    assert rig.done(T) == 3
    assert rig.listed[T].lanes == {S0: (2, 3)}
    assert rig.listed[T].away
    shown = figures(rig)
    assert (shown.phase, shown.quarantine) == ("away", None)
    assert shown.away is not None
    assert shown.away.reason.startswith("its sink has not answered for ")
    assert shown.away.reason.endswith("s: not now")
    assert (shown.away.messages, shown.away.answered) == (2, False)
    assert not rig.heard(msg.PipelineFailed)


def test_the_other_sinks_targets_are_written_as_ever(tmp_path: Path) -> None:
    """Whatever waits for the one that is away."""
    rig = away(tmp_path)
    rig.send("u", (4, canal("u", 1, "x")))
    rig.settle()
    assert rig.rows[U] == {(1,): "x"}


def test_it_goes_on_by_itself_when_the_sink_answers(tmp_path: Path) -> None:
    """The spill, then what came while that was written; then the spill is gone."""
    rig = away(tmp_path)
    del rig.failing[T]
    rig.send("t", (5, canal("t", 2, "d")))
    rig.settle()
    assert rig.rows[T] == {(1,): "b", (2,): "d"}
    assert T not in rig.listed
    assert not list(tmp_path.glob("p.spill/*.spill"))
    assert figures(rig).away is None


def test_a_write_whose_answer_was_lost_is_not_applied_twice(tmp_path: Path) -> None:
    """The marks, read before the spill is replayed, drop its part."""
    rig = rig_of(tmp_path)
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    rig.send("t", (2, canal("t", 1, "b")))
    rig.tick()
    rig.send("t", (3, canal("t", 2, "c")))
    for _ in range(6):
        rig.tick()  # the write is out, and nothing is heard of it
    assert figures(rig).phase == "away"
    rig.settle()  # it lands now
    assert rig.rows[T] == {(1,): "b", (2,): "c"}
    assert T not in rig.listed


def test_after_a_restart_it_goes_on_by_itself(tmp_path: Path) -> None:
    """The spill says that nobody has to release it."""
    rig = away(tmp_path)
    rig.start()
    rig.settle()
    assert figures(rig).away is not None
    del rig.failing[T]
    rig.settle()
    assert rig.rows[T] == {(1,): "b", (2,): "c"}
    assert T not in rig.listed


def test_a_sink_that_refuses_what_was_kept_is_a_quarantine_then(tmp_path: Path) -> None:
    """Somebody has to look, and the offset file says so: else a reload would not be asked for."""
    rig = away(tmp_path, quarantine=True)
    del rig.failing[T]
    rig.refusing[T] = "the type can't widen"
    rig.settle()
    assert figures(rig).away is None
    assert figures(rig).quarantine is not None
    assert not rig.listed[T].away


def test_a_refusal_behind_a_write_that_landed_can_be_released(tmp_path: Path) -> None:
    """The marks are beyond a part of the spill because of that write, not of another member."""
    rig = rig_of(tmp_path, quarantine=True, reread_offsets=1, routes=LISTS)
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    rig.send("t", (2, canal("t", 1, "b")), (3, canal("t", 1, "c")))
    rig.tick()
    rig.send("t", (9, canal("t", 3, "d")), source=S1)
    while T not in rig.listed:
        rig.tick()  # the write is out, and nothing is heard of it
    rig.feed(msg.Forget((S0,), rig.epoch))
    assert rig.listed[T].lanes == {S0: (2, 2)}
    rig.write()  # it lands now
    rig.refusing[T] = "the type can't widen"
    rig.send("t", (10, canal("t", 4, "e")), source=S1)
    rig.settle()
    assert figures(rig).quarantine is not None
    del rig.refusing[T]
    (answer,) = rig.feed(msg.RetryTarget(T))
    assert isinstance(answer, msg.RetryAnswer)
    assert answer.begun
    rig.settle()
    assert figures(rig).quarantine is None, figures(rig).quarantine
    assert T not in rig.listed


def test_a_lane_that_is_read_again_is_released_though_its_mark_is_beyond_its_spill(
    tmp_path: Path,
) -> None:
    """A crash came before the position was recorded: what the table holds comes again, and is
    spilled below the mark, which nobody has looked at. It was this member that wrote it."""
    rig = rig_of(tmp_path, quarantine=True, routes=LISTS)
    rig.send("t", (16, canal("t", 1, "a")), (20, canal("t", 2, "b")), source=S1)
    rig.settle()
    rig.refusing[T] = "the type can't widen"
    rig.send("t", (1, canal("t", 3, "c")))
    rig.settle()
    assert rig.listed[T].lanes == {S0: (1, 1)}
    rig.start()
    rig.send("t", (16, canal("t", 1, "a")), source=S1)
    rig.settle()
    assert rig.listed[T].lanes == {S0: (1, 1), S1: (16, 16)}
    del rig.refusing[T]
    rig.feed(msg.RetryTarget(T))
    rig.settle()
    assert T not in rig.listed, figures(rig).quarantine
    assert (figures(rig).quarantine, figures(rig).hwms) == (None, {S0: 1, S1: 20})


def test_where_a_refusal_stops_it_stops_here_too(tmp_path: Path) -> None:
    """What was kept does not make the target one that may be quarantined."""
    rig = away(tmp_path)
    del rig.failing[T]
    rig.refusing[T] = "the type can't widen"
    rig.settle()
    assert "can't widen" in rig.heard(msg.PipelineFailed)[0].reason


def test_a_sink_that_fills_the_staged_bytes_is_spilled_at_once(tmp_path: Path) -> None:
    """However soon it would answer: reading goes on for the others."""
    rig = rig_of(tmp_path, memory_bytes=400, staged_bytes=1, buffer_bytes=300, away_after_s=1e9)
    rig.send("u", (1, canal("u", 1, "x")))
    rig.send("t", (2, canal("t", 1, "a")))
    rig.settle()
    for number in range(3, 12):
        rig.send("t", (number, canal("t", number, "b")))
        rig.tick()
    assert figures(rig).phase == "away"
    assert not rig.held
    rig.settle()
    assert sorted(rig.rows[T]) == [(1,), *((number,) for number in range(3, 12))]


def test_with_one_sink_reading_waits(tmp_path: Path) -> None:
    """There is nobody who would go on."""
    rig = rig_of(tmp_path, memory_bytes=400, staged_bytes=1, buffer_bytes=300, away_after_s=None)
    rig.send("t", (2, canal("t", 1, "a")))
    rig.settle()
    for number in range(3, 12):
        rig.send("t", (number, canal("t", number, "b")))
        rig.tick()
    assert rig.held
    assert figures(rig).away is None


def test_at_the_bound_messages_wait_and_that_is_said(tmp_path: Path) -> None:
    """Nothing is dropped; once the sink is back all of it is written."""
    rig = away(tmp_path, away_spill_bytes=10)
    rig.send("t", (4, canal("t", 3, "e")))
    rig.tick()
    assert rig.done(T) == 3
    assert [entry.event for entry in rig.logs if entry.level == "error"] == ["away_spill_full"]
    del rig.failing[T]
    rig.settle()
    assert rig.rows[T] == {(1,): "b", (2,): "c", (3,): "e"}


def test_what_a_stop_drops_at_the_bound_is_not_passed_over(tmp_path: Path) -> None:
    """Messages that come later stay unwritten, too: above the gap their mark would hide it."""
    rig = rig_of(tmp_path, away_spill_bytes=10)
    rig.failing[T] = AWAY
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    assert figures(rig).phase == "away"
    rig.feed(msg.Drain(2))
    rig.send("t", (2, canal("t", 2, "b")))
    rig.tick()
    del rig.failing[T]
    rig.settle()
    rig.send("t", (3, canal("t", 3, "c")))
    rig.settle()
    assert T not in rig.rows
    assert rig.done(T) == -1


def test_the_log_is_read_again_in_pieces(tmp_path: Path) -> None:
    """Between two of them other targets have their turn; nothing counts as done before all."""
    rig = rig_of(tmp_path, reread_offsets=2)
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    rig.failing[T] = AWAY
    rig.send("t", *((number, canal("t", number, "b")) for number in range(2, 7)))
    rig.tick()
    rig.write()
    rig.send("t", (7, canal("t", 7, "c")))
    pieces: list[int] = []
    keep = rig.carry_out

    def noted(effect: object, replies: list[object]) -> object | None:
        if isinstance(effect, fx.Spill):
            pieces.append(sum(r.last - r.first + 1 for r in effect.rereads))
        return keep(effect, replies)

    rig.carry_out = noted  # type: ignore[method-assign]
    for _ in range(8):
        rig.tick()
        while rig.work:
            rig.write()
    assert pieces == [2, 2, 1]
    assert rig.listed[T].lanes == {S0: (2, 7)}
    assert rig.done(T) == 7
