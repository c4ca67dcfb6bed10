"""Targets that a person has paused: nothing is written, what comes is kept in their spill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from actors.contract import effects as fx
from actors.processor.buffer import TargetBuffer
from actors.processor.life import Phase
from actors.processor.quarantine import Quarantines
from offsets.position import TopicPartition

WHY = "a person has paused it"


class PausedTargets:
    """Those of one processor. A paused target is spilled as one whose sink is away, and its release
    waits for that person's word: so it goes on exactly where it was."""

    def __init__(self, quarantines: Quarantines, names: Iterable[str]) -> None:
        self._quarantines = quarantines
        self._names = set(names)

    def __contains__(self, target: str) -> bool:
        return target in self._names

    def put(self, target: str, paused: bool) -> fx.Reply:
        """Pause a target, or not any more."""
        if paused:
            self._names.add(target)
        else:
            self._names.discard(target)
        return fx.Reply(True)

    def advance(
        self, buffer: TargetBuffer, epochs: Mapping[TopicPartition, int], now: float
    ) -> list[object]:
        """Spill what waits for a paused target. A write in flight goes on; a release breaks off."""
        quarantine = buffer.quarantine
        if quarantine is not None:
            if quarantine.away and quarantine.releasing and not quarantine.ending:
                return self._quarantines.relapse(buffer, WHY, now, refused=False)
            return []
        waits = bool(buffer.queue.chunks or buffer.staged_files)
        sound = buffer.load is None and buffer.doomed is None and buffer.pending_letter is None
        if not (waits and sound) or buffer.life.phase is Phase.STAGING:
            return []
        return self._quarantines.begin(buffer, WHY, epochs, now, away=True)
