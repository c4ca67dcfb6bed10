"""What becomes of jobs: the rule alone, with a clock of numbers."""

from __future__ import annotations

from dataclasses import replace

from daemon.config.pipeline_parts import Window
from daemon.operations.engine.effects import Broken, Left, Limits, Told, Undo, Undone
from daemon.operations.engine.entry import LENDS_AFTER_S
from daemon.operations.engine.record import JobProgress, State
from daemon.operations.engine.rule import LONGEST_WAIT_S
from tests.daemon.operations.rule_rig import START_MS, RuleRig


def test_a_job_goes_from_step_to_step_until_it_is_done() -> None:
    """Each time its record is durable before the next step."""
    rig = RuleRig()
    rig.add("a")
    assert rig.job("a").state is State.RUNNING
    rig.advance("a", 1)
    assert (rig.disk["a"].memory, rig.disk["a"].message) == ({"at": 1}, "counts")
    rig.finish("a")
    job = rig.disk["a"]
    assert (job.state, job.result, job.message) == (State.DONE, {"ok": True}, "counted")
    assert job.ended_ms == START_MS
    assert rig.told == [("a", "STARTED"), ("a", "IN_PROGRESS"), ("a", "COMPLETED")]
    assert not rig.under_way


def test_a_kind_has_so_many_places() -> None:
    """The third waits for one, and gets it; another kind has places of its own."""
    rig = RuleRig({"count": Limits(2), "load": Limits(1)})
    for id_ in "abc":
        rig.add(id_)
        rig.tick(1.0)
    rig.add("d", "load")
    assert sorted(rig.under_way) == ["a", "b", "d"]
    assert rig.job("c").state is State.PLANNED
    rig.finish("b")
    assert sorted(rig.under_way) == ["a", "c", "d"]


def test_what_was_begun_comes_first_after_a_restart() -> None:
    """Not what was recorded first: it holds something already."""
    rig = RuleRig({"count": Limits(1)})
    rig.add("a")
    rig.ask("a", "pause")
    rig.hear(Left("a"))
    rig.tick(1.0)
    rig.add("b")
    rig.ask("a", "resume")
    assert rig.job("a").state is State.WAITING
    rig.start()
    rig.tick()
    assert list(rig.under_way) == ["a"]
    rig.finish("a")
    assert list(rig.under_way) == ["b"]


def test_a_step_that_fails_for_a_while_is_repeated_with_growing_waits() -> None:
    """It says what it waits for, and the waits begin anew once a step went well."""
    rig = RuleRig()
    rig.add("a")
    for wait_s in (1, 2, 4):
        rig.hear(Broken("a", "the sink is away", away=True))
        assert (rig.job("a").state, rig.job("a").message) == (State.WAITING, "the sink is away")
        rig.tick(wait_s - 0.1)
        assert not rig.under_way
        rig.tick(0.1)
        assert list(rig.under_way) == ["a"]
    assert rig.job("a").attempts == 3
    assert rig.job("a").state is State.RUNNING
    rig.advance("a", 1)
    assert rig.disk["a"].attempts == 0
    assert rig.logged.count("job_waits") == 3
    assert rig.logged[-1] == "job_goes_on"


def test_a_job_that_fails_says_why_and_frees_its_place() -> None:
    """For good: nobody repeats it."""
    rig = RuleRig({"count": Limits(1)})
    rig.add("a")
    rig.tick(1.0)
    rig.add("b")
    rig.hear(Broken("a", "no key", away=False))
    assert (rig.disk["a"].state, rig.disk["a"].message) == (State.FAILED, "no key")
    assert ("a", "ABORTED") in rig.told
    assert list(rig.under_way) == ["b"]
    assert rig.ask("a", "resume") == "job a is failed already"


def test_a_job_that_has_failed_is_given_up_by_a_cancel() -> None:
    """What it left behind is removed, and it is ill no more; what can't be removed stays a
    failure."""
    rig = RuleRig()
    rig.add("a")
    rig.hear(Broken("a", "no key", away=False))
    for error in ("the sink refuses", None):
        assert rig.ask("a", "cancel") is None
        assert (rig.disk["a"].wish, rig.disk["a"].state.is_final) == ("cancel", False)
        rig.tick(1.0)
        assert isinstance(rig.under_way["a"], Undo)
        if error:
            rig.hear(Broken("a", error, away=False))
            assert rig.disk["a"].message == f"it can't be cancelled: {error}"
    rig.hear(Undone("a", "nothing is left"))
    assert (rig.disk["a"].state, rig.disk["a"].wish) == (State.CANCELLED, "")
    assert rig.ask("a", "cancel") == "job a is cancelled already"


def test_a_step_may_ask_for_a_wait() -> None:
    """The job keeps its place, and says what it waits for."""
    rig = RuleRig({"count": Limits(1)})
    rig.add("a")
    rig.add("b")
    rig.advance("a", 1, wait_s=5.0)
    assert rig.disk["a"].state is State.WAITING
    assert not rig.under_way
    assert rig.logic.deadline(rig.now) == 5.0
    rig.tick(5.0)
    assert list(rig.under_way) == ["a"]


def test_a_job_that_only_waits_does_not_wear_out_the_disk() -> None:
    """Its figures are stored now and then."""
    rig = RuleRig()
    rig.add("a")
    rig.advance("a", 1, wait_s=5.0)
    before = rig.saves
    for _ in range(5):
        rig.tick(5.0)
        rig.advance("a", 1, wait_s=5.0)
    assert rig.saves == before
    rig.tick(5.0)
    rig.advance("a", 1, wait_s=5.0)
    assert rig.saves == before + 1


