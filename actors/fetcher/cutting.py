"""Brings a pipeline to rest where all its tables can be cut: at the end of a transaction.

When a cut is due, what follows the next boundary in the log is held here. The processors write what
came before it, and the committer says when all of that is written, or for how long it waited. Then
what was held goes on. So a cut takes no barrier into any target, and a pipeline without cuts is as
it was.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.fetcher.reassembly import Reassembly
from changes.formats.engine.format import Format
from changes.model.places import TransactionEnd
from offsets.cuts import Boundary
from offsets.position import EpochSpan, TopicPartition

NO_END_S = 5.0
"""How long messages may come without the end of a transaction, until the cut goes through the log
at a time instead."""


class Cutting:
    """One per pipeline; used by the fetcher's thread alone. Times are monotonic seconds."""

    def __init__(
        self, pipeline: str, format_: Format, parts: Reassembly, every_s: float | None
    ) -> None:
        """``every_s``: None: nothing is cut."""
        self._committer, self._format = Address(pipeline, "committer"), format_
        self._parts = parts
        self._every_s = every_s
        self._due_at: float | None = None
        self._sought_since: float | None = None
        self._asked: msg.CutAsked | None = None
        self._held: list[msg.Fetched] = []
        self._latest: msg.Fetched | None = None
        self._latest_at = 0.0
        self.uncut: str | None = None
        """Why nothing can be cut."""
        self.since = float("-inf")
        """When the pipeline was last brought to rest."""
        self._flushed = False

    def unfit(self, counts: Mapping[str, int], assigned: int) -> list[fx.Log]:
        """Say why nothing can be cut, where that is news: the log has several partitions.
        ``counts``: of each topic, empty where that is not known now."""
        if self._every_s is None:
            return []
        partitions = max(sum(counts.values()), assigned)
        if partitions == 1 and counts:
            self.uncut = None
        if partitions <= 1 or self.uncut is not None:
            return []
        self.uncut = f"the log has {partitions} partitions: cuts are made of a log of one partition"
        return [fx.Log("warning", "cuts_not_made", {"what": self.uncut})]

    def flush(self) -> bool:
        """Whether the processors are to write what they have, once a cut."""
        begins = self.at_rest and not self._flushed
        self._flushed |= begins
        return begins

    @property
    def at_rest(self) -> bool:
        """Whether a boundary was reached, and nothing goes on behind it."""
        return self._asked is not None

    def holds(self, source: TopicPartition) -> bool:
        """Whether messages of a partition may wait here."""
        return self._asked is not None and self._asked.source == source

    def take(
        self, fetched: msg.Fetched, epoch: int, now: float
    ) -> tuple[msg.Fetched | None, list[fx.Tell]]:
        """What of a batch goes on, and the request for a cut where one is due and its boundary is
        in the batch. The rest is held."""
        if self.at_rest:
            self._held.append(fetched)
            return None, []
        if self._every_s is None or self.uncut is not None:
            return fetched, []
        self._latest, self._latest_at = fetched, now
        if not self._is_due(now, self._every_s):
            return fetched, []
        found = self._boundary(fetched, now)
        if found is None:
            return fetched, []
        place, end = found
        head, rest = fetched, behind(fetched, place)
        if rest is not None:
            kept = slice(0, place + 1)
            head = self._latest = _part(fetched, kept, rest.offsets[0], fetched.epochs)
            self._held.append(rest)
        return head, self._ask(epoch, head, end, now)

    def begin(self, source: TopicPartition, start: int, now: float) -> None:
        """A partition is read from here on, and all below is applied: maybe in no cut yet."""
        self._latest, self._latest_at = msg.Fetched(source, [], [], start), now

    def idle(
        self, epochs: Mapping[TopicPartition, int], now: float, *, paused: bool = False
    ) -> list[fx.Tell]:
        """The cut that is due behind the last message that came, where no other follows it.

        Also where one was made there: it may have failed, or left a target out. Who makes cuts
        makes none where no table is another than in the last one. ``paused``: nothing is read, so
        the end of a transaction may be in the log.
        """
        if paused:
            self._latest_at = now
        latest = self._latest
        if self._every_s is None or latest is None or self.at_rest or self.uncut:
            return []
        source = latest.source
        if not self._is_due(now, self._every_s) or source not in epochs:
            return []
        if not self._parts.is_whole(source):
            return []
        end = self._format.transaction_end(latest.values[-1]) if latest.values else None
        if end is None and now < self._latest_at + NO_END_S:
            return []
        return self._ask(epochs[source], latest, end, now)

    def _ask(
        self, epoch: int, head: msg.Fetched, end: TransactionEnd | None, now: float
    ) -> list[fx.Tell]:
        boundary: Boundary = "time" if end is None else "transaction"
        name, time_ms = TransactionEnd(None, head.time_ms) if end is None else end
        asked = msg.CutAsked(epoch, head.source, head.next_offset, boundary, time_ms, name)
        self._asked = asked
        self.since, self._flushed, self._sought_since = now, False, None
        return [fx.Tell(self._committer, asked)]

    def over(self, asked: msg.CutAsked | None, now: float) -> tuple[msg.Fetched, ...]:
        """The cut is made, or given up: what was held goes on. Nothing where it is another one."""
        if self._asked is None or asked != self._asked:
            return ()
        held, self._held, self._asked = tuple(self._held), [], None
        assert self._every_s is not None
        self._due_at = now + self._every_s
        return held

    def keep(self, sources: Container[TopicPartition]) -> None:
        """Drop what is held of other partitions; they are read again."""
        if self._latest is not None and self._latest.source not in sources:
            self._latest = None
        if self._asked is not None and self._asked.source not in sources:
            self._asked, self._held = None, []

    def _is_due(self, now: float, every_s: float) -> bool:
        if self._due_at is None:
            self._due_at = now + every_s
        return now >= self._due_at

    def _boundary(
        self, fetched: msg.Fetched, now: float
    ) -> tuple[int, TransactionEnd | None] | None:
        """The place of the batch's last message before it, and the transaction that ends there,
        None where it is one by time."""
        whole = self._parts.whole_behind(fetched)
        places = [place for place, is_whole in enumerate(whole) if is_whole]
        for place in reversed(places):
            end = self._format.transaction_end(fetched.values[place])
            if end is not None:
                return place, end
        if (found := self._between(fetched, whole)) is not None:
            return found
        if self._sought_since is None:
            self._sought_since = now
        if not places or now < self._sought_since + NO_END_S:
            return None
        return places[-1], None

    def _between(
        self, fetched: msg.Fetched, whole: Sequence[bool]
    ) -> tuple[int, TransactionEnd] | None:
        """The last place behind which messages are of another transaction, as their names say.

        Not before a message that is sent again: its transaction is none of those that follow.
        """
        after: str | None = None
        for place in range(len(fetched.values) - 1, -1, -1):
            value = fetched.values[place]
            if (told := self._format.transactions_of(value)) is None:
                return None
            if after not in (None, told.last) and whole[place] and whole[place + 1]:
                return place, TransactionEnd(told.last, self._format.source_ms(value))
            after = told.first
        return None


def behind(fetched: msg.Fetched, place: int) -> msg.Fetched | None:
    """What follows a place of a fetched batch, None where that was the last."""
    if place + 1 == len(fetched.offsets):
        return None
    return _part(fetched, slice(place + 1, None), fetched.next_offset)


def _part(
    fetched: msg.Fetched, which: slice, next_offset: int, epochs: tuple[EpochSpan, ...] = ()
) -> msg.Fetched:
    offsets, values = fetched.offsets[which], fetched.values[which]
    return msg.Fetched(fetched.source, offsets, values, next_offset, fetched.time_ms, epochs)
