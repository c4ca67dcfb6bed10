"""The consumer's side of the simulation: partitions are read, revoked, lost, and come back."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

from actors.contract import messages as msg
from actors.contract.addresses import Address
from changes.formats.engine.format import pack
from offsets.position import TopicPartition
from offsets.recovery import StartAt, Watermarks, start_position
from tests.simulation.durable import PIPELINE, Durable
from tests.simulation.schemas.registry import framed

FETCHER = Address(PIPELINE, "fetcher")
COMMITTER = Address(PIPELINE, "committer")


class Partitions(ABC):
    """What a source does, on the fetcher's thread."""

    def __init__(self, durable: Durable, rng: random.Random, revokes: int) -> None:
        self.durable = durable
        self.rng = rng
        self.now = 0.0
        self.trace: list[str] = []
        self.logics: dict[Address, Any] = {}
        self._revokes = revokes
        self._paused: set[TopicPartition] = set()
        self._started = False
        self._position: dict[TopicPartition, int] = {}
        self.sources = tuple(durable.log)

    @abstractmethod
    def _feed(self, address: Address, message: object) -> None:
        """Have an actor handle a message now."""

    def _consume(self, limit: int) -> msg.Polled:
        self._rebalance()
        flowing = [source for source in self._position if source not in self._paused]
        if not flowing:
            return msg.Polled()
        batches = []
        for source in flowing:
            position = self._position[source]
            found = [(o, v) for o, v in self.durable.log[source] if o >= position][:limit]
            if found:
                self._position[source] = found[-1][0] + 1
                offsets, values = [o for o, _ in found], [v for _, v in found]
                if self.durable.shape.registry is not None:
                    values = [pack(None, framed(source, o, v)) for o, v in found]
                elif self.durable.shape.auto:
                    values = [pack(None, value) for value in values]
                batches.append(msg.Fetched(source, offsets, list(values), self._position[source]))
        if not batches:
            self._position |= {source: self.durable.end[source] for source in flowing}
            return msg.Polled((), dict(self._position))
        return msg.Polled(tuple(batches))

    def _rebalance(self) -> None:
        """Partitions are assigned at first, then now and then taken away and given back."""
        away = [source for source in self.sources if source not in self._position]
        if not self._started:
            self._started = True
            self._assign(self.sources)
        elif self._revokes > 0 and self.rng.random() < 0.3:
            self._revokes -= 1
            held = [s for s in self.sources if s in self._position and self.rng.random() < 0.6]
            if held:
                self._revoke(tuple(held))
        elif away and (self.rng.random() < 0.5 or self._revokes == 0):
            self._assign(tuple(away))

    def _revoke(self, sources: tuple[TopicPartition, ...]) -> None:
        lost = self.rng.random() < 0.3
        self.trace.append(f"{self.now:.3f} {'lost' if lost else 'revoked'} {sources}")
        for source in sources:
            del self._position[source]
        self._feed(FETCHER, msg.Revoked(sources, lost))
        if self.rng.random() < 0.7:
            self._assign(sources)

    def _assign(self, sources: tuple[TopicPartition, ...]) -> None:
        logs = {source: Watermarks(0, self.durable.end[source]) for source in sources}
        commits = {source: self.durable.committed.get(source) for source in sources}
        frontiers = set()
        for source in sources:
            recorded = self.durable.snapshot.partitions.get(source)
            start = start_position(
                source,
                recorded=recorded,
                committed=commits[source],
                log=logs[source],
                configured=StartAt.EARLIEST,
                configured_offset=None,
            )
            self._position[source] = start.offset
            if recorded is not None or commits[source] is not None:
                frontiers.add(source)
        starts = {source: self._position[source] for source in sources}
        known = frozenset(frontiers)
        assigned = msg.Assigned(starts, logs, commits, at_frontier=known, counts=self._counts())
        self._feed(FETCHER, assigned)

    def _counts(self) -> dict[str, int]:
        """How many partitions this member knows the topics to have."""
        return dict(Counter(source.topic for source in self.sources))
