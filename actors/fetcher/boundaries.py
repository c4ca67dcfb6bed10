"""Finds where a cut may go through a batch of messages: between transactions, or at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from actors.contract import messages as msg
from changes.formats.engine.format import Format
from changes.model.places import TransactionEnd
from offsets.position import TopicPartition


class CutAt(NamedTuple):
    """``place`` of the last message before the boundary, -1: all are behind it; and the transaction
    that ends there, None where it goes through the log at a time."""

    place: int
    end: TransactionEnd | None


def between_transactions(
    format_: Format, fetched: msg.Fetched, whole: Sequence[bool]
) -> CutAt | None:
    """The batch's last boundary between transactions. ``whole``: as of
    ``Reassembly.whole_behind``."""
    for place in reversed(range(len(whole))):
        if whole[place] and (end := format_.transaction_end(fetched.values[place])) is not None:
            return CutAt(place, end)
    return _where_names_change(format_, fetched, whole)


def _where_names_change(
    format_: Format, fetched: msg.Fetched, whole: Sequence[bool]
) -> CutAt | None:
    """The last place behind which messages are of another transaction, as their names say.

    Not before a message that is sent again: its transaction is none of those that follow.
    """
    after: str | None = None
    for place in range(len(fetched.values) - 1, -1, -1):
        value = fetched.values[place]
        if (told := format_.transactions_of(value)) is None:
            return None
        if after not in (None, told.last) and whole[place] and whole[place + 1]:
            return CutAt(place, TransactionEnd(told.last, format_.source_ms(value)))
        after = told.first
    return None


def behind_all_whole(whole: Sequence[bool]) -> CutAt | None:
    """The batch's last boundary between messages."""
    place = next((place for place in reversed(range(len(whole))) if whole[place]), None)
    return None if place is None else CutAt(place, None)


def before_later(
    format_: Format, fetched: msg.Fetched, whole: Sequence[bool], until_ms: int, begins: bool
) -> CutAt | None:
    """The boundary before the first change that the source made later than ``until_ms``; None where
    the batch has none, or a message of several parts goes on behind it. ``begins``: whether a
    message begins with the batch."""
    times = _times(format_, fetched)
    later = next((p for p, time in enumerate(times) if time is not None and time > until_ms), None)
    if later is None:
        return None
    before = [place for place in range(later) if whole[place]]
    if before or begins:
        return CutAt(before[-1] if before else -1, None)
    # Parts of a message went on before the batch: what is later may be among its other parts.
    ends = (place for place in range(later, len(whole)) if whole[place])
    return next((CutAt(place, None) for place in ends), None)


def latest_ms(format_: Format, fetched: msg.Fetched) -> int | None:
    """The latest of the source's times that a batch tells: not always the last one's."""
    times = _times(format_, fetched)
    return max((time for time in times if time is not None), default=None)


def _times(format_: Format, fetched: msg.Fetched) -> Iterator[int | None]:
    """Of changes, and of transactions' ends, which may be alone in their partition."""
    for value in fetched.values:
        time = format_.source_ms(value)
        end = format_.transaction_end(value) if time is None else None
        yield time if end is None else end.time_ms


# What keeps a log from being cut.

OTHERS = (
    "others of the group read {} of the {} partitions: cuts need all of a pipeline's in one daemon"
)

UNSEEN = "nothing has come of {} since it is read from amid its log: what is applied is not known"

_SHOWN = 3
"""Partitions that a line names."""


def why_uncut(
    partitions: int, read: Collection[TopicPartition], seen: Collection[TopicPartition]
) -> str | None:
    """Why no boundary can be sought in all ``partitions`` of the log; None: it can. ``seen``: those
    of which it is known where they stand. Who reads none knows nothing of others."""
    if read and (others := partitions - len(read)) > 0:
        return OTHERS.format(others, partitions)
    unseen = set(read) - set(seen)
    return UNSEEN.format(in_short(unseen)) if unseen else None


def in_short(sources: Iterable[TopicPartition]) -> str:
    """Their names, the first few."""
    return ", ".join(map(str, sorted(sources)[:_SHOWN]))
