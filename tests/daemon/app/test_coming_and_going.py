"""Pipelines that begin and that go while the daemon runs."""

from __future__ import annotations

import pytest

from actors.contract import messages as msg
from actors.contract.addresses import Address
from daemon.app.lifecycle import Finish
from daemon.state.edits import EditFailed, EditRefused, Fate
from offsets.snapshot import Snapshot
from settings.exit import Exit
from tests.daemon.app.test_edits import Rig, fail, refuse


def test_a_new_pipeline_is_held_first_and_then_runs() -> None:
    rig = Rig()
    done = rig.begin(name="c", fate=Fate.BEGINS)
    assert rig.life.stages()["c"] == "held"
    rig.ends()
    assert (rig.life.stages()["c"], done.result(0)) == ("running", None)
    assert (rig.there, rig.stores) == (["a", "b", "c"], ["a", "b", "c"])
    assert rig.started == [("parts", Snapshot("c", "g"))]


def test_a_new_pipeline_that_does_not_start_was_never_there() -> None:
    """Its store is closed; the process goes on."""
    rig = Rig(fail)
    done = rig.begin(name="c", fate=Fate.BEGINS)
    assert not [e for e in rig.ends() if isinstance(e, Finish)]
    assert (rig.there, rig.stores, rig.started) == (["a", "b"], ["a", "b"], [])
    assert isinstance(done.exception(0), EditFailed)


def test_one_that_is_there_does_not_begin() -> None:
    done = Rig().begin(fate=Fate.BEGINS)
    assert "pipeline a exists already" in str(done.exception(0))


def test_a_pipeline_that_goes_has_drained_and_is_known_no_more() -> None:
    """Late words of its actors are nothing to anybody."""
    rig = Rig()
    done = rig.begin(fate=Fate.GOES)
    rig.stops()
    assert not [e for e in rig.ends() if isinstance(e, Finish)]
    assert (rig.life.stages(), rig.stores, done.result(0)) == ({"b": "running"}, ["b"], None)
    assert (rig.there, rig.started) == (["b"], [])
    late = msg.SourceClosed("a"), msg.PipelineFailed("a", "x"), msg.Drained(Address("a", "p"))
    assert [rig.life.handle(event, 3.0) for event in late] == [[], [], []]


@pytest.mark.parametrize("why", ["refused", "late"])
def test_one_that_may_not_go_runs_again(why: str) -> None:
    """So does one of which not all could be written in time."""
    rig = Rig()
    done = rig.begin(refuse if why == "refused" else lambda snapshot: snapshot, fate=Fate.GOES)
    if why == "late":
        rig.carry_out(rig.life.tick(61.0))  # the drain
        rig.carry_out(rig.life.tick(122.0))  # the last commit
    else:
        rig.stops()
    rig.ends()
    assert (rig.stage, rig.stores) == ("running", ["a", "b"])
    assert isinstance(done.exception(0), EditRefused)


def test_the_end_of_the_process_is_not_missed_by_the_last_one_that_goes() -> None:
    """A stop in the middle: nobody else is left to end."""
    rig = Rig()
    rig.begin(fate=Fate.GOES)
    rig.stops()
    rig.life.handle(msg.StopRequested("SIGTERM"), 1.0)
    rig.life.handle(msg.Drained(Address("b", "processor")), 1.0)
    rig.life.handle(msg.SourceClosed("b"), 1.0)
    assert Finish(Exit.OK) in rig.ends()
