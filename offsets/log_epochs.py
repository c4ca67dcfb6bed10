"""Leader epoch of the log below a position: it shows that a log was replaced.

After an unclean election, or a broker that came back with an empty disk, a partition may be shorter
than it was and grow past a recorded position again: topic id and watermarks look right, and new
messages below the position would never be read. A position with the epoch of the message
before it can be checked by the broker (KIP-320), which the client does before its first fetch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogEpoch:
    """The message just below ``below`` was written in this leader epoch.

    Always of a message that was seen: of a transaction's marker nothing is known, and an epoch
    older than that of what precedes a position would make the broker call a whole log cut.
    """

    epoch: int
    below: int


@dataclass(frozen=True, slots=True)
class EpochSpan:
    """Messages that were fetched, first and last offset, of one leader epoch."""

    epoch: int
    first: int
    last: int


class LogEpochs:
    """The epochs of one partition's messages, as far as they are not done. One thread."""

    def __init__(self, known: LogEpoch | None = None) -> None:
        """``known`` is what was recorded with the position that reading began at."""
        self._spans: list[EpochSpan] = []
        if known is not None:
            self._spans.append(EpochSpan(known.epoch, known.below - 1, known.below - 1))

    def add(self, span: EpochSpan) -> None:
        """Take what was fetched next."""
        if self._spans and self._spans[-1].epoch == span.epoch:
            span = EpochSpan(span.epoch, self._spans.pop().first, span.last)
        self._spans.append(span)

    def below(self, frontier: int) -> LogEpoch | None:
        """What to record with a frontier, which only ever grows: None while nothing is known."""
        while len(self._spans) > 1 and self._spans[1].first < frontier:
            del self._spans[0]
        if not self._spans or self._spans[0].first >= frontier:
            return None
        span = self._spans[0]
        return LogEpoch(span.epoch, min(frontier, span.last + 1))
