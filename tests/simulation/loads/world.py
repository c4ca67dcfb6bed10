"""A life of the process beside a database that goes on, and a load that is driven between."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from actors.contract import messages as msg
from actors.contract.writes import StagedBatch, TargetState
from actors.runtime.mailbox import Tick
from changes.model.errors import LostRace, SinkUnavailable
from daemon.operations.engine.port import Advanced, Finished, JobFailed
from daemon.operations.engine.record import Job, JobRequest
from daemon.operations.load.attempts import undo
from daemon.operations.load.memory import Ending, LoadMemory, Step, places
from daemon.operations.load.ports import LoadSettings
from daemon.operations.load.rule import LoadSteps, new_memory
from daemon.state.edits import EditFailed
from databases.base.errors import DatabaseAway
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from tests.simulation.durable import PIPELINE
from tests.simulation.loads.durable import MARGIN_S, LoadDurable
from tests.simulation.loads.ports import ChunkSink, FakeLog, FakeTables
from tests.simulation.partitions import COMMITTER, FETCHER
from tests.simulation.source import target_of
from tests.simulation.world import Crash, World

SETTINGS = LoadSettings(
    margin_s=MARGIN_S,
    skew_s=0.0,
    settle_s=1e9,
    chunk_rows=4,
    parallel=2,
    attempts_per_hour=10**6,
    idle_s=None,
    rows_per_s=None,
)


REFUSED = "it can't hold that"
"""What the sink says of rows that it refuses."""


class LoadWorld(World):
    """Reads no further than the log is."""

    durable: LoadDurable

    def __init__(self, durable: LoadDurable, rng: random.Random, **faults: Any) -> None:
        super().__init__(durable, rng, **faults)
        self.now = durable.now
        self.stopping = False
        for address in self.logics:
            if address.role == "processor":
                self.control[address].append(Tick())

    def act(self) -> None:
        self.pass_time()
        super().act()
        # An act may wait for a timer: the database did not stand still meanwhile.
        self.durable.clockwork.settle(self.now)
        self.durable.now = self.now

    def pass_time(self) -> None:
        self.durable.clockwork.turn(self.rng, self.now)

    def _consume(self, limit: int) -> msg.Polled:
        self._rebalance()
        if self._paused:
            return msg.Polled()
        batches, ends = [], {}
        for source, position in list(self._position.items()):
            end = self.durable.clockwork.end(source)
            found = [(o, v) for o, v in self.durable.log[source] if position <= o < end][:limit]
            if found:
                self._position[source] = found[-1][0] + 1
                offsets, values = [o for o, _ in found], [v for _, v in found]
                batches.append(msg.Fetched(source, offsets, list(values), self._position[source]))
            elif end > position:
                ends[source] = self._position[source] = end
        return msg.Polled(tuple(batches), ends)

    def drain(self) -> None:
        """Stop as the daemon stops a pipeline. Raises Crash."""
        self.control[FETCHER].append(msg.StopFetching())
        for _ in range(3000):
            if sum(isinstance(event, msg.Drained) for event in self.heard) == 2:
                break
            self.act()
        self.control[COMMITTER].append(msg.SaveNow())
        while not any(isinstance(event, msg.SourceClosed) for event in self.heard):
            self.act()

    @property
    def swaps(self) -> bool:
        """Whether a table may take its name."""
        return any(isinstance(event, msg.Rebuilt) for event in self.heard)


class Driver:
    """Lives after lives, and one load job beside them. It is a ``Control`` of the job, too."""

    def __init__(
        self, durable: LoadDurable, rng: random.Random, tables: list[str], faults: dict[str, Any],
        settings: LoadSettings = SETTINGS, crashes: int = 0, *, tells_all: bool = True,
    ) -> None:  # fmt: skip
        self.durable, self.rng, self.faults, self.crashes = durable, rng, faults, crashes
        self.settings = settings
        self.tables = FakeTables(
            durable.clockwork, rng, self._passing, durable.shape.route, tells_all=tells_all
        )
        self.world = LoadWorld(durable, rng, **faults)
        self.trace: list[str] = []
        names = {target_of(name): ("s", name) for name in tables}
        wanted = JobRequest("load", PIPELINE, tuple(names))
        self.job = Job("load-1", wanted, memory=new_memory(names, {}).json())
        self.ended: str | None = None
        self.counts: Counter[str] = Counter()
        """What happened how often."""
        self._due = rng.random() * 5
        self.cancel_at: int | None = None
        """Before which step the job is cancelled."""
        self._steps = 0

    # --- Control

    asked = ""
    config = None

    def snapshot(self, pipeline: str) -> Snapshot:
        return self.durable.snapshot

    def sinks(self) -> Mapping[str, Any]:
        return {"lake": ChunkSink(self._write, self.tables.files)}

    def _write(self, batch: StagedBatch, rows: Any) -> TargetState:
        """A target that is refused is refused to the stream alone: a load would be given up."""
        writers = self.world._sink
        kept = writers._refusals, writers._refused
        writers._refusals, writers._refused = 0, set()
        try:
            return writers._write(batch, rows)
        finally:
            writers._refusals, writers._refused = kept

    def edit(self, pipeline: str, change: Callable[[Snapshot], Snapshot]) -> None:
        """Drain, change, start; or the process ends before or after that."""
        self._crash(0.1)
        self.world.drain()
        if self.rng.random() < 0.05:
            self._live()
            raise EditFailed("it does not end")
        self.durable.snapshot = change(self.durable.snapshot)
        self._crash(0.1)
        self._live()
        self._crash(0.1)

    # --- the lives

    def _live(self) -> None:
        self.durable.settle()
        self.world = LoadWorld(self.durable, self.rng, **self.faults)

    def _crash(self, chance: float) -> None:
        if self.crashes and self.rng.random() < chance:
            self.crashes -= 1
            raise Crash

    def _passing(self) -> None:
        """While a read goes on, so does everything else."""
        self._crash(0.03)
        for _ in range(self.rng.choice((0, 0, 3, 30))):
            self.world.act()

    def act(self) -> None:
        """One act of the pipeline, or one step of the job."""
        try:
            self._crash(0.0005)
            if self.ended is None and self.durable.now >= self._due and self.rng.random() < 0.2:
                self._step()
            elif self.world.swaps and self.rng.random() < 0.1:
                self.world.drain()
                self._live()
            else:
                self.world.act()
        except Crash:
            self._crashed()
        failed = [e for e in self.world.heard if isinstance(e, msg.PipelineFailed)]
        assert not failed, failed

    def _crashed(self) -> None:
        """The process begins again. A write that was under way may still land."""
        self.trace.append(f"{self.durable.now:.3f} crash")
        self.counts["crash"] += 1
        zombies = self.world._sink._zombies
        self._live()
        self.world._sink._zombies += zombies
        self.tables.crash()

    def _step(self) -> None:
        steps = LoadSteps(
            self.tables, FakeLog(self.durable.clockwork), self.settings, lambda: self.durable.now
        )
        self.trace.append(f"{self.durable.now:.3f} step {_stages(self.job)}")
        self._steps += 1
        try:
            if self.cancel_at is not None and self._steps >= self.cancel_at:
                self._cancel(steps)
                return
            outcome = steps.step(self.job, self)  # type: ignore[arg-type]
        except (SinkUnavailable, LostRace, DatabaseAway, EditFailed) as error:
            self.trace.append(f"{self.durable.now:.3f} away: {error}")
            self.counts["away"] += 1
            self._due = self.durable.now + 0.1
            return
        except JobFailed as error:
            self.ended = f"failed: {error}"
            self.counts["refused"] += REFUSED in self.ended
            return
        self._crash(0.05)  # before it is remembered
        if isinstance(outcome, Finished):
            self.ended = "done"
            return
        assert isinstance(outcome, Advanced)
        self._count(outcome)
        self.counts["hidden"] += "or as soon as" in outcome.message
        self._check_end(LoadMemory.of(outcome.memory).ending)
        self.job = replace(self.job, memory=outcome.memory)
        self.trace.append(f"{self.durable.now:.3f} {outcome.message}")
        self._due = self.durable.now + min(outcome.wait_s, 2.0)

    def _check_end(self, ending: Ending | None) -> None:
        """All that a read has seen is before an end that has just been found: those of later
        attempts see more."""
        known = LoadMemory.of(self.job.memory).ending
        if ending is None or not ending.ready or (known is not None and known.ready):
            return
        history, ends = self.durable.clockwork.history, places(ending.ends)
        came: Counter[TopicPartition] = Counter()
        for source in history.commits[: self.tables.seen]:
            offset = history.stream.log[source][came[source]][0]
            came[source] += 1
            assert source not in ends or offset < ends[source], f"{source} ends at {ends[source]}"

    def _cancel(self, steps: LoadSteps) -> None:
        memory = LoadMemory.of(self.job.memory)
        log = FakeLog(self.durable.clockwork)
        clock = steps._clock
        undo(
            Step(self.job, self, memory, self.tables, log, self.settings, clock), {*memory.targets}
        )  # type: ignore[arg-type]
        self.ended = "cancelled"

    def _count(self, outcome: Advanced) -> None:
        """Why attempts ended."""
        before = self.job.memory["targets"]
        for name, each in outcome.memory["targets"].items():
            why = each.get("why", "")
            if why != before[name].get("why", ""):
                kinds = {"statement": "a statement", "move": "a key is", "altered": "was altered"}
                self.counts.update(kind for kind, said in kinds.items() if said in why)

    @property
    def ended_rightly(self) -> bool:
        """It is done, or its sink refused the stream's changes over the rows, and it says so."""
        refused = self.ended is not None and REFUSED in self.ended
        return self.ended == "done" or (refused and bool(self.faults.get("refusals")))

    @property
    def over(self) -> bool:
        """Whether all is applied, and the load at its end."""
        if (
            self.ended is None
            or not self.durable.clockwork.over
            or self.durable.snapshot.rebuilding
        ):
            return False
        ledger = self.world.logics[COMMITTER]._ledger
        ends = self.durable.end.items()
        read = all(s in ledger.sources and ledger.frontier(s) >= end for s, end in ends)
        return read and not self.world._quarantined()

    def run(self, limit: int = 60_000) -> None:
        """Until all is over."""
        for _ in range(limit):
            if self.over:
                return
            self.act()
        stages = _stages(self.job)
        raise AssertionError(f"not over: {self.ended}, {stages}, {self.trace[-30:]}")


def _stages(job: Job) -> dict[str, str]:
    targets: dict[str, Any] = job.memory["targets"]
    return {name: each.get("stage", "new") for name, each in targets.items()}
