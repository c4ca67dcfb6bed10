"""Keeps what comes for a database's tables until the next cut, where that is how they are written.

Nothing is due before the fetcher stands at a boundary and has all of it written (``msg.Flush``).
Only where no more can be held is a batch written between two cuts. What is held at a stop is not
written: it is read again from the log.
"""

from __future__ import annotations

from collections.abc import Callable

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.target.buffer import TargetBuffer
from actors.target.settings import ProcessorSettings
from actors.target.target_state import Phase


class AtCuts:
    """Says so of one processor's targets. Deterministic: it answers with effects."""

    def __init__(
        self,
        pipeline: str,
        settings: ProcessorSettings,
        flushing: Callable[[], bool],
        holds: Callable[[], bool],
    ) -> None:
        """``flushing``: whether all is to be written now. ``holds``: whether no more can be
        held."""
        self._fetcher = Address(pipeline, "fetcher")
        self._sinks, self._much = settings.together, settings.buffer_bytes / 2
        self._flushing, self._holds = flushing, holds
        self._asked = False

    def covers(self, buffer: TargetBuffer) -> bool:
        """Whether a target is written at cuts. One that is released or loaded is written by
        itself."""
        alone = buffer.quarantine is not None or buffer.load is not None
        return buffer.route.name.sink in self._sinks and not alone

    def gathers(self, buffer: TargetBuffer) -> bool:
        """Whether a write goes together with others': also what comes late to its cut."""
        return self.covers(buffer) and (self._flushing() or not self._holds())

    def waits(self, buffer: TargetBuffer) -> bool:
        """Whether what a target holds is kept."""
        return self.gathers(buffer) and not self._flushing()

    def is_over(self, buffer: TargetBuffer) -> bool:
        """Whether nothing of it is to be written any more, in a run that ends."""
        kept = buffer.life.phase is Phase.READY and self.waits(buffer)
        return buffer.empty or buffer.life.phase is Phase.STOPPED or kept

    def ask(self, buffer: TargetBuffer) -> list[fx.TargetEffect]:
        """Have a cut made soon where more than half of what one write takes is kept."""
        if self._flushing():
            self._asked = False
        much = buffer.queue.size >= self._much or buffer.staged_files
        if not much or self._asked or not self.waits(buffer):
            return []
        self._asked = True
        return [fx.Tell(self._fetcher, msg.CutSoon())]
