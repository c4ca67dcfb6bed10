"""Which transactions were handed out in part, where their events lie in several partitions.

Each partition has them in the source's order, and so has the one with their ends. So where all that
was handed out is whole, it is all that the source did up to the last of those ends.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from actors.contract import messages as msg
from changes.formats.engine.format import Format
from changes.model.places import TransactionEnd
from changes.model.row_events import TransactionMark, TransactionPart
from offsets.position import TopicPartition

MOST = 100_000
"""Transactions that are open at a time. Where the ends are read far ahead of the rows, there are
more; then none are counted until a cut was made by time."""

MOST_SKIPPED = 64

UNTOLD = "a change in {} names no transaction"
NO_COUNT = "the end of transaction {} does not say how many events of tables it has"
TOO_MANY = "transaction {} has more events than its end says"
BEGUN_TWICE = "transaction {} began twice before its end"
NO_END = "no end came of transaction {}"
LACKS = "not all events came of transaction {}"
SCATTERED = "ends of transactions are in {} and in {}, which have no common order"
UNBOUNDED = "of more than {} transactions not all has come"


@dataclass(slots=True)
class _Open:
    """One of which something was handed out. ``needs``: how many events its end says. By partition
    ``first``: the offset of its first event there, ``latest``: the number of the last one, which
    grow; what is sent again counts once."""

    needs: int | None = None
    time_ms: int | None = None
    found: int = 0
    first: dict[TopicPartition, int] = field(default_factory=dict)
    latest: dict[TopicPartition, int] = field(default_factory=dict)

    def add(self, source: TopicPartition, offset: int, order: int) -> bool:
        """One of its events. Whether it is its first one in this partition."""
        before = self.latest.get(source)
        if before is None:
            self.first[source] = offset
        elif order <= before:
            return False
        self.latest[source] = order
        self.found += 1
        return before is None

    def ended(self, mark: TransactionMark) -> bool:
        """Its end came. Whether that says how many events of tables it has; else it has those that
        were found. A reader that restarts may end one again, with nothing: the first one counts."""
        if self.needs is not None:
            return True
        told = mark.tables is not None and sum(mark.tables.values()) == mark.events
        self.needs, self.time_ms = mark.events if told else self.found, mark.time_ms
        return told


class OpenTransactions:
    """One per pipeline; used by the fetcher's thread alone.

    Events are counted from a cut by time on, so that none counts of which a part was handed out
    before. What can't be counted is a doubt: the next cut is one by time, too.
    """

    def __init__(self, format_: Format) -> None:
        self._format = format_
        self._skipped = self._skips = 0
        self._ends_in: TopicPartition | None = None
        self._scattered: str | None = None
        self.forget()

    def forget(self) -> None:
        """Other partitions are read from now on."""
        self._open: dict[str, _Open] = {}
        self._endless: set[str] = set()
        self._firsts: dict[TopicPartition, deque[tuple[int, str]]] = {}
        """In each partition the first events of transactions that had no end then."""
        self._begun: str | None = None
        self._twice: set[str] = set()
        self._told = self._sleeps = self._based = False
        self._first_ms: int | None = None
        self._last: TransactionEnd | None = None
        self._doubt: str | None = None

    @property
    def usable(self) -> bool:
        """Whether a cut can be made where all that was handed out is whole."""
        return self._told and self._based and (self._scattered or self._doubt) is None

    @property
    def whole(self) -> bool:
        """Whether nothing is lacking of what was handed out."""
        return not self._open

    def hand_out(self, fetched: msg.Fetched) -> None:
        """These messages go on."""
        for offset, value in zip(fetched.offsets, fetched.values, strict=True):
            if self._sleeps:
                if self._format.transaction_end(value) is None:
                    continue
                self._sleeps = False
            self._note(self._format.transaction_part(value), fetched.source, offset)

    def hand_out_within(self, fetched: msg.Fetched) -> int:
        """How many of the messages go on: those of transactions that are open already, and ends for
        as long as one lacks its own."""
        for place, (offset, value) in enumerate(zip(fetched.offsets, fetched.values, strict=True)):
            part = self._format.transaction_part(value)
            if not self._passes(part):
                return place
            self._note(part, fetched.source, offset)
        return len(fetched.offsets)

    def lets_pass(self, fetched: msg.Fetched) -> bool:
        """Whether the first of these messages may go on now."""
        return self._passes(self._format.transaction_part(fetched.values[0]))

    def _passes(self, part: TransactionPart | TransactionMark | None) -> bool:
        if isinstance(part, TransactionMark):
            return bool(self._endless)
        # A statement, a tombstone goes on as what comes before it.
        return part is None or part.id is None or part.id in self._open

    def rest_by_time(self, until_ms: int | None) -> None:
        """A cut is made by time. Where that is behind the first end that was handed out, so is all
        that ended before it, wherever it lies: from here on all can be counted."""
        begins = until_ms is not None and self._first_ms is not None and self._first_ms <= until_ms
        self._based, self._doubt = self._told and begins and self._skipped >= self._skips, None
        self._skipped += 1
        for name, one in [*self._open.items()]:
            if until_ms is not None and one.time_ms is not None and one.time_ms <= until_ms:
                self._close(name)

    def rest_by_ends(self) -> tuple[TransactionEnd | None, str | None]:
        """A cut is made by what was counted: the last transaction's end, or why it can't be said to
        go between two transactions."""
        if (doubt := self._scattered or self._doubt) is not None:
            return None, doubt
        self._skips = self._skipped = 0
        return self._last, None

    def give_up(self) -> str | None:
        """What is lacking does not come: returns what. Where that is so again and again, as where
        topics of the source are not read, ever more cuts are made by time."""
        if self._open:
            name = next(iter(self._open))
            self._doubt = (NO_END if name in self._endless else LACKS).format(name)
            self._open.clear()
            self._endless.clear()
            self._firsts.clear()
            self._skipped, self._skips = 0, min(2 * self._skips + 1, MOST_SKIPPED)
        return self._doubt

    def _note(
        self, part: TransactionPart | TransactionMark | None, source: TopicPartition, offset: int
    ) -> None:
        if part is None:
            return
        if isinstance(part, TransactionMark):
            self._take_turns(part, source)
            return self._mark(part) if part.ends else None
        name, order = part
        if name is None:
            return self._sleep(UNTOLD.format(source))
        one = self._open.get(name) or self._opened(name)
        if one.add(source, offset, order) and one.needs is None:
            self._firsts.setdefault(source, deque()).append((offset, name))
        self._close_whole(name, one)

    def _take_turns(self, mark: TransactionMark, source: TopicPartition) -> None:
        """Begins and ends do so, in the one partition that has them. What began twice was numbered
        anew, so its end counts a part of it."""
        self._ends_in = self._ends_in or source
        if self._ends_in != source:
            self._scattered = SCATTERED.format(self._ends_in, source)
        name, begun = mark.id, self._begun
        self._begun = None if mark.ends else name
        if begun is not None and begun != name:
            self._doubt = NO_END.format(begun)
        if not mark.ends and begun == name:
            self._twice.add(name)
        if name in self._twice:
            self._doubt = BEGUN_TWICE.format(name)
            if mark.ends:
                self._twice.discard(name)

    def _mark(self, mark: TransactionMark) -> None:
        name, self._told = mark.id, True
        if self._first_ms is None:
            self._first_ms = mark.time_ms
        self._last = TransactionEnd(name, mark.time_ms)
        one = self._open.get(name) or self._opened(name)
        self._endless.discard(name)
        self._drop_endless(one)
        if not one.ended(mark):
            self._doubt = NO_COUNT.format(name)
        self._close_whole(name, one)

    def _opened(self, name: str) -> _Open:
        if len(self._open) >= MOST:
            self._sleep(UNBOUNDED.format(MOST))
        one = self._open[name] = _Open()
        self._endless.add(name)
        return one

    def _close_whole(self, name: str, one: _Open) -> None:
        if one.needs is None or one.found < one.needs:
            return
        if max(one.latest.values(), default=0) > one.needs:
            self._doubt = TOO_MANY.format(name)
        self._close(name)

    def _close(self, name: str) -> None:
        self._open.pop(name, None)
        self._endless.discard(name)

    def _drop_endless(self, ended: _Open) -> None:
        """What came before an ended one in a partition has ended before it, and that end was not
        seen: it is below where this daemon began to read, or lost."""
        for source, at in ended.first.items():
            firsts = self._firsts.get(source, ())
            while firsts and (firsts[0][0] < at or firsts[0][1] not in self._endless):
                name = firsts.popleft()[1]
                if name in self._endless and self._open[name].first.get(source, at) < at:
                    self._doubt = NO_END.format(name)
                    self._close(name)

    def _sleep(self, doubt: str) -> None:
        """Until the next end nothing is counted: most logs have none."""
        self.forget()
        self._doubt, self._sleeps = doubt, True
