"""Targets whose sink is away: they fill their own spill, so that targets in other sinks go on.

A target whose sink has not answered for a while is spilled as a target in quarantine is: what is
held of it from the first unwritten message on, and what comes. Its release begins at once, and by
itself: it asks the sink until that answers, replays the spill, and the target follows the stream
again. Nobody has to do anything. A sink that answers, but more slowly than its rows come, is
treated the same way when what waits for it would stop the reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from actors.contract.figures import bare
from actors.processor.buffer import TargetBuffer
from actors.processor.life import Phase
from actors.processor.limits.paused import PausedTargets
from actors.processor.quarantine import Quarantines
from actors.processor.release import Releases
from offsets.position import TopicPartition


class Absences:
    """Says which of one processor's targets are spilled. Deterministic: it answers with effects."""

    def __init__(
        self,
        quarantines: Quarantines,
        releases: Releases,
        paused: PausedTargets,
        after_s: float | None,
    ) -> None:
        """``after_s``: how long a sink may take to answer; None: for ever, there is no other one
        that would have to wait for it."""
        self._quarantines = quarantines
        self._releases = releases
        self._paused = paused
        self._after_s = after_s

    def due_at(self, buffer: TargetBuffer) -> float | None:
        """When a target is spilled unless its sink answers before. None: not."""
        if self._after_s is None or buffer.asked_at is None or not self._may_be_spilled(buffer):
            return None
        return buffer.asked_at + self._after_s

    def advance(
        self,
        buffer: TargetBuffer,
        epochs: Mapping[TopicPartition, int],
        now: float,
        draining: bool,
    ) -> list[object]:
        """Spill a target whose sink has been silent for too long, or begin its release."""
        buffer.note_asked(now)
        if buffer.name in self._paused:
            return self._paused.advance(buffer, epochs, now)
        quarantine = buffer.quarantine
        if quarantine is not None and draining and quarantine.away and buffer.life.waiting:
            # A stop does not wait for the sink: the spill has what is in the write.
            why = "the daemon stops, and its sink takes no write"
            return self._quarantines.relapse(buffer, why, now, refused=False)
        if quarantine is not None:
            return self._releases.of_away(buffer, draining)
        due_at = self.due_at(buffer)
        if due_at is None or now < due_at:
            return []
        assert buffer.asked_at is not None
        why = f"its sink has not answered for {now - buffer.asked_at:.0f} s"
        if buffer.tally.lasting and buffer.tally.error:
            why += f": {bare(buffer.name, buffer.tally.error)}"
        return self._quarantines.begin(buffer, why, epochs, now, away=True)

    def overflows(
        self, buffers: Collection[TargetBuffer], epochs: Mapping[TopicPartition, int], now: float
    ) -> list[object]:
        """Spill the largest target of the sink for which more than half of all waits."""
        if self._after_s is None:
            return []
        waiting: Counter[str] = Counter()
        for buffer in buffers:
            waiting[buffer.route.name.sink] += buffer.held_bytes + buffer.staged_bytes
        sink, most = max(waiting.items(), key=lambda item: item[1])
        if most * 2 <= waiting.total():
            return []
        mine = [b for b in buffers if b.route.name.sink == sink and self._may_be_spilled(b)]
        if not mine:
            return []
        largest = max(mine, key=lambda b: b.held_bytes + b.staged_bytes)
        why = f"more waits for {sink} than for all other sinks, and there is no room for more"
        return self._quarantines.begin(largest, why, epochs, now, away=True)

    def _may_be_spilled(self, buffer: TargetBuffer) -> bool:
        """While it is asked of the sink, something waits behind that, and nothing but the sink
        holds it."""
        asked = buffer.life.phase in (Phase.OPENING, Phase.WRITING)
        waits = bool(buffer.queue.chunks or buffer.staged_files)
        alone = buffer.quarantine is None and buffer.load is None
        sound = buffer.doomed is None and buffer.pending_letter is None
        return asked and waits and alone and sound
