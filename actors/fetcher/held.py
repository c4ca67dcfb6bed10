"""Messages that wait behind the boundary of a cut."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from actors.contract import effects as fx
from actors.contract import messages as msg
from offsets.position import EpochSpan, TopicPartition


class GoesOn(NamedTuple):
    """What was held, and what there is to say."""

    held: tuple[msg.Fetched, ...]
    said: tuple[fx.Log, ...] = ()


class Held:
    """One per pipeline, each partition's batches in their order; used by the fetcher's thread."""

    def __init__(self) -> None:
        self._batches: list[msg.Fetched] = []
        self.sources: set[TopicPartition] = set()
        """The partitions of which anything is held."""

    def hold(self, fetched: msg.Fetched) -> None:
        """It waits."""
        self._batches.append(fetched)
        self.sources.add(fetched.source)

    def split(self, fetched: msg.Fetched, place: int) -> msg.Fetched | None:
        """What goes on: a batch up to that place of it, None with -1. The rest waits."""
        rest = behind(fetched, place)
        if rest is None:
            return fetched
        if place < 0:
            self.hold(fetched)
            return None
        self.hold(rest)
        return _part(fetched, slice(0, place + 1), rest.offsets[0], fetched.epochs)

    def firsts(self) -> list[msg.Fetched]:
        """Of each partition the first batch that waits."""
        return list({each.source: each for each in reversed(self._batches)}.values())

    def let_go(self) -> tuple[msg.Fetched, ...]:
        """All that waits goes on."""
        held, self._batches = tuple(self._batches), []
        self.sources.clear()
        return held

    def keep(self, sources: Container[TopicPartition]) -> None:
        """Drop what waits of others."""
        self._batches = [each for each in self._batches if each.source in sources]
        self.sources = {each.source for each in self._batches}


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
