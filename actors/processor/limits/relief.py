"""Keeps what one processor holds within its budgets: stages, spills, or leaves data waiting."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from actors.contract import effects as fx
from actors.processor.buffer import TargetBuffer
from actors.processor.limits.away import Absences
from actors.processor.settings import ProcessorSettings
from offsets.position import TopicPartition


class Relief:
    """Deterministic: it answers with effects."""

    def __init__(
        self,
        settings: ProcessorSettings,
        absences: Absences,
        may_stage: Callable[[TargetBuffer], bool],
        stage_behind: Callable[[TargetBuffer], list[object]],
    ) -> None:
        self._settings = settings
        self._absences = absences
        self._may_stage = may_stage
        self._stage_behind = stage_behind
        self.holds = False
        """Whether data is left waiting."""

    def relieve(
        self, buffers: Collection[TargetBuffer], epochs: Mapping[TopicPartition, int], now: float
    ) -> list[object]:
        """Stage the largest buffers while too much is held. Where none can be, spill what waits
        for a sink that is behind the others; else leave data waiting."""
        out: list[object] = []
        settings = self._settings
        waiting = filter(self._may_stage, (b for b in buffers if b.queue.chunks))
        candidates = sorted(waiting, key=lambda b: b.queue.size)
        staged = sum(b.staged_bytes for b in buffers)
        while self._held(buffers) > settings.memory_bytes and candidates:
            if staged > settings.staged_bytes:
                break
            out += self._stage_behind(candidates.pop())
        while self._is_full(buffers):
            spilled = self._absences.overflows(buffers, epochs, now)
            if not spilled:
                break
            out += spilled
        hold = self._is_full(buffers)
        if hold != self.holds:
            self.holds = hold
            staged = sum(b.staged_bytes for b in buffers)
            fields = {"buffered_bytes": self._held(buffers), "staged_bytes": staged}
            out += [fx.Hold(hold), fx.Log("info", "hold" if hold else "flow", fields)]
        return out

    def _held(self, buffers: Collection[TargetBuffer]) -> int:
        return sum(b.held_bytes for b in buffers)

    def _is_full(self, buffers: Collection[TargetBuffer]) -> bool:
        staged = sum(b.staged_bytes for b in buffers)
        settings = self._settings
        return self._held(buffers) > settings.memory_bytes or staged > settings.staged_bytes