def test_a_job_that_only_waits_lends_its_place() -> None:
    """Its log has ended, or its sink is away: one bad job does not keep the others from running.

    They take turns while each only waits; who gets on keeps its place.
    """
    rig = RuleRig({"count": Limits(1)})
    rig.add("a")
    rig.add("b")
    rig.advance("a", 1, wait_s=5.0)
    for _ in range(5):
        rig.tick(5.0)
        assert list(rig.under_way) == ["a"]
        rig.advance("a", 1, wait_s=5.0)
    rig.tick(5.0)
    assert list(rig.under_way) == ["a"]
    rig.advance("a", 1, wait_s=5.0)
    assert list(rig.under_way) == ["b"]
    assert rig.job("a").state is State.WAITING
    rig.advance("b", 1)
    rig.tick(100.0)
    assert list(rig.under_way) == ["b"], "it gets on"
    rig.hear(Broken("b", "the sink is away", away=True))
    rig.tick(LENDS_AFTER_S)
    rig.hear(Broken("b", "the sink is away", away=True))
    assert list(rig.under_way) == ["a"]
    rig.finish("a")
    rig.tick(LONGEST_WAIT_S)
    assert list(rig.under_way) == ["b"]


def test_a_place_is_lent_to_who_can_use_it() -> None:
    """Neither to a paused job, nor to one of another kind; one that is alone keeps it."""
    rig = RuleRig({"count": Limits(1), "load": Limits(1)})
    rig.add("a")
    rig.add("b", "load")
    rig.add("c")
    rig.ask("c", "pause")
    for _ in range(10):
        rig.advance("a", 1, wait_s=5.0)
        rig.tick(5.0)
        assert "a" in rig.under_way
    rig.advance("a", 1, wait_s=5.0)
    rig.ask("c", "resume")
    assert sorted(rig.under_way) == ["b", "c"]


def test_steps_begin_in_the_window_alone() -> None:
    """It says when it is closed; a step that began in it ends outside."""
    # START_MS is 22:13:20 UTC.
    rig = RuleRig({"count": Limits(1, Window.parse("22:00-22:15"))})
    rig.add("a")
    rig.at_s = 120.0
    rig.advance("a", 1)
    assert not rig.under_way
    assert rig.job("a").message == "the window 22:00-22:15 UTC is closed"
    assert rig.disk["a"].memory == {"at": 1}
    rig.at_s = 24 * 3600.0
    rig.tick()
    assert list(rig.under_way) == ["a"]


def test_nothing_begins_once_a_stop_is_asked() -> None:
    """Steps under way are told to end; the next start repeats them."""
    rig = RuleRig()
    rig.add("a")
    rig.carry_out(rig.logic.stop())
    assert rig.logic.busy == ["a"]
    rig.hear(Left("a"))
    assert not rig.logic.busy
    assert not rig.under_way
    assert rig.disk["a"].state is State.RUNNING
    rig.start()
    rig.tick()
    assert list(rig.under_way) == ["a"]


def test_no_step_follows_a_record_that_was_not_stored() -> None:
    """It is stored first, later, and the step after it."""
    rig = RuleRig()
    rig.add("a")
    rig.disk_full = True
    rig.advance("a", 1)
    assert not rig.under_way
    rig.tick(4.0)
    assert not rig.under_way
    rig.disk_full = False
    rig.tick(4.0)
    assert rig.disk["a"].memory == {"at": 1}
    assert list(rig.under_way) == ["a"]


def test_an_end_that_was_not_stored_is_stored_later() -> None:
    """And told once."""
    rig = RuleRig()
    rig.add("a")
    rig.disk_full = True
    rig.finish("a")
    assert rig.disk["a"].state is not State.DONE
    rig.disk_full = False
    rig.tick(4.0)
    assert rig.disk["a"].state is State.DONE
    assert rig.logic.deadline(rig.now) is None
    assert rig.told.count(("a", "COMPLETED")) == 1


def test_the_oldest_that_have_ended_are_forgotten() -> None:
    """Those that have not ended stay, however many."""
    rig = RuleRig({"count": Limits(9)}, 2)
    for number, id_ in enumerate("abcd"):
        rig.add(id_)
        rig.at_s = float(number)
    for id_ in "cab":
        rig.tick(1.0)
        rig.finish(id_)
    assert sorted(rig.disk) == ["a", "b", "d"]


def test_a_job_of_an_unknown_kind_stays_as_it_is() -> None:
    """Another version of the daemon knows what to do with it."""
    rig = RuleRig()
    rig.add("a", "weigh")
    rig.tick(100.0)
    assert not rig.under_way
    assert rig.disk["a"].state is State.PLANNED
    assert rig.logic.deadline(rig.now) is None


def test_a_long_step_shows_how_far_it_is() -> None:
    """In memory alone, with its rate and what is left."""
    rig = RuleRig()
    rig.add("a")
    saves = rig.saves
    for seconds in range(0, 11, 2):
        rig.at_s = float(seconds)
        event = Told("a", JobProgress(100 * seconds, 3_000), "reads")
        rig.carry_out(rig.logic.handle(event, rig.now))
    shown = rig.job("a")
    assert (shown.progress.rate, shown.progress.eta_s, shown.message) == (100.0, 20.0, "reads")
    assert rig.saves == saves
    assert rig.disk["a"] != shown
    assert replace(rig.disk["a"], progress=shown.progress).memory == shown.memory
