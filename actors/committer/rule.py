"""The committer's rule: frontiers go to the stores in their order, then to the group's commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from actors.committer.cutting import CutWatch
from actors.committer.debt import DebtBounds, FrontierDebt, HeldFrontier
from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import CommitterFigures, Figures, LaneFigures, PartitionFigures
from actors.contract.histogram import FRESH_S, WRITE_S, Histogram
from actors.runtime.mailbox import Tick
from offsets.ledger import LaneLedger
from offsets.parts import RunningTrail
from offsets.position import Lane, LogEpochs, Timeline, TopicPartition
from offsets.rebuild import LoadHindered
from offsets.rebuild_steps import broken
from offsets.snapshot import PartitionState, Snapshot, SpillMark, TargetMark
from offsets.store import below_spills
from settings.shell import quoted

SOME = 20
"""Partitions that an event names."""

PROGRESS_S = 0.2
"""Between two reports of progress, as often as the bar is drawn."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Start the commit schedule (sent once, by the code that starts the actors)."""


Noted = msg.FormatDetected | msg.SpillListed | msg.LoadBroken | msg.CutAsked | msg.CutsWithdrawn
"""What the next snapshot says beside the frontiers, and what waits for them."""


class CommitterLogic:
    """One per pipeline; owns the ledger. What it says is durable, is durable."""

    def __init__(
        self,
        pipeline: str,
        recorded: Snapshot,
        interval_s: float,
        until: Mapping[TopicPartition, int] | None,
        commits: bool = True,
        debt: DebtBounds | None = None,
        cut: CutWatch | None = None,
    ) -> None:
        """``recorded`` is the last run's snapshot (or an empty one), with this run's topic ids.

        ``until``: report ``CaughtUp`` once the frontier of each of these partitions is there. They
        are all of the topics', queried before any was assigned. None: never. ``commits``: the
        group's commit is one of the configured stores, the last. ``debt``: from where on the
        target that holds a frontier is named; None: never. ``cut``: says when a cut's
        boundary is reached.
        """
        self._pipeline = pipeline
        self._fetcher = Address(pipeline, "fetcher")
        self._supervisor = Address(pipeline, "supervisor")
        self._interval_s = interval_s
        self._commits = commits
        self._recorded = recorded
        self._ledger = LaneLedger()
        self._debt = None if debt is None else FrontierDebt(debt)
        self._cut = cut or CutWatch(pipeline)
        self._epochs: dict[TopicPartition, int] = {}
        self._until = dict(until or {})
        self._report_caught_up = until is not None
        self._awaited: TopicPartition | None = None
        self._moved, self._told_at = False, float("-inf")
        self._confirmed = {s: state.confirmed for s, state in recorded.partitions.items()}
        # Of these the group does not know yet that an operator has moved them.
        self._reset = {s for s, state in recorded.partitions.items() if state.reset}
        self._adopted: dict[TopicPartition, int | None] = {}
        self._reread = {s: state.reread for s, state in recorded.partitions.items()}
        self._withdraws = {s: state.withdraws for s, state in recorded.partitions.items()}
        self._begin = {s: state.begin for s, state in recorded.partitions.items()}
        self._left = dict(recorded.partitions)
        self._read: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, str] = {}
        self._gone: frozenset[str] = frozenset()
        self._logs: dict[TopicPartition, LogEpochs] = {}
        self._marks: dict[str, TargetMark] = dict(recorded.targets)
        self._spills: dict[str, SpillMark] = dict(recorded.spills)
        self._formats = dict(recorded.formats)
        self._rebuilds = dict(recorded.rebuilds)
        self._rebuilding = set(recorded.rebuilds)
        self._on_disk: Snapshot | None = None
        self._owned: tuple[TopicPartition, ...] = ()
        self._saving: Snapshot | None = None
        self._releasing: tuple[TopicPartition, ...] = ()
        self._ending = False
        self._stale = 0
        self._changes = 0
        self._timelines: dict[TopicPartition, Timeline] = {}
        self._running: dict[TopicPartition, RunningTrail] = {}
        self._applied_ms: dict[str, int] = {}
        self._write_s, self._write_freshness_s = Histogram(WRITE_S), Histogram(FRESH_S)
        self._saved_at: float | None = None
        self._save_error: str | None = None

    def handle(self, message: object, now: float) -> list[fx.CommitterEffect]:
        """React to one message. ``now`` is in monotonic seconds."""
        match message:
            case msg.Dispatched():
                out = self._dispatched(message)
            case msg.Written():
                out = self._written(message)
            case msg.DeadLettered():
                out = self._dead_lettered(message)
            case _ if isinstance(message, Noted):
                out = self._noted(message, now)
            case msg.EpochStarted():
                out = self._started(message)
            case msg.TopicsGone(topics):
                out = self._topics_gone(topics)
            case msg.Confirmed(frontiers):
                self._confirmed.update(frontiers)
                self._reset.difference_update(frontiers)
                out = []
            case Begin():
                out = [fx.WakeAt(now + self._interval_s)]
            case Tick():
                out = [*self._save(), *self._look_at_debt(now), fx.WakeAt(now + self._interval_s)]
            case msg.SaveNow():
                self._ending = True
                out = [*self._save(), fx.WakeAt(None)]
            case msg.Release(sources):
                out = [*self._cut.drop(sources), *self._release(sources)]
            case msg.Saved():
                self._saved_at, self._save_error = now, None
                out = self._saved_as(message)
            case Figures():
                return [fx.Reply(self._figures(now))]
            case msg.SaveFailed(reason):
                out = self._save_failed(reason)
            case _:
                raise TypeError(f"the committer does not know {message!r}")
        out += self._look_at_cut(now)
        caught_up = self._caught_up()
        return out + self._rebuilt() + self._progressed(now, last=bool(caught_up)) + caught_up

    def _release(self, sources: tuple[TopicPartition, ...]) -> list[fx.CommitterEffect]:
        self._releasing = sources
        return self._save()

    def _look_at_cut(self, now: float) -> list[fx.CommitterEffect]:
        if not self._cut.waits:
            return []
        adopted = min((at for at in self._adopted.values() if at is not None), default=None)
        known = self._marks, self._spills, self._rebuilds, self._reread, adopted
        return self._cut.look(self._ledger, *known, now)

    def _noted(self, said: Noted, now: float) -> list[fx.CommitterEffect]:
        """What the next snapshot says beside the frontiers, and what waits for them."""
        match said:
            case msg.CutAsked(epochs):
                if epochs.items() <= self._epochs.items():
                    self._cut.ask(said, now)
            case msg.CutsWithdrawn(positions):
                done = positions.items()
                self._withdraws = dict(each for each in self._withdraws.items() if each not in done)
            case msg.FormatDetected(topic, name):
                self._formats[topic] = name
            case msg.SpillListed(target, mark):
                return self._list_spill(target, mark)
            case msg.LoadBroken(into, why):
                return self._load_broken(into, why)
        return []

    # --- the ledger

    def _started(self, started: msg.EpochStarted) -> list[fx.CommitterEffect]:
        source, out = started.source, self._cut.drop((started.source,))
        left = self._frontiers().get(source)
        out += self._holes(started, started.start if left is None else left)
        self._epochs[source] = started.epoch
        self._ledger.assign(source, started.start)
        if left != started.start:
            self._cut.passed_on(self._marks)
        self._timelines[source] = Timeline()
        self._logs[source] = LogEpochs(started.log)
        self._running[source] = RunningTrail(started.running)
        self._until.setdefault(source, started.until)
        self._confirmed[source] = None if source in self._reset else started.confirmed
        self._adopted[source] = started.adopted
        # What the group has committed meanwhile, others of it have read.
        if left is None or (started.start > left and started.start != started.confirmed):
            self._begin[source] = started.start
        if started.topic_id is not None:
            self._topic_ids[source.topic] = started.topic_id
        # File before data: a start that was configured or forced must not be decided again, at
        # another place, because the process died before the first regular save.
        return out if started.more else out + self._save()

    def _topics_gone(self, topics: frozenset[str]) -> list[fx.CommitterEffect]:
        """Report each once, with what is lost with it, and wait for nothing of it."""
        new, self._gone = topics - self._gone, topics
        self._until = {s: end for s, end in self._until.items() if s.topic not in topics}
        out: list[fx.CommitterEffect] = []
        frontiers = self._frontiers()
        for topic in sorted(new):
            mine = [source for source in sorted(frontiers) if source.topic == topic]
            pending = sum(max(0, self._read.get(s, 0) - frontiers[s]) for s in mine)
            applied = {str(source): frontiers[source] for source in mine[:SOME]}
            fields = {"topic": topic, "applied_below": applied, "read_not_applied": pending}
            out.append(fx.Log("warning", "topic_gone", fields))
        return out

    def _holes(self, started: msg.EpochStarted, left: int) -> list[fx.CommitterEffect]:
        """What another member has read of a partition is not in a table that is filled here.
        ``left``: where this one left the partition."""
        source = started.source
        for target, rebuild in self._rebuilds.items():
            if source in rebuild.reads and left < started.start:
                reason = (
                    f"{source} is read from {started.start} on and was left at {left}: the rebuild "
                    f"of {target} lacks what is between. Give it up, `binlogd tables rebuild "
                    f"{quoted(target)} --cancel`, and begin it again with one member in the group"
                )
                failed = msg.PipelineFailed(self._pipeline, reason)
                return [fx.Tell(self._supervisor, failed)]
        return []

    def _dispatched(self, sent: msg.Dispatched) -> list[fx.CommitterEffect]:
        if self._epochs.get(sent.source) != sent.epoch:
            return self._drop_stale(sent.source, sent.epoch)
        self._ledger.dispatched(
            sent.source, sent.next_offset, sent.lanes, sent.runs, sent.fragments
        )
        for span in sent.epochs:
            self._logs[sent.source].add(span)
        if sent.running:
            self._running[sent.source].add(sent.next_offset, sent.running)
        if sent.time_ms is not None:
            timeline = self._timelines[sent.source]
            timeline.add(sent.next_offset, sent.time_ms)
            timeline.forget_below(self._ledger.frontier(sent.source))
        return []

    def _written(self, written: msg.Written) -> list[fx.CommitterEffect]:
        """Take an acknowledgement, unless the partition has gone since.

        Between revoke and reassignment another member may have moved on from another frontier:
        taking this acknowledgement would mark *its* offsets as done.
        """
        out: list[fx.CommitterEffect] = []
        target = str(written.target)
        newest_ms: list[int] = []
        for source, through in written.through.items():
            epoch = written.epochs[source]
            if epoch == msg.OF_SPILL:
                continue
            if self._epochs.get(source) != epoch:
                out += self._drop_stale(source, epoch)
            else:
                self._ledger.done(Lane(source, target), through)
                newest_ms += self._note_time(source, target, through)
        if written.at_ms is not None:
            self._write_s.observe(written.seconds)
            if newest_ms:
                self._write_freshness_s.observe((written.at_ms - max(newest_ms)) / 1000)
        if written.state is not None:
            state = written.state
            # Inside a message without a version: marks restored from it would lack the step.
            version = None if state.steps else state.version
            differs = state.rows_may_differ
            mark = TargetMark(version, dict(state.hwms), rows_may_differ=differs)
            self._marks[target] = mark
            self._cut.seen(target)
        self._changes += written.changes
        self._moved = True
        return out

    def _dead_lettered(self, letter: msg.DeadLettered) -> list[fx.CommitterEffect]:
        """A record without a known target is stored: it counts as applied."""
        if self._epochs.get(letter.source) != letter.epoch:
            return self._drop_stale(letter.source, letter.epoch)
        self._ledger.done(Lane(letter.source, msg.DEAD_LETTERS), letter.offset)
        self._moved = True
        return []

    def _list_spill(self, target: str, mark: SpillMark | None) -> list[fx.CommitterEffect]:
        if mark is None:
            self._spills.pop(target, None)
        else:
            self._spills[target] = mark
        return []

    def _load_broken(self, into: str, why: LoadHindered) -> list[fx.CommitterEffect]:
        """Recorded before the messages count as done that the table will not get any more."""
        for target, rebuild in self._rebuilds.items():
            if rebuild.into == into:
                self._rebuilds[target] = broken(rebuild, why)
                fields = {"target": target, "reason": why.reason}
                return [fx.Log("warning", "load_broken", fields), *self._save()]
        return []

    def _note_time(self, source: TopicPartition, target: str, through: int) -> list[int]:
        """The time of the last of its messages, if that is known."""
        timeline = self._timelines[source]
        time_ms = timeline.time_ms(through)
        if time_ms is not None:
            self._applied_ms[target] = max(time_ms, self._applied_ms.get(target, time_ms))
        timeline.forget_below(self._ledger.frontier(source))
        return [] if time_ms is None else [time_ms]

    def _look_at_debt(self, now: float) -> list[fx.CommitterEffect]:
        if self._debt is None:
            return []
        ledger = self._ledger
        held = [
            HeldFrontier(source, holder[0], holder[1], ledger.position(source))
            for source in ledger.sources
            if (holder := next(iter(ledger.holders(source)), None)) is not None
        ]
        return self._debt.look(held, now)

    def _progressed(self, now: float, *, last: bool) -> list[fx.CommitterEffect]:
        """Tell the supervisor now and then: it takes a look at all partitions."""
        if not self._moved or (now < self._told_at + PROGRESS_S and not last):
            return []
        self._moved, self._told_at = False, now
        return [fx.Tell(self._supervisor, self._progress())]

    def _progress(self) -> msg.Progress:
        frontiers = self._ledger.frontiers()
        lag = sum(max(0, end - frontiers.get(source, end)) for source, end in self._until.items())
        return msg.Progress(self._pipeline, lag, self._changes)

    def _drop_stale(self, source: TopicPartition, epoch: int) -> list[fx.CommitterEffect]:
        self._stale += 1
        fields = {"source": str(source), "epoch": epoch, "so_far": self._stale}
        return [fx.Log("info", "stale_message_dropped", fields)]

    def _rebuilt(self) -> list[fx.CommitterEffect]:
        """Report once for each rebuild that the new table holds all that its old one did."""
        if not self._rebuilding:
            return []
        frontiers = self._frontiers()
        done = [
            name
            for name in sorted(self._rebuilding)
            for rebuild in (self._rebuilds[name],)
            # What was refused its name is the job's, which waits before it has it tried again.
            if rebuild.refused is None
            if rebuild.into not in self._spills and rebuild.passed_by(frontiers)
        ]
        self._rebuilding.difference_update(done)
        return [fx.Tell(self._supervisor, msg.Rebuilt(self._pipeline, name)) for name in done]

    def _frontiers(self) -> dict[TopicPartition, int]:
        """Of the partitions that are read here, and of those that were."""
        left = {source: state.frontier for source, state in self._left.items()}
        return left | self._ledger.frontiers()

    def _caught_up(self) -> list[fx.CommitterEffect]:
        if not self._report_caught_up:
            return []
        if self._awaited is None or not self._is_behind(self._awaited):
            self._awaited = next(filter(self._is_behind, self._until), None)
        if self._awaited is not None:
            return []
        self._report_caught_up = False
        return [fx.Tell(self._supervisor, msg.CaughtUp(self._pipeline))]

    def _is_behind(self, source: TopicPartition) -> bool:
        """Where the log ends inside a message its rest may never come: it is not waited for."""
        applied = self._ledger.applied(source) if source in self._epochs else -1
        return applied < self._until.get(source, -1)

    # --- the stores, then the group

    def snapshot(self) -> Snapshot:
        """What the stores should say now."""
        frontiers = self._ledger.frontiers()
        read = {source: self._state(source, frontier) for source, frontier in frontiers.items()}
        return Snapshot(
            pipeline=self._recorded.pipeline,
            group=self._recorded.group,
            topic_ids={**self._recorded.topic_ids, **self._topic_ids},
            partitions={
                source: replace(
                    state,
                    confirmed=self._confirmed.get(source),
                    reset=source in self._reset,
                    withdraws=self._withdraws.get(source),
                )
                for source, state in {**self._left, **read}.items()
            },
            targets=dict(self._marks),
            forced=self._recorded.forced,
            spills=dict(self._spills),
            rebuilds=dict(self._rebuilds),
            formats=dict(self._formats),
        )

    def _state(self, source: TopicPartition, frontier: int) -> PartitionState:
        reread = self._reread.get(source)
        return PartitionState(
            frontier,
            None,
            self._logs[source].below(frontier),
            running=self._running[source].at(frontier),
            adopted=self._adopted[source],
            reread=reread if reread is not None and reread > frontier else None,
            begin=self._begin.get(source),
        )

    def _save(self) -> list[fx.CommitterEffect]:
        snapshot = self.snapshot()
        owned = tuple(self._epochs)
        # The same text for more partitions is a change: a store keeps only those of the owned ones.
        if snapshot == self._on_disk and owned == self._owned:
            return self._saved_as(msg.Saved(self._ledger.frontiers()))
        self._saving = snapshot
        self._owned = owned
        return [fx.SaveSnapshot(snapshot, owned)]

    def _saved_as(self, saved: msg.Saved) -> list[fx.CommitterEffect]:
        """They are durable: only now may the group hear of these frontiers."""
        self._on_disk, self._saving = self._saving or self._on_disk, None
        shared = below_spills(saved.frontiers, self._confirmed, self._spills.values())
        if self._releasing:
            sources, self._releasing = self._releasing, ()
            # Only what was read here: a position that was refused must not be committed back.
            mine = [source for source in sources if source in self._epochs]
            frontiers = {s: shared[s] for s in mine if s in shared}
            self._release_partitions(sources)
            return [fx.Reply(frontiers if self._commits else {})]
        changed = {
            source: frontier
            for source, frontier in shared.items()
            if self._commits and source in self._epochs and self._confirmed.get(source) != frontier
        }
        if not changed and not self._ending:
            return []
        epochs = {source: self._epochs[source] for source in changed}
        return [fx.Tell(self._fetcher, msg.CommitFrontiers(changed, epochs, self._ending))]

    def _save_failed(self, reason: str) -> list[fx.CommitterEffect]:
        """What was stored before is whole, the group's commit at or below it: time is lost."""
        self._saving, self._save_error = None, reason
        self._on_disk = None
        out: list[fx.CommitterEffect] = [fx.Log("error", "offsets_not_stored", {"reason": reason})]
        if self._releasing:
            self._release_partitions(self._releasing)
            self._releasing = ()
            out.append(fx.Reply({}))
        elif self._ending:
            failed = f"the positions can't be stored: {reason}"
            out.append(fx.Tell(self._supervisor, msg.PipelineFailed(self._pipeline, failed)))
            out.append(fx.Tell(self._fetcher, msg.CommitFrontiers({}, {}, last=True)))
        return out

    def _release_partitions(self, sources: tuple[TopicPartition, ...]) -> None:
        for source in sources:
            if source in self._epochs:
                self._left[source] = self._state(source, self._ledger.frontier(source))
                self._read[source] = self._ledger.position(source)
                for known in (self._logs, self._running, self._adopted, self._epochs):
                    del known[source]
                del self._timelines[source]
                self._ledger.drop(source)

    # --- figures

    def _figures(self, now: float) -> CommitterFigures:
        return CommitterFigures(
            partitions={source: self._partition(source) for source in self._ledger.sources},
            applied_ms=dict(self._applied_ms),
            changes=self._changes,
            stale=self._stale,
            saved_age_s=None if self._saved_at is None else now - self._saved_at,
            save_error=self._save_error,
            rows_may_differ={
                target: mark.rows_may_differ
                for target, mark in self._marks.items()
                if mark.rows_may_differ is not None
            },
            targets=tuple(self._marks),
            write_s=self._write_s.figures(),
            write_freshness_s=self._write_freshness_s.figures(),
        )

    def _partition(self, source: TopicPartition) -> PartitionFigures:
        timeline, frontier = self._timelines[source], self._ledger.frontier(source)
        return PartitionFigures(
            frontier=frontier,
            position=self._ledger.position(source),
            confirmed=self._confirmed.get(source),
            applied_ms=timeline.newest_below(frontier),
            lanes=tuple(
                LaneFigures(target, first, timeline.time_ms(first))
                for target, first in self._ledger.holders(source)
            ),
        )
