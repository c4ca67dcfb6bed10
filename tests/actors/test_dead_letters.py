"""Dead letters: nothing passes a bad record before it is stored, and what follows goes on."""

from __future__ import annotations

from typing import Any

import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import DeadLetterFigures, Figures
from actors.dead_letters import DeadLetterLogic, DeadLetterSettings
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from actors.runtime.mailbox import Tick
from changes.formats import FORMATS
from changes.model.model import FormatOptions, TargetName
from changes.routes.routing import Router
from offsets.recovery import Watermarks
from tests.actors.target.processor_rig import COMMITTER, LETTERS, ROUTES, S0, ProcessorRig, canal

GOOD, BAD = canal("t", 1, "a"), canal("t", None, "x")


def bounds(per_hour: int = 1000, retry_for_s: float = 60.0) -> DeadLetterSettings:
    return DeadLetterSettings(per_hour, retry_for_s)


def stored(letter: msg.DeadLetter) -> msg.DeadLettered:
    return msg.DeadLettered(letter.source, letter.epoch, letter.offset, letter.target)


def the_letter(rig: ProcessorRig) -> msg.DeadLetter:
    (letter,) = rig.heard(msg.DeadLetter)
    assert isinstance(letter, msg.DeadLetter)
    return letter


def test_no_mark_passes_a_bad_record_that_is_not_stored_yet() -> None:
    """Else a crash would drop it as a replay: neither applied nor stored."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, GOOD), (2, BAD), (3, canal("t", 3, "c")))
    rig.settle()
    assert rig.states["lake.db.t"].hwms == {S0: 1}
    assert rig.done("lake.db.t") == 1
    assert the_letter(rig).offset == 2


def test_what_follows_a_stored_record_goes_on_in_order() -> None:
    """The mark moves past it, with what came behind."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, GOOD), (2, BAD), (3, canal("t", 1, "b")), (4, canal("t", 4, "d")))
    rig.settle()
    rig.feed(stored(the_letter(rig)))
    rig.settle()
    assert rig.rows["lake.db.t"] == {(1,): "b", (4,): "d"}
    assert rig.done("lake.db.t") == 4


def test_a_bad_record_at_the_end_is_done_when_it_is_stored() -> None:
    """Without a write of its own: it must not hold the frontier until the next change."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, GOOD), (2, BAD))
    rig.settle()
    rig.feed(stored(the_letter(rig)))
    rig.settle()
    assert rig.done("lake.db.t") == 2


def test_several_bad_records_in_a_row_become_letters_one_by_one() -> None:
    """Each waits for the one before."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, BAD), (2, BAD), (3, GOOD))
    rig.settle()
    for count in (1, 2):
        letters = rig.heard(msg.DeadLetter)
        assert len(letters) == count
        rig.feed(stored(letters[-1]))
        rig.settle()
    assert rig.rows["lake.db.t"] == {(1,): "a"}
    assert rig.done("lake.db.t") == 3


def test_a_letter_of_a_partition_that_went_away_changes_nothing() -> None:
    """The record is read again, by whoever has the partition, and stored again."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, GOOD), (2, BAD))
    rig.settle()
    letter = the_letter(rig)
    rig.feed(msg.Forget((S0,), 1))
    rig.feed(stored(letter))
    rig.settle()
    assert rig.done("lake.db.t") == 1


@pytest.mark.parametrize("stored_first", [True, False])
def test_a_letter_behind_a_write_that_is_given_up_covers_nothing(stored_first: bool) -> None:
    """What came before the record is read again, so its lane stands before that."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, GOOD), (2, BAD))
    rig.tick()
    rig.write()
    rig.tick()
    letter = the_letter(rig)
    if stored_first:
        rig.feed(stored(letter))
    rig.failing["lake.db.t"] = msg.FailureKind.STRAGGLER
    rig.write()
    rig.failing.clear()
    assert rig.heard(msg.Reread)
    if not stored_first:
        rig.feed(stored(letter))
    rig.settle()
    assert rig.done("lake.db.t") == -1
    rig.feed(msg.Forget((S0,), 1))
    rig.epoch = 2
    rig.send("t", (1, GOOD), (2, BAD), (3, canal("t", 3, "c")))
    rig.settle()
    rig.feed(stored(rig.heard(msg.DeadLetter)[-1]))
    rig.settle()
    assert rig.rows["lake.db.t"] == {(1,): "a", (3,): "c"}
    assert rig.done("lake.db.t") == 3


