"""Brings several partitions to one time of their source's: they have no common order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from actors.contract import messages as msg
from actors.fetcher.boundaries import CutAt, before_later, behind_all_whole, in_short, latest_ms
from actors.fetcher.reassembly import Reassembly
from changes.formats.engine.format import Format
from offsets.position import TopicPartition
from settings.counted import counted

NO_END_S = 5.0
"""How long messages may come without the end of a transaction, until the cut goes through the log
at a time instead. So long, too, one of several partitions must be quiet to be taken as it is."""

BEHIND = "{} did not come to {}, the source's time of {} in ms, within {:g} s: {}"


class ByTime:
    """One for each cut through several partitions. Each is held before its first change that the
    source made later than all that had been handed out."""

    def __init__(
        self,
        format_: Format,
        parts: Reassembly,
        latest: Mapping[TopicPartition, msg.Fetched],
        now: float,
    ) -> None:
        """``latest``: what came last of each of its partitions."""
        self._format, self._parts = format_, parts
        times = {source: latest_ms(format_, fetched) for source, fetched in latest.items()}
        known = [(time, source) for source, time in times.items() if time is not None]
        self.until_ms: int | None
        self._ahead: TopicPartition | None
        self.until_ms, self._ahead = max(known, default=(None, None))
        # What comes now may be older than what others have handed out.
        self._heard_at = dict.fromkeys(latest, now)

    def boundary(self, fetched: msg.Fetched, whole: Sequence[bool], now: float) -> CutAt | None:
        """Where a batch is held. A partition whose messages tell no time for long, such as that of
        transactions' ends, is taken as it is."""
        source, until_ms = fetched.source, self.until_ms
        if until_ms is None:
            return behind_all_whole(whole)
        found = before_later(self._format, fetched, whole, until_ms, self._parts.is_whole(source))
        if found is not None:
            return found
        if latest_ms(self._format, fetched) is not None:
            self._heard_at[source] = now
        return behind_all_whole(whole) if self.is_quiet(source, now) else None

    def is_quiet(self, source: TopicPartition, now: float) -> bool:
        """Whether nothing has told a partition's time for long."""
        return now >= self._heard_at[source] + NO_END_S

    def unread(self, sources: Collection[TopicPartition], now: float) -> None:
        """Of these nothing is read: they are not quiet."""
        self._heard_at |= {source: now for source in sources if source in self._heard_at}

    def behind(self, sources: Collection[TopicPartition], patience_s: float) -> str:
        """Which have not come there, in one line."""
        ahead = self.until_ms, self._ahead, patience_s
        return BEHIND.format(counted(len(sources), "partition"), *ahead, in_short(sources))
