"""What the status says of targets that are not read, not written, or left out."""

from __future__ import annotations

from dataclasses import replace

from actors.committer.rule import CommitterLogic
from actors.contract.addresses import Address
from actors.contract.figures import ProcessorFigures, QuarantineFigures
from actors.contract.messages import EpochStarted
from actors.processor.buffer import TargetBuffer
from daemon.kafka.log_ends import LogEndFigures
from daemon.observe.metrics import StatusCollector
from daemon.observe.observer import Answers
from daemon.observe.status import NO_FETCHER, document
from daemon.pauses.store import Pause
from offsets.snapshot import Snapshot, TargetMark
from tests.daemon.observe.test_observer import ABOUT, FETCHER, SOURCE, answered, route


def test_targets_whose_rows_may_differ_in_quarantine() -> None:
    """Nobody has looked at them since the start: what is recorded counts."""
    marks = {"lake.s.t": TargetMark("1", {}, rows_may_differ="what happened")}
    committer = CommitterLogic("p", Snapshot("p", "g", targets=marks), 5.0, None)
    held = QuarantineFigures("why", 10, 1, {SOURCE: (1, 1)}, False, False)
    figures = replace(TargetBuffer(route("t")).figures(0.0), hwms={SOURCE: 1})
    for each in (replace(figures, quarantine=held), replace(figures, away=held)):
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
    figures = replace(TargetBuffer(route("t")).figures(0.0), hwms={SOURCE: 4})
    found = {
        Address("p", "committer"): answered(committer),
        Address("p", "processor", 0): ProcessorFigures(False, (figures,)),
    }
    for ends, lag in (({}, None), ({SOURCE: 5}, 0)):
        status = document(ABOUT, Answers(found), 0, 1.0, log_ends={"p": LogEndFigures(ends)})
        (pipeline,) = status["pipelines"]
        (target,) = pipeline["targets"]
        assert pipeline["partitions"][0]["lag_messages"] == lag
        assert (target["lag_messages"], target["lag_seconds"]) == (lag, lag)
        names = {m.name for m in StatusCollector(lambda shown=status: shown).collect() if m.samples}
        assert ("binlogd_target_lag_messages" in names) == (lag is not None)


def test_a_paused_target_is_shown_as_such() -> None:
    """Whatever write it had when it was paused."""
    figures = replace(TargetBuffer(route("t")).figures(0.0), phase="writing")
    found = {Address("p", "processor", 0): ProcessorFigures(False, (figures,))}
    pauses = {"lake.s.t": Pause(0, "why")}
    (pipeline,) = document(ABOUT, Answers(found), 0, 1.0, pauses=pauses)["pipelines"]
    assert pipeline["targets"][0]["phase"] == "paused"


def test_tables_that_are_left_out_are_named() -> None:
    """With the reason, for tables list."""
    figures = replace(NO_FETCHER, left_out=3, left_out_tables=1, left_out_named={"s...": "why"})
    (pipeline,) = document(ABOUT, Answers({FETCHER: figures}), 0, 1.0)["pipelines"]
    assert (pipeline["tables_left_out"], pipeline["left_out"]) == (1, {"s...": "why"})