def test_without_the_policy_a_bad_record_stops_its_pipeline() -> None:
    """The default: nothing is ever passed over in silence."""
    rig = ProcessorRig()
    rig.send("t", (1, GOOD), (2, BAD), (3, GOOD))
    rig.settle()
    assert rig.rows["lake.db.t"] == {(1,): "a"}
    assert len(rig.heard(msg.PipelineFailed)) == 1


def test_what_came_before_a_refused_letter_is_still_written() -> None:
    """Its write is under way when the refusal comes: then the target stops."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, GOOD), (2, BAD), (3, GOOD))
    rig.tick()
    rig.write()
    rig.tick()
    letter = the_letter(rig)
    assert letter.target is not None
    rig.feed(msg.DeadLetterRefused(letter.target, "the store fails"))
    assert not rig.heard(msg.PipelineFailed)
    rig.settle()
    assert rig.rows["lake.db.t"] == {(1,): "a"}
    assert rig.done("lake.db.t") == 1
    assert rig.heard(msg.PipelineFailed)[0].reason == "the store fails"


def test_a_refused_letter_stops_its_target_before_the_record() -> None:
    """There were too many: the record stays open."""
    rig = ProcessorRig(dead_letters=True)
    rig.send("t", (1, GOOD), (2, BAD), (3, GOOD))
    rig.settle()
    letter = the_letter(rig)
    assert letter.target is not None
    rig.feed(msg.DeadLetterRefused(letter.target, "too many"))
    rig.settle()
    assert rig.done("lake.db.t") == 1
    assert rig.heard(msg.PipelineFailed)[0].reason == "too many"


# --- the fetcher


def fetcher(dead_letters: bool) -> FetcherLogic:
    format_ = FORMATS["canal-json"](FormatOptions())
    logic = FetcherLogic(
        "p", format_, Router(ROUTES), 1, FetcherSettings(dead_letters=dead_letters)
    )
    logic.handle(msg.Assigned({S0: 0}, {S0: Watermarks(0, 9)}), 0.0)
    return logic


def fetched(*values: bytes | None) -> msg.Polled:
    offsets = list(range(len(values)))
    return msg.Polled((msg.Fetched(S0, offsets, list(values), len(values)),))


def test_a_message_without_a_table_is_pending_in_a_lane_of_its_own() -> None:
    """Its lane holds the frontier until it is stored; what follows is sent on."""
    out = fetcher(True).handle(fetched(GOOD, b"garbage", GOOD), 0.0)
    lanes = [
        effect.message.lanes
        for effect in out
        if isinstance(effect, fx.Tell) and isinstance(effect.message, msg.Dispatched)
    ]
    assert lanes == [
        {"lake.db.t": (0, 0)},
        {msg.DEAD_LETTERS: (1, 1)},
        {"lake.db.t": (2, 2)},
    ]
    letters: list[Any] = [e.message for e in out if isinstance(e, fx.Tell) and e.to == LETTERS]
    assert [(letter.offset, letter.value) for letter in letters] == [(1, b"garbage")]


def test_a_batch_of_nothing_but_garbage_is_gone_through() -> None:
    """However long it is: one after the other, to the last."""
    out = fetcher(True).handle(fetched(*[b"garbage"] * 3000), 0.0)
    assert sum(isinstance(e, fx.Tell) and e.to == LETTERS for e in out) == 3000


@pytest.mark.parametrize("dead_letters", [True, False])
def test_a_dropped_database_stops_under_either_policy(dead_letters: bool) -> None:
    """The statement is no bad record: passing it over would leave the tables as they were."""
    drop = canal("", 1, isDdl=True, type="QUERY", sql="DROP DATABASE db", data=None)
    out = fetcher(dead_letters).handle(fetched(drop), 0.0)
    assert any(isinstance(e, fx.Tell) and isinstance(e.message, msg.PipelineFailed) for e in out)


# --- the store's actor


def letter(offset: int) -> msg.DeadLetter:
    return msg.DeadLetter(S0, 1, offset, b"x", "bad")


def test_letters_are_stored_one_after_another_and_told() -> None:
    """The committer hears of those without a target."""
    logic = DeadLetterLogic("p", bounds())
    assert logic.handle(letter(1), 0.0) == [fx.KeepDeadLetter(letter(1))]
    assert logic.handle(letter(2), 0.0) == []
    out = logic.handle(msg.DeadLetterKept(letter(1)), 0.0)
    assert fx.Tell(COMMITTER, msg.DeadLettered(S0, 1, 1, None)) in out
    assert out[-1] == fx.KeepDeadLetter(letter(2))


def test_a_store_that_fails_is_asked_again_later() -> None:
    """With the same letter: none is skipped."""

    logic = DeadLetterLogic("p", bounds())
    logic.handle(letter(1), 0.0)
    out = logic.handle(msg.DeadLetterNotKept("disk full"), 0.0)
    assert any(isinstance(effect, fx.WakeAt) for effect in out)
    assert logic.handle(Tick(), 1.0) == [fx.KeepDeadLetter(letter(1))]


def refusal(out: list[object]) -> str:
    """What the supervisor is told, once."""
    (told,) = [e for e in out if isinstance(e, fx.Tell) and e.to == Address("p", "supervisor")]
    assert isinstance(told.message, msg.PipelineFailed)
    return told.message.reason


def test_more_than_the_bound_within_an_hour_stops_the_pipeline() -> None:
    """A wrong option of the format would send everything here."""
    logic = DeadLetterLogic("p", bounds(per_hour=2))
    for offset in (1, 2):
        logic.handle(letter(offset), 0.0)
        logic.handle(msg.DeadLetterKept(letter(offset)), 0.0)
    said = refusal(logic.handle(letter(3), 3599.0))
    assert said == (
        "too many bad records: more than 2 within an hour (max_bad_records_per_hour), the last is "
        "binlog:0 offset 3: bad"
    )


def test_what_waits_is_stored_though_the_bound_is_reached() -> None:
    """Its targets have come before it: they end written, not waiting for a retry that never is."""
    logic = DeadLetterLogic("p", bounds(per_hour=1))
    logic.handle(letter(1), 0.0)
    logic.handle(msg.DeadLetterNotKept("disk full"), 0.0)
    assert "too many bad records" in refusal(logic.handle(letter(2), 0.1))
    assert logic.handle(Tick(), 1.0) == [fx.KeepDeadLetter(letter(1))]


def test_the_bound_counts_an_hour_only() -> None:
    """A bad record now and then goes on for ever."""
    logic = DeadLetterLogic("p", bounds(per_hour=1))
    for hour in range(3):
        now = hour * 3600.0
        assert logic.handle(letter(hour), now) == [fx.KeepDeadLetter(letter(hour))]
        logic.handle(msg.DeadLetterKept(letter(hour)), now)


def test_what_earlier_runs_stored_within_the_hour_counts() -> None:
    """Or a daemon that is started again and again would take any number of bad records."""
    logic = DeadLetterLogic("p", bounds(per_hour=2), (3500.0, 10.0))
    assert "too many bad records" in refusal(logic.handle(letter(1), 1e6))


def test_what_earlier_runs_stored_passes_out_of_the_hour() -> None:
    """By the age that it had when the run began."""
    logic = DeadLetterLogic("p", bounds(per_hour=2), (3600.0, 10.0))
    assert logic.handle(letter(1), 1e6) == [fx.KeepDeadLetter(letter(1))]


def failing(logic: DeadLetterLogic, until: float, log_away: bool = False) -> list[object]:
    """Refuse what is asked for at each wake-up, until some time; what the last refusal gave."""

    now = 0.0
    while True:
        out = logic.handle(msg.DeadLetterNotKept("disk full", log_away), now)
        wakes = [e.when for e in out if isinstance(e, fx.WakeAt)]
        if not wakes or wakes[0] > until:
            return out
        now = wakes[0]
        assert logic.handle(Tick(), now)


def test_a_store_that_fails_for_long_stops_the_pipeline() -> None:
    """Named: the store, for how long, and the record that is still open."""
    logic = DeadLetterLogic("p", bounds(retry_for_s=60.0))
    logic.handle(letter(1), 0.0)
    said = refusal(failing(logic, 1000.0))
    assert said.startswith("the dead-letter store has taken nothing for 62 s")
    assert said.endswith("disk full; binlog:0 offset 1 is not stored: bad")


def test_nothing_that_waits_for_a_store_that_is_given_up_counts_as_done() -> None:
    """Each target hears that its record stays open, and later ones are not stored either."""

    logic = DeadLetterLogic("p", bounds(retry_for_s=1.0))
    processor = Address("p", "processor", 0)
    mine = msg.DeadLetter(S0, 1, 1, b"x", "bad", TargetName("lake", "db", "t"), processor)
    logic.handle(mine, 0.0)
    logic.handle(letter(2), 0.0)
    out = failing(logic, 1000.0)
    refusal(out)
    assert [e.message for e in out if isinstance(e, fx.Tell) and e.to == processor] == [
        msg.DeadLetterRefused(TargetName("lake", "db", "t"), refusal(out))
    ]
    assert logic.handle(Tick(), 1e4) == []
    refusal(logic.handle(letter(3), 1e4))


def test_a_broker_that_does_not_give_the_record_is_waited_for() -> None:
    """The whole pipeline waits for it; it is no fault of the store's."""
    logic = DeadLetterLogic("p", bounds(retry_for_s=1.0))
    logic.handle(letter(1), 0.0)
    out = failing(logic, 10_000.0, log_away=True)
    assert any(isinstance(effect, fx.WakeAt) for effect in out)


