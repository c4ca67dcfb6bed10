"""Brings a pipeline to rest where all its tables can be cut: at the end of a transaction.

When a cut is due, what follows the next boundary in the log is held here. The processors write what
came before it, and the committer says when all of that is written, or for how long it waited. Then
what was held goes on. So a cut takes no barrier into any target, and a pipeline without cuts is as
it was.

The partitions of one log have no common order. Of several each is held where all transactions that
were handed out are whole, as their ends tell; or else before its first change that the source made
later than all that was handed out: then the cut goes through the log at that time.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.fetcher.boundaries import (
    CutAt,
    behind_all_whole,
    between_transactions,
    why_uncut,
)
from actors.fetcher.by_time import NO_END_S, ByTime
from actors.fetcher.cut_schedule import CutSchedule
from actors.fetcher.held import GoesOn, Held
from actors.fetcher.open_transactions import OpenTransactions
from actors.fetcher.partition import AssignedPartition
from actors.fetcher.reassembly import Reassembly
from changes.formats.engine.format import Format
from changes.model.places import TransactionEnd
from offsets.cuts import Boundary
from offsets.position import TopicPartition

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
        self._committer = Address(pipeline, "committer")
        self._format, self._parts = format_, parts
        self._every_s, self._patience_s = every_s, max(patience_s, NO_END_S + 1.0)
        self._schedule = CutSchedule(every_s, self._patience_s)
        self._sought_since: float | None = None
        self._no_end_s = NO_END_S  # longer where the last cut has shown that the log tells ends
        self._counts: Mapping[str, int] = {}
        self._asked: msg.CutAsked | None = None
        self._held = Held()
        self._latest: dict[TopicPartition, msg.Fetched] = {}
        self._latest_at: dict[TopicPartition, float] = {}
        self._among: Collection[TopicPartition] = ()
        self._by_time: ByTime | None = None
        self._transactions = OpenTransactions(format_)
        self._reached: dict[TopicPartition, int] = {}
        self._void = self._paused_alone = False
        self.uncut: str | None = None
        """Why nothing can be cut."""
        self._told: str | None = None
        self.behind: str | None = None
        """Why the last cut was not made."""
        self.since = float("-inf")
        """When the pipeline was last brought to rest."""

    def counted(self, counts: Mapping[str, int]) -> None:
        """So many partitions the log has, by topic; empty where that is not known now."""
        self._counts = counts or self._counts

    def flush(self, now: float) -> bool:
        """Whether the processors are to write what they have."""
        return self._schedule.flush(now, at_rest=self.at_rest)

    @property
    def at_rest(self) -> bool:
        """Whether a boundary was reached in each partition, and nothing goes on behind it."""
        return self._asked is not None

    def holds(self, source: TopicPartition) -> bool:
        """Whether messages of a partition wait here."""
        return self.at_rest or source in self._reached or source in self._held.sources

    def take(
        self, fetched: msg.Fetched, read: Read, now: float
    ) -> tuple[msg.Fetched | None, list[fx.FetcherEffect]]:
        """What of a batch goes on, and the request for a cut where one is due and its boundary is
        in the batch. The rest is held."""
        if self._every_s is None:
            return fetched, []
        source = fetched.source
        if self.holds(source):
            self._held.hold(fetched)
            return None, self._pause(source)
        seeks = self._seeks(read, now)
        if seeks and self._by_ends:
            return self._take_whole(fetched, read, now)
        found = self._boundary(fetched, now) if seeks else None
        head = self._split(fetched, len(fetched.offsets) - 1 if found is None else found.place)
        self._latest_at[source] = now
        if len(read) > 1 and head is not None:
            self._transactions.hand_out(head)
        if found is None:
            return head, []
        self._reached[source] = self._latest[source].next_offset
        return head, self._ask(read, found.end, now) or self._pause(source)

    def _take_whole(
        self, fetched: msg.Fetched, read: Read, now: float
    ) -> tuple[msg.Fetched | None, list[fx.FetcherEffect]]:
        """Only what completes transactions goes on."""
        going = self._transactions.hand_out_within(fetched)
        head = self._split(fetched, going - 1)
        self._latest_at[fetched.source] = now
        if asked := self._rest_where_whole(read, now):
            return head, asked
        return head, [] if going == len(fetched.offsets) else self._pause(fetched.source)

    def _split(self, fetched: msg.Fetched, place: int) -> msg.Fetched | None:
        """What goes on, up to that place."""
        if fetched.source not in self._latest:
            self._transactions.forget()
        if (head := self._held.split(fetched, place)) is not None:
            self._latest[fetched.source] = head
        return head

    def _rest_where_whole(self, read: Read, now: float) -> list[fx.FetcherEffect]:
        """Ask for the cut where all transactions that were handed out are whole."""
        if not self._transactions.whole:
            return []
        self._reached = {source: self._latest[source].next_offset for source in self._among}
        end, doubt = self._transactions.rest_by_ends()
        said = () if doubt is None else (fx.Log("info", "cut_by_time", {"reason": doubt}),)
        return [*said, *self._ask(read, end, now)]

    def begin(self, source: TopicPartition, start: int, now: float) -> None:
        """A partition is read from here on, and all below is applied: maybe in no cut yet."""
        self._latest[source], self._latest_at[source] = msg.Fetched(source, [], [], start), now
        self._transactions.forget()

    def idle(
        self, read: Read, now: float, unread: Collection[TopicPartition] = ()
    ) -> list[fx.FetcherEffect]:
        """The cut that is due behind the last messages that came, where no others follow them: a
        poll has brought none. One that did says nothing of those whose messages wait behind.
        Also where one was made there: it may have failed. Where no table is another than in the
        last one, none is made. ``unread``: of these nothing is read, so an end may be there."""
        self._latest_at |= {source: now for source in unread if source in self._latest_at}
        if self._by_time is not None:
            self._by_time.unread(unread, now)
        if read.keys() <= set(unread):
            self._sought_since = self._sought_since and now
            self._schedule.put_off(now)
        if self.at_rest or not self._seeks(read, now):
            return []
        if self._by_ends:
            if now >= max(self._sought_since or now, *self._latest_at.values()) + NO_END_S:
                self._transactions.give_up()
            return self._rest_where_whole(read, now)
        end: TransactionEnd | None = None
        for source in self._among:
            if source in self._reached or not self._parts.is_whole(source):
                continue
            latest = self._latest[source]
            if len(self._among) == 1 and latest.values:
                end = self._format.transaction_end(latest.values[-1])
            if end is not None or self._is_quiet(source, now):
                self._reached[source] = latest.next_offset
        return self._ask(read, end, now)

    def _is_quiet(self, source: TopicPartition, now: float) -> bool:
        alone = now >= self._latest_at[source] + NO_END_S
        return alone if self._by_time is None else self._by_time.is_quiet(source, now)

    @property
    def _by_ends(self) -> bool:
        """Whether partitions are held where transactions are whole."""
        return len(self._among) > 1 and self._by_time is None

    @property
    def is_aligning(self) -> bool:
        """Whether some partitions wait for others to come to a cut's time."""
        return len(self._among) > 1 and not self.at_rest

    def hear(self, said: msg.CutOver | msg.CutSoon, now: float) -> GoesOn | None:
        """The cut is made, or given up: what was held goes on. None where it is another one, and
        where one is to be made as soon as it can."""
        if isinstance(said, msg.CutSoon):
            self._schedule.soon(now)
        elif self._asked is not None and said.asked == self._asked:
            return GoesOn(self._go_on(now))
        return None

    def let_flow(self) -> bool:
        """Whether single partitions were paused since this was last asked."""
        paused, self._paused_alone = self._paused_alone, False
        return paused

    def lapsed(self, now: float) -> GoesOn | None:
        """What was held and goes on: no cut comes of it, or it belongs to what was handed out."""
        if self._void:
            return GoesOn(self._go_on(now))
        if self.uncut is not None and self.uncut != self._told:
            self._told = self.uncut
            return GoesOn((), (fx.Log("warning", "cuts_not_made", {"what": self.uncut}),))
        waiting = self._held.firsts() if self._by_ends and not self.at_rest else ()
        if any(map(self._transactions.lets_pass, waiting)):
            return GoesOn(self._held.let_go())
        since = self._sought_since
        if not self.is_aligning or since is None or now < since + self._patience_s:
            return None
        if self._by_time is not None:
            short = set(self._among) - self._reached.keys()
            self.behind = self._by_time.behind(short, self._patience_s)
        else:
            self.behind = self._transactions.give_up()
        not_made = fx.Log("warning", "cut_not_made", {"reason": self.behind})
        return GoesOn(self._go_on(now), (not_made,))

    def keep(self, sources: Container[TopicPartition]) -> None:
        """Drop what is held of other partitions; they are read again."""
        for source in [s for s in self._latest.keys() | self._reached if s not in sources]:
            self._latest.pop(source, None)
            self._reached.pop(source, None)
            self._transactions.forget()
        if any(source not in sources for source in self._among):
            self._asked, self._void = None, True
        self._held.keep(sources)

    def _go_on(self, now: float) -> tuple[msg.Fetched, ...]:
        self._asked, self._among, self._reached, self._void = None, (), {}, False
        self._by_time = None
        self._schedule.over(now)
        return self._held.let_go()

    def _seeks(self, read: Read, now: float) -> bool:
        """Whether a boundary is sought in each partition now."""
        if self._void or not self._schedule.due(now):
            return False
        if self._among:
            self._void = read.keys() != set(self._among) or sum(self._counts.values()) > len(read)
            return not self._void
        return self._begins_to_seek(read, now)

    def _begins_to_seek(self, read: Read, now: float) -> bool:
        self.uncut = why_uncut(sum(self._counts.values()), read, self._latest)
        if self.uncut is not None or not read:
            return False
        self._among, self._sought_since, self._by_time = tuple(read), None, None
        if len(read) > 1:
            self._sought_since = now
            if not self._transactions.usable:
                self._by_time = ByTime(self._format, self._parts, self._latest, now)
        return True

    def _boundary(self, fetched: msg.Fetched, now: float) -> CutAt | None:
        whole = self._parts.whole_behind(fetched)
        if self._by_time is not None:
            return self._by_time.boundary(fetched, whole, now)
        self._sought_since = now if self._sought_since is None else self._sought_since
        impatient = now >= self._sought_since + self._no_end_s
        found = between_transactions(self._format, fetched, whole)
        return found or (behind_all_whole(whole) if impatient else None)

    def _ask(self, read: Read, end: TransactionEnd | None, now: float) -> list[fx.FetcherEffect]:
        """Ask for the cut where each partition has come to its boundary."""
        if len(self._reached) < len(self._among):
            return []
        times = (self._latest[source].time_ms for source in self._among)
        logs_ms = max((time for time in times if time is not None), default=None)
        if self._by_time is not None:
            logs_ms = self._by_time.until_ms or logs_ms
            self._transactions.rest_by_time(self._by_time.until_ms)
        boundary: Boundary = "time" if end is None else "transaction"
        self._no_end_s = NO_END_S if end is None else self._patience_s
        name, time_ms = end or TransactionEnd(None, logs_ms)
        epochs = {source: each.epoch for source, each in read.items()}
        asked = msg.CutAsked(epochs, dict(self._reached), boundary, time_ms, name)
        self._asked, self.behind = asked, None
        self.since, self._sought_since = now, None
        self._schedule.rest()
        return [fx.Tell(self._committer, asked)]

    def _pause(self, source: TopicPartition) -> list[fx.FetcherEffect]:
        """At rest nothing is read at all."""
        if self.at_rest:
            return []
        self._paused_alone = True
        return [fx.Pause((source,))]
