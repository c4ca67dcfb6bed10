"""How far one partition was read, and whether that holds all of a range of time. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from changes.model.row_events import Told, TransactionMark
from offsets.position import TopicPartition

LATE_MS = 600_000
"""How long behind the range the log is read: changes of the range come with their transaction's
commit. Less: more of long transactions is left out. More: more is read for nothing."""

READ_ON_MS = 7_200_000
"""How long behind the range the END of a transaction is waited for that has changes in it."""

TIMELESS = 1000
"""So many offsets are read before a partition is taken for one that tells no times of the source.
What came into the log hours late, as behind a reader that stood, tells them soon."""

SKEW_MS = 1000
"""A record behind the range must be later by more than this: see ``source_watermarks``."""


class BeginsLate(Exception):
    """What was read of a partition may begin amid the range."""

    def __init__(self, source: TopicPartition) -> None:
        super().__init__(str(source))
        self.source = source


class RangeGone(Exception):
    """The log begins amid the range: one line."""


@dataclass(slots=True)
class Bounds:
    """One partition: what is read of it begins at ``begin``, and ends before ``end``. ``low``:
    where the log begins."""

    source: TopicPartition
    low: int
    begin: int
    end: int
    started: bool = False
    """The log is known to be read from before the range."""
    passed: bool = False
    """A record behind the range came."""
    read_to: int = 0
    """Below which offset it was read."""
    latest_ms: int | None = None
    """The latest time of the source that a record told."""
    _before: str | None = None

    def see(self, told: Told, log_ms: int | None, from_ms: int, to_ms: int) -> None:
        """Take what a record says. ``log_ms``: when it came into the log. Raises BeginsLate,
        RangeGone."""
        if isinstance(told, TransactionMark):
            if told.ends:
                self._take(told.time_ms, told.id, from_ms)
        elif not told.read:
            self._take(told.time_ms, told.transaction, from_ms)
            self._pass(told.time_ms, log_ms, to_ms)

    def see_time(self, time_ms: int | None, log_ms: int | None, from_ms: int, to_ms: int) -> None:
        """Take the time of a record that counts nothing, such as a heartbeat of the source's.
        Raises as ``see``."""
        self._take(time_ms, None, from_ms)
        self._pass(time_ms, log_ms, to_ms)

    def _pass(self, time_ms: int | None, log_ms: int | None, to_ms: int) -> None:
        """A time that is ahead of the log's is no proof: statements may set their own."""
        late = to_ms + SKEW_MS
        if time_ms is not None and time_ms > late and (log_ms is None or log_ms > late):
            self.passed = True

    def _take(self, time_ms: int | None, transaction: str | None, from_ms: int) -> None:
        if time_ms is None:
            return
        self.latest_ms = max(self.latest_ms or 0, time_ms)
        if self.started:
            return
        if time_ms < from_ms:
            self._before = transaction or ""
        elif self.begin == 0 or (self._before is not None and self._before != (transaction or "-")):
            self.started = True
        elif self.begin > self.low:
            raise BeginsLate(self.source)
        else:
            raise RangeGone(
                f"{self.source} begins at {self.low}: whether something of the range was removed "
                "before it can't be told"
            )

    def is_over(self, to_ms: int, log_ms: int | None, waiting: bool) -> bool:
        """Whether nothing more need be read. ``log_ms``: the time of the next record in the log.
        ``waiting``: a transaction of the range has no END yet."""
        if log_ms is not None and log_ms <= to_ms + LATE_MS:
            return False
        if self.latest_ms is None:  # no record tells a time of the source
            late = log_ms is not None and log_ms > to_ms + READ_ON_MS
            return late and self.read_to - self.begin >= TIMELESS
        if self.latest_ms > to_ms + READ_ON_MS:
            return True
        return self.passed and not waiting and self.latest_ms > to_ms + LATE_MS