def test_a_store_that_takes_one_letter_has_its_time_again() -> None:
    """A disk that is full now and then is no store that fails for long."""
    logic = DeadLetterLogic("p", bounds(retry_for_s=60.0))
    logic.handle(letter(1), 0.0)
    failing(logic, 30.0)
    logic.handle(msg.DeadLetterKept(letter(1)), 50.0)
    logic.handle(letter(2), 50.0)
    out = logic.handle(msg.DeadLetterNotKept("disk full"), 100.0)
    assert any(isinstance(effect, fx.WakeAt) for effect in out)


# --- the count of those that are open


def figures(logic: DeadLetterLogic, now: float) -> tuple[int | None, bool]:
    """The open letters that it answers, and whether it counts them then."""
    reply, *then = logic.handle(Figures(), now)
    assert isinstance(reply, fx.Reply)
    assert isinstance(reply.value, DeadLetterFigures)
    return reply.value.open, then == [fx.CountDeadLetters()]


def test_open_letters_are_counted_where_figures_are_asked_for_and_not_too_often() -> None:
    """The question is answered first: a count may wait for the broker."""
    logic = DeadLetterLogic("p", bounds())
    assert figures(logic, 0.0) == (None, True)
    logic.handle(msg.DeadLettersCounted(4), 0.0)
    assert figures(logic, 0.9) == (4, False)
    assert figures(logic, 1.0) == (4, True)
    logic.handle(msg.DeadLettersCounted(3), 1.0)
    assert figures(logic, 1.1) == (3, False)


def test_a_letter_that_is_stored_is_open_at_once_and_counted_again() -> None:
    """It may be one that was stored before a crash."""
    logic = DeadLetterLogic("p", bounds())
    figures(logic, 0.0)
    logic.handle(msg.DeadLettersCounted(4), 0.0)
    logic.handle(letter(1), 0.1)
    logic.handle(msg.DeadLetterKept(letter(1)), 0.1)
    assert figures(logic, 0.1) == (5, True)


def test_a_store_that_cannot_be_read_leaves_the_last_count_and_says_so_once() -> None:
    """Else the condition would end, and begin again with the broker."""
    logic = DeadLetterLogic("p", bounds())
    figures(logic, 0.0)
    logic.handle(msg.DeadLettersCounted(4), 0.0)
    (said,) = logic.handle(msg.DeadLettersNotCounted("away"), 1.0)
    assert said == fx.Log("warning", "dead_letters_not_counted", {"reason": "away"})
    assert logic.handle(msg.DeadLettersNotCounted("away"), 2.0) == []
    assert figures(logic, 3.0) == (4, True)
