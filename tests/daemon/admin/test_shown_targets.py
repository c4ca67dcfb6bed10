"""What the status says of targets that are not read, not written, or left out."""

from __future__ import annotations

from dataclasses import replace

from actors.committer.rule import CommitterLogic
from actors.contract.addresses import Address
from actors.contract.figures import ProcessorFigures, QuarantineFigures
from actors.contract.messages import EpochStarted
from actors.target.buffer import TargetBuffer
from actors.target.shown import figures
from daemon.admin.status.health import conditions
from daemon.admin.status.metrics import StatusCollector
from daemon.admin.status.observer import SUPERVISOR, Answers
from daemon.admin.status.status import NO_FETCHER, LifeFigures, document
from daemon.state.pauses import Pause
from offsets.snapshot import Snapshot, TargetMark
from sources.base.log_figures import LogFigures, OpenTransaction
from tests.daemon.admin.status.test_observer import (
    ABOUT,
    ENDS,
    FETCHER,
    SOURCE,
    answered,
    route,
    running,
)


def test_targets_whose_rows_may_differ_in_quarantine() -> None:
    """Nobody has looked at them since the start: what is recorded counts."""
    marks = {"lake.s.t": TargetMark("1", {}, rows_may_differ="what happened")}
    committer = CommitterLogic("p", Snapshot("p", "g", targets=marks), 5.0, None)
    held = QuarantineFigures("why", 10, 1, {SOURCE: (1, 1)}, False, False)
    shown = replace(figures(TargetBuffer(route("t")), 0.0), hwms={SOURCE: 1})
    for each in (replace(shown, quarantine=held), replace(shown, away=held)):
        found = {
            Address("p", "committer"): answered(committer),
            Address("p", "processor", 0): ProcessorFigures(False, (each,)),
        }
        (pipeline,) = document(ABOUT, Answers(found), 0, 1.0)["pipelines"]
        assert pipeline["targets"][0]["rows_may_differ"] == "what happened"


def test_a_targets_lag_is_unknown_while_the_logs_end_is() -> None:
    """Nothing is pending of it, but nobody knows what the broker has by now: no zero."""
    committer = CommitterLogic("p", Snapshot("p", "g"), 5.0, None)
    committer.handle(EpochStarted(1, SOURCE, 5, 5, None), 0.0)
    shown = replace(figures(TargetBuffer(route("t")), 0.0), hwms={SOURCE: 4})
    found = {
        Address("p", "committer"): answered(committer),
        Address("p", "processor", 0): ProcessorFigures(False, (shown,)),
    }
    for ends, lag in (({}, None), ({SOURCE: 5}, 0)):
        status = document(ABOUT, Answers(found), 0, 1.0, log_ends={"p": LogFigures(ends)})
        (pipeline,) = status["pipelines"]
        (target,) = pipeline["targets"]
        assert pipeline["partitions"][0]["lag_messages"] == lag
        assert (target["lag_messages"], target["lag_seconds"]) == (lag, lag)
        names = {m.name for m in StatusCollector(lambda shown=status: shown).collect() if m.samples}
        assert ("binlogd_target_lag_messages" in names) == (lag is not None)


def test_a_paused_target_is_shown_as_such() -> None:
    """Whatever write it had when it was paused."""
    shown = replace(figures(TargetBuffer(route("t")), 0.0), phase="writing")
    found = {Address("p", "processor", 0): ProcessorFigures(False, (shown,))}
    pauses = {"lake.s.t": Pause(0, "why")}
    (pipeline,) = document(ABOUT, Answers(found), 0, 1.0, pauses=pauses)["pipelines"]
    assert pipeline["targets"][0]["phase"] == "paused"


def test_tables_that_are_left_out_are_named() -> None:
    """With the reason, for tables list."""
    figures = replace(NO_FETCHER, left_out=3, left_out_tables=1, left_out_named={"s...": "why"})
    (pipeline,) = document(ABOUT, Answers({FETCHER: figures}), 0, 1.0)["pipelines"]
    assert (pipeline["tables_left_out"], pipeline["left_out"]) == (1, {"s...": "why"})


def test_a_target_of_a_pipeline_that_has_ended_has_no_lag_of_zero() -> None:
    """Nothing is read: what comes meanwhile nobody knows, of the target as of its pipeline."""
    shown = replace(figures(TargetBuffer(route("t")), 0.0), phase="stopped")
    found: dict[Address, object] = {Address("p", "processor", 0): ProcessorFigures(False, (shown,))}
    life = {"running": {}, "ended": {"p": "why"}}
    for stage, lag in (("ended", None), ("running", 0)):
        figures_of = replace(NO_FETCHER, assigned=True)
        life_of = LifeFigures({"p": stage}, life[stage], stopping=False)
        answers = Answers({**found, FETCHER: figures_of, SUPERVISOR: life_of})
        (pipeline,) = document(ABOUT, answers, 0, 1.0, None, ENDS)["pipelines"]
        (target,) = pipeline["targets"]
        assert (pipeline["lag_messages"], target["lag_messages"]) == (lag, lag)
        assert (pipeline["lag_seconds"], target["lag_seconds"]) == (lag, lag)


def test_lag_behind_an_open_transaction_has_an_age() -> None:
    """Nothing was applied in this run, nothing can be read: without an age no alert would fire."""
    committer = CommitterLogic("p", Snapshot("p", "g"), 5.0, None)
    committer.handle(EpochStarted(1, SOURCE, 5, 5, None), 0.0)
    ends = LogFigures({SOURCE: 30}, None, open={SOURCE: OpenTransaction(5, 700.0)})
    found = running({Address("p", "committer"): answered(committer)})
    shown = document(ABOUT, found, 0, 1.0, log_ends={"p": ends})
    (pipeline,) = shown["pipelines"]
    assert (pipeline["lag_messages"], pipeline["lag_seconds"]) == (25, 700.0)
    (text,) = (one.line for one in conditions(shown) if one.kind == "behind")
    assert text == f"is 12 min behind, behind an open transaction in {SOURCE}"
