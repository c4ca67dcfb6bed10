"""An operator beside the statements: loads, verifies, pauses, cancels, from a seed.

What it asked for comes to an end before a checkpoint; then it plants differences in the sink, which
a verification must tell, all and no other, and a repair must mend.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from changes.model.model import TargetName
from daemon.operations.engine.record import Job, State
from tests.live.commands import Command, Said
from tests.live.comparison import Found
from tests.live.daemon import Daemon
from tests.live.plants import planned
from tests.live.schema import Name, Schema
from tests.live.sinks import Difference, Sink, Stored
from tests.live.sources import MARKER

AT_ONCE = 2
"""Commands of one seed: each is a process, which takes seconds of a busy machine to begin."""
OFTEN = 0.2
"""Behind so many steps it does something."""
ENDS_WITHIN_S = 300.0
"""For all jobs to end, from the first beat on."""


@dataclass(slots=True)
class Done:
    """What it has done: for the last line of a run."""

    loads: int = 0
    verifications: int = 0
    repairs: int = 0
    """Rows that a repair has written."""
    cancels: int = 0
    pauses: int = 0
    planted: int = 0
    refused: int = 0
    """Commands and jobs that ended with a reason."""


@dataclass(slots=True)
class Operator:
    """Of one seed. One thread's."""

    pipeline: str
    sink: str
    daemon: Daemon
    done: Done
    seed: int
    beat: Callable[[], None]
    """Adds a row to each source: jobs wait for a later change."""
    plants: bool = True
    """Whether it plants differences: where rows keep source positions none is repaired."""
    faults: list[str] = field(default_factory=list)
    """What no operator may see: since the last checkpoint."""
    differing: dict[Name, str] = field(default_factory=dict)
    """Tables of which a verification has told rows that differ, since then."""
    _rng: Random = field(init=False)
    _under_way: list[Command] = field(default_factory=list)
    _paused: list[str] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._rng = Random(f"operator {self.seed}")

    def target(self, name: Name) -> str:
        """A table's target, as a command takes it."""
        return str(TargetName(self.sink, *name))

    def step(self, schema: Schema) -> None:
        """Perhaps a command."""
        is_busy = sum(one.runs for one in self._under_way) >= AT_ONCE
        if self._rng.random() > OFTEN or not schema.tables or is_busy:
            return
        targets = [self.target(table.name) for table in schema.tables]
        some = self._rng.sample(targets, min(len(targets), self._rng.choice((1, 1, 2))))
        match self._rng.choice(("load", "load", "verify", "repair", "pause", "cancel")):
            case "load":
                self._begin("tables", "load", *some, *self._rng.choice(((), ("--anew",))))
            case "verify":
                self._begin("tables", "verify", *some)
            case "repair":
                self._begin("tables", "verify", *some, "--repair")
            case "pause":
                self._resume_or_pause(self._rng.choice((some[0], self.pipeline)))
            case "cancel":
                self._cancel()

    def lead_out(self, ill: Sequence[Name], there: Collection[Name]) -> None:
        """What an operator does with targets that are said to differ: load them again, each by
        itself, for one that can't be must not keep the others as they are. One that is not
        ``there`` at the source any more was renamed, or dropped, by what is kept for it."""
        for name in ill:
            if name in there:
                self._begin("tables", "load", self.target(name), "--anew")
            else:
                self._begin("tables", "retry", self.target(name))

    def _begin(self, *words: str) -> None:
        print(f"  {self.pipeline}: binlogd {' '.join(words)}", flush=True)
        self._under_way.append(self.daemon.command(*words))

    def _resume_or_pause(self, what: str) -> None:
        if self._paused:
            self.resume()
            return
        self._paused.append(what)
        self.done.pauses += 1
        self._do("pause", what, "--reason", "at random")

    def _cancel(self) -> None:
        going = [job for job in self._jobs() if not job.state.is_final]
        if going:
            self.done.cancels += 1
            self._begin("jobs", "cancel", self._rng.choice(going).id)

    def _jobs(self) -> Sequence[Job]:
        return [job for job in self.daemon.jobs() if job.wanted.pipeline == self.pipeline]

    def resume(self) -> None:
        """Whatever is paused goes on."""
        while self._paused:
            self._do("resume", self._paused.pop())

    def _do(self, *words: str) -> None:
        """And wait for it: what comes behind it in any order would be another run."""
        self._begin(*words)
        said = self._under_way.pop().said()
        self.done.refused += said.status == 2
        if said.is_broken:
            self.faults.append(str(said))

    @property
    def is_busy(self) -> bool:
        """Whether a command runs or a job is under way."""
        return any(one.runs for one in self._under_way) or any(map(_goes_on, self._jobs()))

    def hear(self) -> None:
        """Take what came of all that was begun; what has not ended by now is a fault."""
        if stuck := [f"{job.id} ({job.message})" for job in self._jobs() if _goes_on(job)]:
            self.faults.append(f"after {ENDS_WITHIN_S:.0f} s not ended: {', '.join(stuck)}")
        self._hear()
        self._count()

    def _hear(self) -> None:
        for one in self._under_way:
            if one.runs:
                one.kill()
                self.faults.append(f"has not ended: {one}")
                continue
            said = one.said()
            self.done.refused += said.status == 2
            if said.status == 2:
                print(f"  {said}"[:600], flush=True)
            if said.is_broken:
                self.faults.append(str(said))
        self._under_way.clear()

    def _count(self) -> None:
        for job in self._jobs():
            if job.id in self._known or not job.state.is_final:
                continue
            self._known.add(job.id)
            self.done.loads += job.wanted.kind == "load" and job.state is State.DONE
            self.done.verifications += job.wanted.kind == "verify" and job.state is State.DONE
            if job.wanted.kind == "load" and job.state is State.DONE:
                # What differed before it was told by a mark, which the load has taken away.
                for loaded in map(TargetName.parse, job.wanted.targets):
                    self.differing.pop((loaded.namespace, loaded.table), None)
            if job.state is State.FAILED:
                self.done.refused += 1
                print(f"  {self.pipeline}: job {job.id} failed: {job.message[:300]}", flush=True)
                if not job.message:
                    self.faults.append(f"job {job.id} has failed, without a reason")
            for table in job.result.get("tables", ()) if job.wanted.kind == "verify" else ():
                self.done.repairs += len(table["repaired"])
                if table["differing"]:
                    name = TargetName.parse(table["target"])
                    rows = f"{job.id}: {table['rows_that_differ']}"
                    self.differing[name.namespace, name.table] = rows

    def verified(self, names: Sequence[Name], *options: str) -> Mapping[Name, Mapping[str, Any]]:
        """The result of a comparison of some tables, each by its name; none where it has none."""
        before = {job.id for job in self._jobs()}
        words = ("tables", "verify", *map(self.target, names), *options)
        self._begin(*words)
        said = self._ended()
        found: dict[Name, Mapping[str, Any]] = {}
        for job in self._jobs():
            if job.id in before or job.wanted.kind != "verify":
                continue
            self._known.add(job.id)
            self.done.verifications += 1
            for table in job.result.get("tables", ()):
                target = TargetName.parse(table["target"])
                found[target.namespace, target.table] = table
                self.done.repairs += len(table["repaired"])
        if not found:
            print(f"  {said}"[:900], flush=True)
        return found

    def _ended(self) -> Said:
        command = self._under_way.pop()
        pause = threading.Event()
        while command.runs:
            self.beat()
            pause.wait(0.5)
        said = command.said()
        if said.is_broken:
            self.faults.append(str(said))
        return said

    def prove(
        self,
        sink: Sink,
        source: Mapping[Name, Found],
        there: Mapping[Name, Stored],
        equal: Sequence[Name],
    ) -> Sequence[Difference]:
        """Of tables that are equal: that a verification says so, tells what is planted, and that a
        repair mends it. Gives what was planted."""
        names = [name for name in equal if name in there and not name[1].startswith(MARKER)]
        first = self.verified(names) if names else {}
        for name, table in first.items():
            if table["differing"]:
                rows = table["rows_that_differ"]
                self.faults.append(f"{name}: equal, but a verification tells {rows}")
        able = [name for name, table in first.items() if table["equal"] and self.plants]
        made = [
            one
            for one in planned(self._rng, {n: source[n] for n in able if n in source}, there)
            if not self._refused(sink.plant(one), one)
        ]
        self.done.planted += len(made)
        if made:
            self._repair(made)
        return made

    def _refused(self, error: str, one: Difference) -> bool:
        if error:
            print(f"  {one} could not be planted: {error[:300]}", flush=True)
        return bool(error)

    def _repair(self, made: Sequence[Difference]) -> None:
        names = list(dict.fromkeys(one.table for one in made))
        found = self.verified(names, "--repair")
        for name in names:
            table = found.get(name)
            if table is None:
                self.faults.append(f"{name}: was verified, and is in no result")
                continue
            told = {(str(next(iter(row["key"].values()))), row["what"])
                    for row in table["rows_that_differ"]}  # fmt: skip
            wanted = {(str(one.differs), one.what.value) for one in made if one.table == name}
            if told != wanted and not table["undecided"]:
                wrong = f"planted {sorted(wanted)}, told {sorted(told)}"
                self.faults.append(f"{name}: {wrong}: {table}")


def ended(operators: Sequence[Operator]) -> None:
    """Return when nothing is paused and no job is under way, or that takes too long."""
    for one in operators:
        one.resume()
    pause, deadline = threading.Event(), time.monotonic() + ENDS_WITHIN_S
    while time.monotonic() < deadline and (busy := [one for one in operators if one.is_busy]):
        busy[0].beat()
        pause.wait(0.5)
    for one in operators:
        one.hear()


def _goes_on(job: Job) -> bool:
    return not job.state.is_final
