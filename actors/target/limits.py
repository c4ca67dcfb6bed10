"""Keeps what one processor holds within its budgets: stages, spills, or leaves data waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import bare
from actors.contract.writes import StagedBatch
from actors.target.attempts import Via
from actors.target.buffer import TargetBuffer
from actors.target.quarantine import Quarantines
from actors.target.release import Releases
from actors.target.settings import ProcessorSettings
from actors.target.target_state import Phase
from offsets.position import TopicPartition

# Targets that a person has paused: nothing is written, what comes is kept in their spill.

WHY = "a person has paused it"


class PausedTargets:
    """Those of one processor. A paused target is spilled as one whose sink is away, and its release
    waits for that person's word: so it goes on exactly where it was."""

    def __init__(self, quarantines: Quarantines, names: Iterable[str]) -> None:
        self._quarantines = quarantines
        self._names = set(names)

    def __contains__(self, target: str) -> bool:
        return target in self._names

    def put(self, target: str, paused: bool) -> fx.Reply:
        """Pause a target, or not any more."""
        if paused:
            self._names.add(target)
        else:
            self._names.discard(target)
        return fx.Reply(True)

    def advance(
        self, buffer: TargetBuffer, epochs: Mapping[TopicPartition, int], now: float
    ) -> list[fx.TargetEffect]:
        """Spill what waits for a paused target. A write in flight goes on; a release breaks off."""
        quarantine = buffer.quarantine
        if quarantine is not None:
            if quarantine.away and quarantine.releasing and not quarantine.ending:
                return self._quarantines.relapse(buffer, WHY, now, refused=False)
            return []
        waits = bool(buffer.queue.chunks or buffer.staged_files)
        sound = buffer.load is None and buffer.doomed is None and buffer.pending_letter is None
        if not (waits and sound) or buffer.life.phase is Phase.STAGING:
            return []
        return self._quarantines.begin(buffer, WHY, epochs, now, away=True)


# Tables of a database that are written at cuts alone, where the configuration says so: nothing is
# due before the fetcher stands at a boundary and has all of it written (``msg.Flush``). Only where
# no more can be held is a batch written between two cuts. What is held at a stop is not written: it
# is read again from the log.


class AtCuts:
    """Says so of one processor's targets. Deterministic: it answers with effects."""

    def __init__(
        self,
        pipeline: str,
        settings: ProcessorSettings,
        flushing: Callable[[], bool],
        holds: Callable[[], bool],
    ) -> None:
        """``flushing``: whether all is to be written now. ``holds``: whether no more can be
        held."""
        self._fetcher, self._cuts = Address(pipeline, "fetcher"), Address(pipeline, "cuts")
        self._sinks, self._much = settings.together, settings.buffer_bytes / 2
        self._flushing, self._holds = flushing, holds
        self._asked = self._ends = False

    def covers(self, buffer: TargetBuffer) -> bool:
        """Whether a target is written at cuts. One that is released or loaded is written by
        itself."""
        alone = buffer.quarantine is not None or buffer.load is not None
        return buffer.route.name.sink in self._sinks and not alone

    def gatherer(self, buffer: TargetBuffer, batch: StagedBatch) -> Via:
        """Who has a write published with others': also rows that come late to their cut. A
        statement goes by itself, and is named."""
        if not self.covers(buffer) or not (self._flushing() or not self._holds()):
            return None, []
        if batch.ddl or batch.changes_name:
            fields = {"target": buffer.name, "what": "a statement"}
            return None, [fx.Log("info", "written_ahead", fields)]
        rows = batch.path is not None and not batch.is_barrier
        return self._cuts if rows else None, []

    def waits(self, buffer: TargetBuffer) -> bool:
        """Whether what a target holds is kept."""
        now = not self._ends and (self._flushing() or self._holds())
        return self.covers(buffer) and not now

    def is_over(self, buffer: TargetBuffer) -> bool:
        """Whether nothing of it is to be written any more, in a run that ends. A write that did not
        come to its cut is in the log."""
        kept = buffer.life.phase is Phase.READY and self.waits(buffer)
        write = buffer.life.waiting
        missed = write is not None and write.gatherer is not None
        return buffer.empty or buffer.life.phase is Phase.STOPPED or kept or missed

    def stops(self) -> list[fx.TargetEffect]:
        """The run ends, maybe for an error: a cut that is under way has all of its tables, or
        none."""
        self._ends = True
        return [fx.Tell(self._cuts, msg.PipelineStops())] if self._sinks else []

    def forget(self, gone: msg.Forget) -> list[fx.TargetEffect]:
        """Partitions went away: the writes that wait for a cut of them come back."""
        return [fx.Tell(self._cuts, gone)] if self._sinks else []

    def ask(self, buffer: TargetBuffer) -> list[fx.TargetEffect]:
        """Have a cut made soon where more than half of what one write takes is kept."""
        if self._flushing():
            self._asked = False
        much = buffer.queue.size >= self._much or buffer.staged_files
        if not much or self._asked or not self.waits(buffer):
            return []
        self._asked = True
        return [fx.Tell(self._fetcher, msg.CutSoon())]


# Targets whose sink is away: they fill their own spill, so that targets in other sinks go on.


