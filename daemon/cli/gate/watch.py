"""Looks, again and again, whether the tables of one pipeline hold all up to a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.port import Look
from daemon.operations.engine.source_watermarks import LogMoments, Passage, moments_of, passage
from daemon.state.cuts_table import CutsTable
from daemon.state.dead_letters.index import LetterIndex, read_index
from daemon.state.dead_letters.standing import Standings
from daemon.state.recorded import recorded_snapshot
from databases.base.port import Moment
from offsets.cuts import why_withdrawn
from offsets.gate import cut_lacks, why_shut
from offsets.position import NO_OFFSET, TopicPartition
from offsets.recovery import check_topic_ids
from offsets.snapshot import Snapshot
from sparkwriter.kit.queries import NoAnswer

MARGIN_S = 60.0
"""How far before the moment the log is looked at, by the times of its records. Where clocks differ
by more, a later record proves the same."""


@dataclass(frozen=True, slots=True)
class GateLook:
    """One look. ``shut``: by target why it is not complete, of those that are not; empty: all are.
    ``ends``: of each partition that has passed the moment, below which offset all before it is.
    ``begins``: from where on these were read, where that is not from their first message.
    ``cut``: the cut that has them, where one was requested."""

    shut: Mapping[str, str]
    ends: Mapping[TopicPartition, int]
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)
    cut: int | None = None


class PipelineGate:
    """One pipeline's tables. One thread's."""

    def __init__(
        self,
        look: Look,
        reads: PipelineConfig,
        targets: Sequence[str],
        through_ms: int,
        may_be_empty: bool = False,
        cuts: CutsTable | None = None,
        counted: Callable[[PipelineConfig, Sequence[str]], Mapping[str, str]] | None = None,
        in_cut: int | None = None,
    ) -> None:
        """``through_ms``: the moment, in Unix milliseconds of the source's clock. ``cuts``: wait
        for a cut that has them, too. ``counted``: by target why its counts do not agree; they are
        to, too. ``in_cut``: of ``cuts`` this one has to have them, None: any later one may."""
        self._look, self._reads, self.targets = look, reads, tuple(targets)
        self._through_ms, self._may_be_empty, self._cuts = through_ms, may_be_empty, cuts
        self._counted, self._in_this = counted, in_cut
        self._moments: LogMoments | None = None
        self._passage: Passage | None = None
        self._others: Mapping[TopicPartition, int] | None = None

    def look(self) -> GateLook:
        """Look once. Raises NotAnswered, TopicMissing, LogUnreadable, LogGone, PositionError,
        StoreError, OSError, Unreadable, NoAnswer, DatabaseError."""
        found = self._followed()
        if found.waits_for:
            return GateLook(dict.fromkeys(self.targets, found.waiting()), found.ends)
        # Behind the search: what is written now may have come by a partition that was added.
        recorded, topics = self._recorded(), self._look.source(self._reads.name).topic_ids()
        check_topic_ids(recorded, topics)
        moments = self._open(recorded)
        if self._moments is None or moments.sources != self._moments.sources:
            self._moments = moments
            return GateLook(dict.fromkeys(self.targets, "partitions were added"), found.ends)
        ends = {**self._other_ends(topics, recorded, moments), **found.ends}
        letters = read_index(self._reads)
        needed = self._with_replayed(ends, Standings(letters))
        shut = self._cut_short(recorded, moments) or self._shut(recorded, letters, ends, needed)
        if not shut and self._counted is not None:
            shut = dict(self._counted(self._reads, self.targets))
        states = {source: recorded.partitions.get(source) for source in found.ends}
        begins = {source: state.begin for source, state in states.items() if state and state.begin}
        looked = GateLook(shut, found.ends, begins)
        if shut or self._cuts is None:
            return looked
        in_cut = {source: needed[source] for source in found.ends}
        return self._in_cut(self._cuts, recorded, looked, in_cut)

    def _recorded(self) -> Snapshot:
        found = recorded_snapshot(self._reads).snapshot
        return Snapshot(self._reads.name, self._reads.group) if found is None else found

    def _open(self, recorded: Snapshot) -> LogMoments:
        return moments_of(self._look, self._reads.name, recorded, *self.targets)

    def _followed(self) -> Passage:
        """How far the log has passed the moment."""
        if self._moments is None:
            self._moments = self._open(self._recorded())
        before = self._passage
        if before is None or before.at.keys() != set(self._moments.sources):
            begins = self._moments.ended_at(self._through_ms - round(MARGIN_S * 1000))
            before = replace(passage(Moment(self._through_ms * 1000), begins), logged=True)
        found = self._moments.followed(before)
        while found.waits_for and found.at != before.at:  # as far as the log goes now
            before, found = found, self._moments.followed(found)
        self._passage = found
        return found

    def _other_ends(
        self, topics: Iterable[str], recorded: Snapshot, moments: LogMoments
    ) -> Mapping[TopicPartition, int]:
        """Of the pipeline's other partitions, where they ended once these had passed the moment: in
        one of them may be a table's first row of another topic, which is not read yet."""
        if self._others is None:
            questions = self._look.source(self._reads.name).questions()
            known = set(recorded.partitions) - set(moments.sources)
            others = [each for each in questions.partitions(sorted(topics)) if each in known]
            self._others = questions.committed_ends(others)
        return self._others

    def _cut_short(self, recorded: Snapshot, moments: LogMoments) -> dict[str, str]:
        """The positions are of another log than the one that was looked at."""
        for source, end in moments.ends().items():
            state = recorded.partitions.get(source)
            if state is not None and state.frontier > end:
                why = f"{source} ends at {end}, below the committed position {state.frontier}"
                return dict.fromkeys(self.targets, why)
        return {}

    def _shut(
        self,
        recorded: Snapshot,
        letters: LetterIndex,
        ends: Mapping[TopicPartition, int],
        needed: Mapping[TopicPartition, int],
    ) -> dict[str, str]:
        standings = Standings(letters)
        unread = f"a dead letter can't be read: {letters.damage[0]}" if letters.damage else None
        found = {}
        for target in self.targets:
            places = [
                (letter.source, letter.offset)
                for letter, stands in standings.of(target)
                if stands.state == "open" and letter.offset < ends.get(letter.source, NO_OFFSET)
            ]
            why = why_shut(recorded, target, needed, places, self._may_be_empty) or unread
            if why is not None:
                found[target] = why
        return found

    def _with_replayed(
        self, ends: Mapping[TopicPartition, int], standings: Standings
    ) -> Mapping[TopicPartition, int]:
        """What must be written where records of below the ends are in the log again. A place that
        the log does not have is of another one, of that name."""
        behind = {
            (letter.source, stands.offset + 1)
            for target in self.targets
            for letter, stands in standings.of(target)
            if stands.replayed
            and letter.offset < ends.get(letter.source, NO_OFFSET) <= stands.offset
        }
        if not behind:
            return ends
        questions, found = self._look.source(self._reads.name).questions(), dict(ends)
        marks = questions.watermarks(sorted({source for source, _ in behind}))
        for source, end in behind:
            if end <= marks[source].high:
                found[source] = max(found[source], end)
        return found

    def _in_cut(
        self,
        cuts: CutsTable,
        recorded: Snapshot,
        looked: GateLook,
        ends: Mapping[TopicPartition, int],
    ) -> GateLook:
        """Whether a cut has them. Raises NoAnswer where the one that has to never will."""
        this = self._in_this
        lacks = "no cut is listed yet" if this is None else f"cut {this} is not listed yet"
        for cut in cuts.read(self._looked_for(cuts)):
            (by,) = cuts.withdrawn([cut])
            why = cut_lacks(cut, recorded, self.targets, ends)
            if by is not None:
                why = why_withdrawn(cut, by)
            if why is None:
                return replace(looked, cut=cut.number)
            if this is not None:
                raise NoAnswer(why)
            lacks = why
        return replace(looked, shut=dict.fromkeys(self.targets, lacks))

    def _looked_for(self, cuts: CutsTable) -> list[int]:
        """The newest one, or the one that has to have them; none yet."""
        newest = [one.number for one in cuts.listed()[:1]]
        this = self._in_this
        return newest if this is None else [this for number in newest if number >= this]
