"""Messages that a producer cut into parts: how they lie in the log, and who reads them.

No format of binlogd has parts yet; those that will be read by them put an assembler before the
fetcher's routing, as this one does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from actors import effects as fx
from actors import messages as msg
from actors.fetcher import FetcherLogic
from offsets.parts import Part, PartAssembler
from offsets.position import Run, TopicPartition

_MARK = b"#"


def cut(rng: random.Random, value: bytes, total: int, stream: str) -> list[bytes]:
    """A message in so many parts, each with a head that tells which it is."""
    cuts = sorted(rng.randrange(1, len(value)) for _ in range(total - 1))
    ends = zip([0, *cuts], [*cuts, len(value)], strict=True)
    heads = (f"#{stream},{total},{number}#".encode() for number in range(total))
    return [head + value[begin:end] for head, (begin, end) in zip(heads, ends, strict=True)]


def uncut(value: bytes) -> tuple[str, Part] | None:
    """The stream and the part that a message is, None for a whole one."""
    if not value.startswith(_MARK):
        return None
    _, head, data = value.split(_MARK, 2)
    stream, total, number = head.decode().split(",")
    return stream, Part(1, int(total), int(number), data)


class PartsFetcher:
    """A fetcher's logic that is shown whole messages, each at the offset of its last part.

    What it says to the committer is completed by what this one knows: runs and fragments.
    """

    def __init__(self, fetcher: FetcherLogic, committer: msg.Address) -> None:
        self.fetcher = fetcher
        self._committer = committer
        self._assembler = PartAssembler(1 << 20)

    def begin(self, source: TopicPartition, at_frontier: bool) -> None:
        """A partition is read from a place on: what was open is of the past."""
        self._assembler.begin(source, at_frontier=at_frontier)

    def handle(self, message: object, now: float) -> list[object]:
        """As ``FetcherLogic.handle``."""
        if not isinstance(message, msg.Polled):
            return self.fetcher.handle(message, now)
        out: list[object] = []
        for fetched in message.batches:
            held = self._assembler.fragments(fetched.source)
            for polled, run in self._stretches(fetched):
                out += self._said(polled, run, held, now)
                held = self._assembler.fragments(fetched.source)
        return out + self._said(replace(message, batches=()), None, {}, now)

    def _said(
        self, polled: msg.Polled, run: Run | None, held: dict[str, int], now: float
    ) -> list[object]:
        """What the fetcher says of whole messages, or of one that came in the parts of ``run``.

        ``held``: what was open before.
        """
        out = self.fetcher.handle(polled, now)
        told = [place for place, effect in enumerate(out) if _dispatched(effect) is not None]
        for place in told:
            sent = _dispatched(out[place])
            assert sent is not None
            fragments = self._assembler.fragments(sent.source)
            if run is not None and place != told[-1]:
                # A bad one is dispatched after all that came before it: until then it is open.
                fragments = held
            sent = replace(sent, fragments=fragments)
            if run is not None and sent.lanes:
                sent = replace(sent, lanes={}, runs=dict.fromkeys(sent.lanes, (run,)))
            out[place] = fx.Tell(self._committer, sent)
        return out

    def _stretches(self, fetched: msg.Fetched) -> Iterator[tuple[msg.Polled, Run | None]]:
        """Plain messages together; each part by itself, so that what is open is told exactly."""
        source = fetched.source
        plain: list[tuple[int, bytes | None]] = []
        ends = [*fetched.offsets[1:], fetched.next_offset]
        for offset, value, after in zip(fetched.offsets, fetched.values, ends, strict=True):
            found = None if value is None else uncut(value)
            if found is None:
                plain.append((offset, value))
                continue
            if plain:
                yield _polled(source, plain, offset), None
                plain = []
            whole = self._assembler.take(source, found[0], offset, found[1])
            if whole is None:
                yield msg.Polled((), {source: after}), None
            else:
                yield _polled(source, [(offset, whole.data)], after), whole.run
        if plain:
            yield _polled(source, plain, fetched.next_offset), None


def _dispatched(effect: object) -> msg.Dispatched | None:
    if isinstance(effect, fx.Tell) and isinstance(effect.message, msg.Dispatched):
        return effect.message
    return None


def _polled(
    source: TopicPartition, found: list[tuple[int, bytes | None]], after: int
) -> msg.Polled:
    offsets, values = [offset for offset, _ in found], [value for _, value in found]
    return msg.Polled((msg.Fetched(source, offsets, values, after),))