class Absences:
    """Says which of one processor's targets are spilled. Deterministic: it answers with effects."""

    def __init__(
        self,
        quarantines: Quarantines,
        releases: Releases,
        paused: PausedTargets,
        after_s: float | None,
    ) -> None:
        """``after_s``: how long a sink may take to answer; None: for ever, there is no other one
        that would have to wait for it."""
        self._quarantines = quarantines
        self._releases = releases
        self._paused = paused
        self._after_s = after_s

    def due_at(self, buffer: TargetBuffer) -> float | None:
        """When a target is spilled unless its sink answers before. None: not."""
        if self._after_s is None or buffer.asked_at is None or not self._may_be_spilled(buffer):
            return None
        return buffer.asked_at + self._after_s

    def advance(
        self,
        buffer: TargetBuffer,
        epochs: Mapping[TopicPartition, int],
        now: float,
        draining: bool,
    ) -> list[fx.TargetEffect]:
        """Spill a target whose sink has been silent for too long, or begin its release."""
        buffer.note_asked(now)
        if buffer.name in self._paused:
            return self._paused.advance(buffer, epochs, now)
        quarantine = buffer.quarantine
        if quarantine is not None and draining and quarantine.away and buffer.life.waiting:
            # A stop does not wait for the sink: the spill has what is in the write.
            why = "the daemon stops, and its sink takes no write"
            return self._quarantines.relapse(buffer, why, now, refused=False)
        if quarantine is not None:
            return self._releases.of_away(buffer, draining)
        due_at = self.due_at(buffer)
        if due_at is None or now < due_at:
            return []
        assert buffer.asked_at is not None
        why = f"its sink has not answered for {now - buffer.asked_at:.0f} s"
        if buffer.tally.lasting and buffer.tally.error:
            why += f": {bare(buffer.name, buffer.tally.error)}"
        return self._quarantines.begin(buffer, why, epochs, now, away=True)

    def overflows(
        self, buffers: Collection[TargetBuffer], epochs: Mapping[TopicPartition, int], now: float
    ) -> list[fx.TargetEffect]:
        """Spill the largest target of the sink for which more than half of all waits."""
        if self._after_s is None:
            return []
        waiting: Counter[str] = Counter()
        for buffer in buffers:
            waiting[buffer.route.name.sink] += buffer.held_bytes + buffer.staged_bytes
        sink, most = max(waiting.items(), key=lambda item: item[1])
        if most * 2 <= waiting.total():
            return []
        mine = [b for b in buffers if b.route.name.sink == sink and self._may_be_spilled(b)]
        if not mine:
            return []
        largest = max(mine, key=lambda b: b.held_bytes + b.staged_bytes)
        why = f"more waits for {sink} than for all other sinks, and there is no room for more"
        return self._quarantines.begin(largest, why, epochs, now, away=True)

    def _may_be_spilled(self, buffer: TargetBuffer) -> bool:
        """A request to the sink is open, something waits behind it, and nothing but the sink holds
        that up."""
        asked = buffer.life.phase in (Phase.OPENING, Phase.WRITING)
        waits = bool(buffer.queue.chunks or buffer.staged_files)
        alone = buffer.quarantine is None and buffer.load is None
        sound = buffer.doomed is None and buffer.pending_letter is None
        return asked and waits and alone and sound


class Relief:
    """Deterministic: it answers with effects."""

    def __init__(
        self,
        settings: ProcessorSettings,
        absences: Absences,
        may_stage: Callable[[TargetBuffer], bool],
        stage_behind: Callable[[TargetBuffer], list[fx.TargetEffect]],
    ) -> None:
        self._settings = settings
        self._absences = absences
        self._may_stage = may_stage
        self._stage_behind = stage_behind
        self.holds = False
        """Whether data is left waiting."""

    def relieve(
        self, buffers: Collection[TargetBuffer], epochs: Mapping[TopicPartition, int], now: float
    ) -> list[fx.TargetEffect]:
        """Stage the largest buffers while too much is held. Where none can be, spill what waits
        for a sink that is behind the others; else leave data waiting."""
        out: list[fx.TargetEffect] = []
        settings = self._settings
        waiting = filter(self._may_stage, (b for b in buffers if b.queue.chunks))
        candidates = sorted(waiting, key=lambda b: b.queue.size)
        disk_is_full = not settings.staged.hold(self._staged(buffers))
        while not settings.memory.hold(self._held(buffers)) and candidates:
            if disk_is_full:
                break
            out += self._stage_behind(candidates.pop())
        while self._is_full(buffers):
            spilled = self._absences.overflows(buffers, epochs, now)
            if not spilled:
                break
            out += spilled
        hold = self._is_full(buffers)
        if hold != self.holds:
            self.holds = hold
            fields = {
                "buffered_bytes": self._held(buffers),
                "staged_bytes": self._staged(buffers),
            }
            out += [fx.Hold(hold), fx.Log("info", "hold" if hold else "flow", fields)]
        return out

    def _held(self, buffers: Collection[TargetBuffer]) -> int:
        return sum(b.held_bytes for b in buffers)

    def _staged(self, buffers: Collection[TargetBuffer]) -> int:
        return sum(b.staged_bytes for b in buffers)

    def _is_full(self, buffers: Collection[TargetBuffer]) -> bool:
        room = self._settings.memory.hold(self._held(buffers))
        return not (self._settings.staged.hold(self._staged(buffers)) and room)
