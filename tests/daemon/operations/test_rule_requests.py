"""What operators ask of jobs: pause, resume, cancel. The rule alone."""

from __future__ import annotations

import pytest

from daemon.config.pipeline_parts import Window
from daemon.operations.engine.effects import Broken, DoStep, Left, Limits, Request, Undo, Undone
from daemon.operations.engine.record import State
from tests.daemon.operations.rule_rig import RuleRig


def test_a_pause_waits_for_the_step_and_gives_the_place_away() -> None:
    """And a resume takes one when there is one."""
    rig = RuleRig({"count": Limits(1)})
    rig.add("a")
    rig.tick(1.0)
    rig.add("b")
    assert rig.ask("a", "pause") is None
    assert (rig.disk["a"].state, rig.disk["a"].wish) == (State.RUNNING, "pause")
    rig.advance("a", 1, wait_s=60.0)
    assert (rig.disk["a"].state, rig.disk["a"].wish) == (State.PAUSED, "")
    assert list(rig.under_way) == ["b"]
    assert rig.ask("a", "pause") == "job a is paused already"
    assert rig.ask("a", "resume") is None
    assert rig.job("a").state is State.WAITING
    rig.finish("b")
    step = rig.under_way["a"]
    assert isinstance(step, DoStep)
    assert step.job.memory == {"at": 1}
    assert [type_ for id_, type_ in rig.told if id_ == "a"][-2:] == ["PAUSED", "RESUMED"]


def test_a_pause_is_kept_over_a_restart() -> None:
    """Also one that the step had not seen yet."""
    rig = RuleRig()
    rig.add("a")
    rig.ask("a", "pause")
    rig.start()
    rig.tick()
    assert rig.disk["a"].state is State.PAUSED
    rig.start()
    rig.tick(100.0)
    assert not rig.under_way


def test_a_resume_takes_a_pause_back() -> None:
    """Before the step has ended."""
    rig = RuleRig()
    rig.add("a")
    rig.ask("a", "pause")
    assert rig.ask("a", "resume") is None
    rig.advance("a", 1)
    assert list(rig.under_way) == ["a"]
    assert rig.ask("a", "resume") == "job a is not paused"


@pytest.mark.parametrize("state", ["planned", "running", "waiting", "paused"])
def test_a_cancelled_job_is_undone_whatever_it_did(state: str) -> None:
    """At once, without a place of its own, also outside its hours."""
    limits = {"count": Limits(1, Window.parse("00:00-00:01") if state == "planned" else None)}
    rig = RuleRig(limits)
    rig.add("a")
    if state == "waiting":
        rig.advance("a", 1, wait_s=1e6)
    elif state == "paused":
        rig.ask("a", "pause")
        rig.hear(Left("a"))
        rig.add("b")
    assert rig.ask("a", "cancel") is None
    if state == "running":
        rig.hear(Left("a"))
    assert isinstance(rig.under_way["a"], Undo)
    assert rig.ask("a", "pause") == "job a is being cancelled already"
    assert rig.ask("a", "resume") == "job a is being cancelled already"
    rig.hear(Undone("a", "nothing is left"))
    assert (rig.disk["a"].state, rig.disk["a"].message) == (State.CANCELLED, "nothing is left")
    assert rig.told[-1] == ("a", "ABORTED")


def test_a_cancelling_that_fails_is_repeated_or_told() -> None:
    """It is never taken for done."""
    rig = RuleRig()
    rig.add("a")
    rig.ask("a", "cancel")
    rig.hear(Left("a"))
    rig.hear(Broken("a", "the sink is away", away=True))
    assert not rig.under_way
    rig.tick(1.0)
    assert isinstance(rig.under_way["a"], Undo)
    rig.hear(Broken("a", "no right", away=False))
    assert rig.disk["a"].message == "it can't be cancelled: no right"
    assert rig.disk["a"].state is State.FAILED


def test_a_job_that_ends_while_it_is_cancelled_is_done() -> None:
    """The request came too late, and the record says what is true."""
    rig = RuleRig()
    rig.add("a")
    rig.ask("a", "cancel")
    rig.finish("a")
    assert (rig.disk["a"].state, rig.disk["a"].wish) == (State.DONE, "")
    assert not rig.under_way


def test_a_kind_that_can_not_rest_is_not_paused() -> None:
    """It would go on, and look as if it did not."""
    rig = RuleRig({"count": Limits(2, None, can_pause=False)})
    rig.add("a")
    assert rig.ask("a", "pause") == "job a: a count can't be paused, only cancelled"
    assert rig.disk["a"].wish == ""


@pytest.mark.parametrize("request_", ["pause", "resume", "cancel"])
def test_an_unknown_job_is_told(request_: Request) -> None:
    """By its name."""
    assert RuleRig().ask("x", request_) == "job x: unknown"
