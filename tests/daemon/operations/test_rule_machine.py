"""Jobs in any order of steps, failures, requests, full disks and crashes."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from daemon.operations.engine.effects import (
    Broken,
    DoStep,
    Left,
    Limits,
    Request,
    Stepped,
    Undo,
    Undone,
)
from daemon.operations.engine.port import Advanced, Finished
from daemon.operations.engine.record import State
from tests.daemon.operations.rule_rig import RuleRig

STEPS = 3


class Jobs(RuleBasedStateMachine):
    """The target of each job is a set of numbers: writing one again changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = RuleRig({"count": Limits(2), "load": Limits(1)})
        self.written: dict[str, set[int]] = {}
        self.number = 0

    @rule(kind=st.sampled_from(["count", "load"]))
    def add(self, kind: str) -> None:
        if self.number < 6:
            self.number += 1
            self.written[f"j{self.number}"] = set()
            self.rig.add(f"j{self.number}", kind)

    @precondition(lambda self: self.rig.under_way)
    @rule(data=st.data(), ends=st.sampled_from(["well", "well", "well", "away", "failed", "left"]))
    def end_step(self, data: st.DataObject, ends: str) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.rig.under_way)))
        if ends == "well":
            self.do(id_)
        elif ends == "left":
            self.rig.hear(Left(id_))
        elif ends == "away" or data.draw(st.integers(0, 9)):
            self.rig.hear(Broken(id_, "away", True))
        else:
            self.rig.hear(Broken(id_, "failed", False))

    def do(self, id_: str) -> None:
        effect = self.rig.under_way[id_]
        if isinstance(effect, Undo):
            self.written[id_].clear()
            self.rig.hear(Undone(id_, ""))
            return
        at = effect.job.memory.get("at", 0)
        # What is remembered is never ahead of what is written.
        assert self.written[id_] >= set(range(at))
        if at == STEPS:
            self.rig.hear(Stepped(id_, Finished()))
            return
        self.written[id_].add(at)
        self.rig.hear(Stepped(id_, Advanced({"at": at + 1})))

    @rule(number=st.integers(1, 6), request=st.sampled_from(["pause", "resume", "cancel"]))
    def ask(self, number: int, request: Request) -> None:
        self.rig.ask(f"j{number}", request)

    @rule(seconds=st.floats(0.1, 90.0))
    def wait(self, seconds: float) -> None:
        self.rig.tick(seconds)

    @rule(full=st.booleans())
    def disk(self, full: bool) -> None:
        self.rig.disk_full = full

    @rule(lost=st.booleans())
    def crash(self, lost: bool) -> None:
        """What was under way may be written or not."""
        if not lost:
            for id_, effect in self.rig.under_way.items():
                if isinstance(effect, DoStep):
                    self.written[id_].add(effect.job.memory.get("at", 0))
        self.rig.start()
        self.rig.tick()

    @invariant()
    def places(self) -> None:
        steps = [e.job.wanted.kind for e in self.rig.under_way.values() if isinstance(e, DoStep)]
        assert steps.count("count") <= 2
        assert steps.count("load") <= 1

    @invariant()
    def resting_jobs_rest(self) -> None:
        for job in self.rig.logic.jobs:
            if job.id in self.rig.under_way:
                assert not job.state.is_final
            if job.state is State.PAUSED and job.id in self.rig.under_way:
                assert isinstance(self.rig.under_way[job.id], Undo)
            if job.state is State.DONE:
                assert self.written[job.id] >= set(range(STEPS))

    def teardown(self) -> None:
        """Once all is well every job ends, and its record is on the disk."""
        rig = self.rig
        rig.disk_full = False
        for job in rig.logic.jobs:
            rig.ask(job.id, "resume")
        for _ in range(200):
            for id_ in list(rig.under_way):
                self.do(id_)
            if not rig.under_way and rig.logic.deadline(rig.now) is None:
                break
            rig.tick(90.0)
        assert all(job.state.is_final for job in rig.logic.jobs)
        assert {job.id: job for job in rig.logic.jobs} == rig.disk


TestJobs = Jobs.TestCase
TestJobs.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
