"""Offers of batches to the processors: one at a time for each, the rest parked."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from offsets.position import TopicPartition


class Offers:
    """What each processor was offered, took and refused; used by the fetcher's thread alone."""

    def __init__(self, processors: Iterable[Address]) -> None:
        self._parked: dict[Address, deque[msg.RecordBatch]] = {p: deque() for p in processors}
        self._sent = dict.fromkeys(self._parked, 0)
        self._asked: set[Address] = set()
        self._refused: set[Address] = set()
        self.blocked_at = 0.0
        """When the first of those who refuse now did so."""

    @property
    def waiting(self) -> bool:
        """Whether anything is parked."""
        return any(self._parked.values())

    @property
    def settled(self) -> bool:
        """Whether the processors have taken all that was offered."""
        return not self._asked and not self.waiting

    @property
    def waited_for(self) -> list[str]:
        """The processors that something is parked for."""
        return [str(to) for to, parked in self._parked.items() if parked]

    @property
    def parked_bytes(self) -> int:
        """What is parked takes."""
        return sum(batch.size for parked in self._parked.values() for batch in parked)

    def give(self, to: Address, batch: msg.RecordBatch) -> list[fx.Offer]:
        """Offer a batch, or park it behind others."""
        if self._parked[to] or to in self._asked:
            # One offer at a time: were the next one smaller, it might find room before this
            # one, and overtake it in its lanes.
            self._parked[to].append(batch)
            return []
        return [self._offer(to, batch)]

    def offer_parked(self, to: Address) -> list[fx.Offer]:
        """Offer the oldest parked batch again; the next one follows when it was taken."""
        return [self._offer(to, self._parked[to].popleft())] if self._parked[to] else []

    def _offer(self, to: Address, batch: msg.RecordBatch) -> fx.Offer:
        self._sent[to] += 1
        self._asked.add(to)
        self._refused.discard(to)
        return fx.Offer(to, batch)

    def answered(self, offered: msg.Offered) -> None:
        """Note how an offer ended; a refused one does not count as sent."""
        self._asked.discard(offered.to)
        if not offered.taken:
            self._sent[offered.to] -= 1

    def park_refused(self, offered: msg.Offered, now: float) -> None:
        """Park what was refused, first in the queue: it is offered when there is room."""
        if not self._refused:
            self.blocked_at = now
        self._refused.add(offered.to)
        self._parked[offered.to].appendleft(offered.batch)

    def keep(self, sources: Container[TopicPartition]) -> None:
        """Drop what is parked of other partitions."""
        for to, parked in self._parked.items():
            self._parked[to] = deque(batch for batch in parked if batch.source in sources)

    def clear(self) -> None:
        """Drop all that is parked."""
        for parked in self._parked.values():
            parked.clear()

    def drain(self, to: Address) -> fx.Tell:
        """Have a processor write everything; says how many batches it was sent in all."""
        return fx.Tell(to, msg.Drain(self._sent[to]))

    def flush(self) -> Iterator[fx.Tell]:
        """Have all processors write at once: nothing follows what they were sent."""
        return (fx.Tell(to, msg.Flush(sent)) for to, sent in self._sent.items())

    def drains(self) -> Iterator[fx.Tell]:
        """``drain`` for all processors."""
        return map(self.drain, self._parked)


# How many messages may be read now, by a bound on messages per second. No clock of its own.


class Rate:
    """A bucket that fills with so many messages a second, and holds one second's at most."""

    def __init__(self, per_s: float | None) -> None:
        """None: no bound."""
        self._per_s = per_s
        self._left = 0.0 if per_s is None else per_s
        self._at: float | None = None

    def allows(self, most: int, now: float) -> int:
        """How many may be read, ``most`` at most."""
        if self._per_s is None:
            return most
        passed = 0.0 if self._at is None else max(0.0, now - self._at)
        self._left, self._at = min(self._per_s, self._left + passed * self._per_s), now
        return min(most, int(self._left))

    def read(self, messages: int) -> None:
        """So many were read."""
        self._left -= messages

    def due_at(self, now: float) -> float:
        """When the next message may be read, where none may now."""
        assert self._per_s is not None
        return now + max(0.0, 1.0 - self._left) / self._per_s
