"""The rule of jobs with a clock and a disk of numbers."""

from __future__ import annotations

from collections.abc import Mapping

from actors.contract.effects import Log
from daemon.operations.engine.effects import (
    DoStep,
    Event,
    Limits,
    Notify,
    NotSaved,
    Now,
    Remove,
    Request,
    Save,
    Stepped,
    Undo,
)
from daemon.operations.engine.port import Advanced, Finished
from daemon.operations.engine.record import Job, JobProgress, JobRequest, new_job
from daemon.operations.engine.rule import JobsLogic, Out

START_MS = 1_700_000_000_000


class RuleRig:
    """Carries effects out in order as the runner does; ``disk_full`` refuses what is saved."""

    def __init__(
        self, limits: Mapping[str, Limits] | None = None, keep: int = 50, *jobs: Job
    ) -> None:
        self.limits = limits or {"count": Limits(2)}
        self.keep = keep
        self.disk = {job.id: job for job in jobs}
        self.at_s = 0.0
        self.disk_full = False
        self.saves = 0
        self.under_way: dict[str, DoStep | Undo] = {}
        self.told: list[tuple[str, str]] = []
        self.logged: list[str] = []
        self.start()

    def start(self) -> None:
        """The daemon starts, with what is on the disk."""
        self.under_way.clear()
        self.logic = JobsLogic(self.limits, self.disk.values(), self.keep)

    @property
    def now(self) -> Now:
        return Now(self.at_s, START_MS + int(self.at_s * 1000))

    def job(self, id_: str) -> Job:
        return next(job for job in self.logic.jobs if job.id == id_)

    def add(self, id_: str, kind: str = "count", **params: int) -> None:
        job = new_job(JobRequest(kind, "shop", ("lake.s.t",), params), self.now.ms, id_)
        self.disk[id_] = job
        self.logic.add(job)
        self.tick()

    def tick(self, seconds: float = 0.0) -> None:
        self.at_s += seconds
        self.carry_out(self.logic.tick(self.now))

    def hear(self, event: Event) -> None:
        """A step has ended, and what follows is begun."""
        self.under_way.pop(event.id, None)
        self.carry_out(self.logic.handle(event, self.now))
        self.tick()

    def advance(self, id_: str, at: int, wait_s: float = 0.0, total: int | None = None) -> None:
        self.hear(Stepped(id_, Advanced({"at": at}, JobProgress(at, total), "counts", wait_s)))

    def finish(self, id_: str) -> None:
        self.hear(Stepped(id_, Finished({"ok": True}, "counted")))

    def ask(self, id_: str, request: Request) -> str | None:
        refusal, out = self.logic.ask(id_, request, self.now)
        self.carry_out(out)
        self.tick()
        return refusal

    def carry_out(self, effects: Out) -> None:
        failed: set[str] = set()
        held: set[str] = set()
        for effect in effects:
            if isinstance(effect, Log):
                self.logged.append(effect.event)
            elif isinstance(effect, Save):
                if self.disk_full:
                    failed.add(effect.job.id)
                elif effect.job.id not in failed:
                    self.disk[effect.job.id] = effect.job
                    self.saves += 1
            elif isinstance(effect, DoStep | Undo):
                self.begin(effect, failed, held)
            elif isinstance(effect, Notify):
                self.told.append((effect.job.id, effect.type))
            elif isinstance(effect, Remove):
                del self.disk[effect.id]
        for id_ in failed:
            self.carry_out(self.logic.handle(NotSaved(id_, id_ in held), self.now))

    def begin(self, effect: DoStep | Undo, failed: set[str], held: set[str]) -> None:
        job = effect.job
        if job.id in failed:
            held.add(job.id)
            return
        assert job.id not in self.under_way, "two steps of one job at once"
        assert self.disk[job.id].memory == job.memory, "a step begins before its record is durable"
        self.under_way[job.id] = effect
