"""Queries the logs' ends and beginnings, on a thread of its own.

The group's consumer learns an end only with fetched data, so nothing while reading pauses or no
broker is there. A lag computed from such an end would stand still, or be 0, just when it is
needed. And while reading stands still a log's beginning comes close to what is not applied yet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import structlog

from actors.runtime.mailbox import Clock
from actors.runtime.periodic import Periodic
from offsets.position import TopicPartition
from sources.base.log_figures import OPEN_S, KeptRecords, LogEnds, LogFigures, OpenTransaction
from sources.base.port import LogProbe, NotAnswered

EVERY_S = 1.0
"""Between two queries for ends: the most that a shown lag may be old. One request to each
broker."""

PARTITIONS_PER_S = 1000
"""Queried in a second: with more partitions an answer is older, up to LONGEST_S. All each second
took 9 % of a core for a thousand (measured)."""

LONGEST_S = 4.0
"""Between two queries, whatever the number of partitions: see KNOWN_FOR_S."""

KNOWN_FOR_S = 10.0
"""An end counts as known for so long after it was reported. Shorter than two unanswered queries: a
broker that restarts makes every lag unknown for a moment. Longer: an old figure passes for a
present one."""

KEPT_EVERY_S = 30.0
"""Between two queries for what is kept. A log's beginning moves by segments, which takes minutes to
days."""

KEPT_FOR_S = 300.0
"""Such an answer counts for so long. A broker that restarts hides nothing meanwhile."""


WITHOUT_RETENTION = (
    "the alerts BinlogdRetentionHalf and BinlogdRetentionLow can't fire: alert on "
    "binlogd_pipeline_lag_seconds, by what the service says it keeps"
)


class LogWatch:
    """What is known of one pipeline's logs. ``figures`` may be called from any thread."""

    def __init__(self, probe: LogProbe, clock: Clock = time.monotonic) -> None:
        self._probe = probe
        self._clock = clock
        self._lock = threading.Lock()
        self._ends: dict[TopicPartition, tuple[int, float]] = {}
        self._whole_at = clock()
        self._answered = False
        self._error: str | None = None
        self._open: dict[TopicPartition, tuple[int, float]] = {}
        self._reported: set[TopicPartition] = set()
        self._kept, self._kept_at = KeptRecords(), float("-inf")
        self._kept_asked = float("-inf")
        self._log: Any = structlog.get_logger().bind(actor="log-watch")
        self._rounds = Periodic(
            "log-watch", self.look, self._every_s, "log-watch", "logs_not_asked"
        )

    def _every_s(self) -> float:
        return min(max(EVERY_S, len(self._ends) / PARTITIONS_PER_S), LONGEST_S)

    def start(self) -> None:
        """Begin to ask."""
        self._rounds.start()

    def close(self) -> None:
        """Stop. A query under way is not awaited, because it is bounded in time."""
        self._rounds.close()

    def figures(self) -> LogFigures:
        """What is known now."""
        with self._lock:
            now = self._clock()
            known = {s: end for s, (end, at) in self._ends.items() if now - at <= KNOWN_FOR_S}
            since_s = now - self._whole_at
            open_ = {
                source: OpenTransaction(offset, now - begun)
                for source, (offset, begun) in self._open.items()
                if source in known
            }
            kept = self._kept if now - self._kept_at <= KEPT_FOR_S else KeptRecords()
            if self._answered and since_s <= KNOWN_FOR_S:
                return LogFigures(known, None, None, kept, open_)
            return LogFigures(known, since_s, self._error or "no answer yet", kept, open_)

    def look(self) -> None:
        """Query once, and keep the answers. Runs on the thread."""
        self._look_at_ends()
        if self._error is None and self._clock() - self._kept_asked >= KEPT_EVERY_S:
            self._kept_asked = self._clock()
            self._look_at_kept()

    def _look_at_kept(self) -> None:
        try:
            kept = self._probe.kept()
        except NotAnswered as error:
            # The logs' ends say the same each second, and are shown as unknown.
            self._log.debug("log_starts_not_known", reason=str(error))
            return
        if kept.refused not in (None, self._kept.refused):
            self._log.warning("retention_unknown", reason=kept.refused, help=WITHOUT_RETENTION)
        with self._lock:
            self._kept, self._kept_at = kept, self._clock()

    def _look_at_ends(self) -> None:
        try:
            answer = self._probe.ends()
        except NotAnswered as unanswered:
            answer = LogEnds({}, str(unanswered))
        with self._lock:
            now = self._clock()
            self._ends.update({source: (end, now) for source, end in answer.ends.items()})
            self._error = answer.error
            if answer.error is None:
                self._answered, self._whole_at = True, now
            for source in answer.ends:
                self._note_open(source, answer.stable.get(source), now)
        self._tell_open(answer.ends, now)

    def _note_open(self, source: TopicPartition, stable: int | None, now: float) -> None:
        """It is another transaction where the offset moves."""
        before = self._open.get(source)
        if stable is None:
            self._open.pop(source, None)
        elif before is None or before[0] != stable:
            self._open[source] = (stable, now)

    def _tell_open(self, ends: Mapping[TopicPartition, int], now: float) -> None:
        """Once when one has been open for long, and once when it has ended."""
        for source, end in ends.items():
            offset, begun = self._open.get(source, (0, now))
            fields = {"source": str(source), "offset": offset, "messages": end - offset}
            if source not in self._reported and now - begun >= OPEN_S:
                self._reported.add(source)
                help_ = "kafka-transactions.sh find-hanging names its producer, abort ends it"
                self._log.warning("open_transaction", **fields, help=help_)
            elif source in self._reported and now - begun < OPEN_S:
                self._reported.discard(source)
                self._log.info("open_transaction_ended", source=str(source))
