"""Brings a pipeline to rest where all its tables can be cut: at the end of a transaction.

When a cut is due, what follows the next boundary in the log is held here. The processors write what
came before it, and the committer says when all of that is written, or for how long it waited. Then
what was held goes on. So a cut takes no barrier into any target, and a pipeline without cuts is as
it was.

The partitions of one log have no common order. So where there are several, each is held before its
first change that the source made later than all that has been handed out, and the cut goes through
the log at that time.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.fetcher.boundaries import (
    CutAt,
    GoesOn,
    before_later,
    behind,
    behind_all_whole,
    between_transactions,
    in_short,
    latest_ms,
    part_of,
    why_uncut,
)
from actors.fetcher.partition import AssignedPartition
from actors.fetcher.reassembly import Reassembly
from changes.formats.engine.format import Format
from changes.model.places import TransactionEnd
from offsets.cuts import Boundary
from offsets.position import TopicPartition
from settings.counted import counted

NO_END_S = 5.0
"""How long messages may come without the end of a transaction, until the cut goes through the log
at a time instead. So long, too, one of several partitions must be quiet to be taken as it is."""

BEHIND = "{} did not come to {}, the source's time of {} in ms, within {:g} s: {}"

Read = Mapping[TopicPartition, AssignedPartition]
"""The partitions that are read."""


class Cutting:
    """One per pipeline; used by the fetcher's thread alone. Times are monotonic seconds."""

    def __init__(
        self,
        pipeline: str,
        format_: Format,
        parts: Reassembly,
        every_s: float | None,
        patience_s: float = 10.0,
    ) -> None:
        """``every_s``: None: nothing is cut. ``patience_s``: how long a partition is held for
        others that are behind it, longer than it takes to tell a quiet one from those."""
        self._committer, self._format = Address(pipeline, "committer"), format_
        self._parts = parts
        self._every_s, self._patience_s = every_s, max(patience_s, NO_END_S + 1.0)
        self._due_at: float | None = None
        self._overdue_at: float | None = None
        self._sought_since: float | None = None
        self._counts: Mapping[str, int] = {}
        self._asked: msg.CutAsked | None = None
        self._held: list[msg.Fetched] = []
        self._latest: dict[TopicPartition, msg.Fetched] = {}
        self._latest_at: dict[TopicPartition, float] = {}
        self._among: Collection[TopicPartition] = ()
        self._until_ms: int | None = None
        self._ahead: TopicPartition | None = None
        self._reached: dict[TopicPartition, int] = {}
        self._void = False
        self._paused_alone = False
        self.uncut: str | None = None
        """Why nothing can be cut."""
        self._told: str | None = None
        self.behind: str | None = None
        """Why the last cut was not made."""
        self.since = float("-inf")
        """When the pipeline was last brought to rest."""
        self._flushed = False

    def counted(self, counts: Mapping[str, int]) -> None:
        """So many partitions the log has, by topic; empty where that is not known now."""
        self._counts = counts or self._counts

    def flush(self, now: float) -> bool:
        """Whether the processors are to write what they have: once a cut, and where none could be
        made in twice its time. What is written at cuts alone would else be held for ever."""
        overdue = self._overdue_at is not None and now >= self._overdue_at
        begins = not self._flushed if self.at_rest else overdue
        self._flushed |= self.at_rest
        if begins:
            self._put_off(now)
        return begins

    def _put_off(self, now: float) -> None:
        """From now on a cut has its time. Where none is made, nothing is ever overdue."""
        if self._every_s is not None:
            self._overdue_at = now + 2 * self._every_s + self._patience_s

    @property
    def at_rest(self) -> bool:
        """Whether a boundary was reached in each partition, and nothing goes on behind it."""
        return self._asked is not None

    def holds(self, source: TopicPartition) -> bool:
        """Whether messages of a partition wait here."""
        return self.at_rest or source in self._reached

    def take(
        self, fetched: msg.Fetched, read: Read, now: float
    ) -> tuple[msg.Fetched | None, list[fx.FetcherEffect]]:
        """What of a batch goes on, and the request for a cut where one is due and its boundary is
        in the batch. The rest is held."""
        if self._every_s is None:
            return fetched, []
        source = fetched.source
        if self.holds(source):
            self._held.append(fetched)
            return None, self._pause(source)
        found = self._boundary(fetched, now) if self._seeks(read, now) else None
        before, self._latest[source] = self._latest.get(source), fetched
        if len(self._among) < 2:
            self._latest_at[source] = now
        if found is None:
            return fetched, []
        place, end = found
        head: msg.Fetched | None = fetched
        if place < 0:
            assert before is not None, "a partition without a place is no reason to seek"
            head, self._latest[source] = None, before
            self._held.append(fetched)
        elif (rest := behind(fetched, place)) is not None:
            kept = slice(0, place + 1)
            head = self._latest[source] = part_of(fetched, kept, rest.offsets[0], fetched.epochs)
            self._held.append(rest)
        self._reached[source] = self._latest[source].next_offset
        return head, self._ask(read, end, now) or self._pause(source)

    def begin(self, source: TopicPartition, start: int, now: float) -> None:
        """A partition is read from here on, and all below is applied: maybe in no cut yet."""
        self._latest[source], self._latest_at[source] = msg.Fetched(source, [], [], start), now

    def idle(
        self, read: Read, now: float, unread: Collection[TopicPartition] = ()
    ) -> list[fx.FetcherEffect]:
        """The cut that is due behind the last messages that came, where no others follow them: a
        poll has brought none. One that did says nothing of those whose messages wait behind.
        Also where one was made there: it may have failed, or left a target out. Who makes cuts
        makes none where no table is another than in the last one. ``unread``: of these nothing is
        read, so the end of a transaction may be in the log."""
        self._latest_at |= {source: now for source in unread if source in self._latest_at}
        if read.keys() <= set(unread):
            self._sought_since = self._sought_since and now
            self._put_off(now)
        if self.at_rest or not self._seeks(read, now):
            return []
        end: TransactionEnd | None = None
        for source in self._among:
            if source in self._reached or not self._parts.is_whole(source):
                continue
            latest = self._latest[source]
            if len(self._among) == 1 and latest.values:
                end = self._format.transaction_end(latest.values[-1])
            if end is not None or now >= self._latest_at[source] + NO_END_S:
                self._reached[source] = latest.next_offset
        return self._ask(read, end, now)

    @property
    def is_aligning(self) -> bool:
        """Whether some partitions wait for others to come to a cut's time."""
        return len(self._among) > 1 and not self.at_rest

    def hear(self, said: msg.CutOver | msg.CutSoon, now: float) -> GoesOn | None:
        """The cut is made, or given up: what was held goes on. None where it is another one, and
        where one is to be made as soon as it can."""
        if isinstance(said, msg.CutSoon):
            self._due_at = now
        elif self._asked is not None and said.asked == self._asked:
            return GoesOn(self._go_on(now))
        return None

    def let_flow(self) -> bool:
        """Whether single partitions were paused since this was last asked."""
        paused, self._paused_alone = self._paused_alone, False
        return paused

    def lapsed(self, now: float) -> GoesOn | None:
        """What was held, where no cut comes of it: others of its partitions are behind, or went to
        another member."""
        if self._void:
            return GoesOn(self._go_on(now))
        if self.uncut is not None and self.uncut != self._told:
            self._told = self.uncut
            return GoesOn((), (fx.Log("warning", "cuts_not_made", {"what": self.uncut}),))
        since = self._sought_since
        if not self.is_aligning or since is None or now < since + self._patience_s:
            return None
        behind = sorted(set(self._among) - self._reached.keys())
        ahead = self._until_ms, self._ahead, self._patience_s
        self.behind = BEHIND.format(counted(len(behind), "partition"), *ahead, in_short(behind))
        said = fx.Log("warning", "cut_not_made", {"reason": self.behind})
        return GoesOn(self._go_on(now), (said,))

    def keep(self, sources: Container[TopicPartition]) -> None:
        """Drop what is held of other partitions; they are read again."""
        for source in [s for s in self._latest.keys() | self._reached if s not in sources]:
            self._latest.pop(source, None)
            self._reached.pop(source, None)
        if any(source not in sources for source in self._among):
            self._asked, self._void = None, True
        self._held = [each for each in self._held if each.source in sources]

    def _go_on(self, now: float) -> tuple[msg.Fetched, ...]:
        held, self._held = tuple(self._held), []
        self._asked, self._among, self._reached, self._void = None, (), {}, False
        assert self._every_s is not None
        self._due_at = now + self._every_s
        return held

    def _seeks(self, read: Read, now: float) -> bool:
        """Whether a boundary is sought in each partition now."""
        if self._every_s is None or self._void:
            return False
        if self._due_at is None:
            self._due_at = now + self._every_s
            self._put_off(now)
        if now < self._due_at:
            return False
        if self._among:
            self._void = read.keys() != set(self._among) or sum(self._counts.values()) > len(read)
            return not self._void
        return self._begins_to_seek(read, now)

    def _begins_to_seek(self, read: Read, now: float) -> bool:
        self.uncut = why_uncut(sum(self._counts.values()), read, self._latest)
        if self.uncut is not None or not read:
            return False
        self._among, self._sought_since, self._until_ms = tuple(read), None, None
        if len(read) > 1:
            times = {source: latest_ms(self._format, self._latest[source]) for source in read}
            known = [(time, source) for source, time in times.items() if time is not None]
            self._until_ms, self._ahead = max(known, default=(None, None))
            # What comes now may be older than what others have handed out.
            self._sought_since, self._latest_at = now, dict.fromkeys(read, now)
        return True

    def _boundary(self, fetched: msg.Fetched, now: float) -> CutAt | None:
        whole = self._parts.whole_behind(fetched)
        if len(self._among) > 1:
            return self._by_time(fetched, whole, now)
        if (found := between_transactions(self._format, fetched, whole)) is not None:
            return found
        self._sought_since = now if self._sought_since is None else self._sought_since
        if now < self._sought_since + NO_END_S:
            return None
        return behind_all_whole(whole)

    def _by_time(self, fetched: msg.Fetched, whole: Sequence[bool], now: float) -> CutAt | None:
        """A partition whose messages tell no time for long, such as that of transactions' ends, is
        taken as it is."""
        source, until_ms = fetched.source, self._until_ms
        if until_ms is None:
            return behind_all_whole(whole)
        found = before_later(self._format, fetched, whole, until_ms, self._parts.is_whole(source))
        if found is not None:
            return found
        if latest_ms(self._format, fetched) is not None:
            self._latest_at[source] = now
        if now < self._latest_at[source] + NO_END_S:
            return None
        return behind_all_whole(whole)

    def _ask(self, read: Read, end: TransactionEnd | None, now: float) -> list[fx.FetcherEffect]:
        """Ask for the cut where each partition has come to its boundary."""
        if len(self._reached) < len(self._among):
            return []
        times = [self._latest[source].time_ms for source in self._among]
        logs_ms = max((time for time in times if time is not None), default=None)
        boundary: Boundary = "time" if end is None else "transaction"
        name, time_ms = TransactionEnd(None, self._until_ms or logs_ms) if end is None else end
        epochs = {source: each.epoch for source, each in read.items()}
        asked = msg.CutAsked(epochs, dict(self._reached), boundary, time_ms, name)
        self._asked, self.behind = asked, None
        self.since, self._flushed, self._sought_since = now, False, None
        return [fx.Tell(self._committer, asked)]

    def _pause(self, source: TopicPartition) -> list[fx.FetcherEffect]:
        """At rest nothing is read at all."""
        if self.at_rest:
            return []
        self._paused_alone = True
        return [fx.Pause((source,))]
