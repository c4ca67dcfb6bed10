"""Writing batches of several targets in one step, over any store that can do that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from actors.contract.ports import OneFailed
from actors.contract.writes import StagedBatch, TargetState
from changes.model.errors import SinkAway, SinkUnavailable, TargetRefused, WaitsForRows
from changes.model.model import TargetName
from offsets.fence import Fenced
from sparkwriter.kit.store import E, TableStore
from sparkwriter.kit.writer import TargetWriter, check_capable


class StoreTogether(TableStore[E], Protocol[E]):
    """A sink's tables, several of which can change in one step."""

    def prepare(self, seen: E, batch: StagedBatch) -> None:
        """What ``publish`` would do to the table before its step."""
        ...

    def together(self, locks_s: float) -> AbstractContextManager[None]:
        """What is published inside is one step, made at the end. ``locks_s``: as of
        ``write_together``. Raises LostRace for what can't be part of it; OneFailed where it knows
        at its end who is in the way."""
        ...

    def part(self) -> AbstractContextManager[None]:
        """One target's part of that: where it waits for another table's rows, it alone is taken
        back."""
        ...

    def is_away(self, target: TargetName) -> bool:
        """Behind a failure that was one target's: whether none could be written, either."""
        ...


class TogetherWriter(TargetWriter[E]):
    """The kit's loop, for one target or for several at once."""

    def __init__(self, store: StoreTogether[E]) -> None:
        super().__init__(store)
        self._several = store

    def write_together(
        self, batches: Sequence[StagedBatch], locks_s: float = math.inf
    ) -> list[TargetState]:
        """See ``actors.contract.ports.WritesTogether``."""
        at: TargetName | None = None
        try:
            for batch in batches:
                at = batch.target
                self._prepare(batch)
            at = None
            # In one order for all: two that lock the same tables then wait for each other in turn.
            waiting = sorted(batches, key=lambda batch: batch.target)
            states: dict[TargetName, TargetState] = {}
            with self._several.call(batches[0].target), self._several.together(locks_s):
                while waiting:
                    waiting = self._write_all(waiting, states)
        except (SinkUnavailable, TargetRefused, Fenced) as error:
            raise OneFailed(at) from self._why(error, batches[0].target)
        return [states[batch.target] for batch in batches]

    def _write_all(
        self, batches: Sequence[StagedBatch], states: dict[TargetName, TargetState]
    ) -> list[StagedBatch]:
        """Within the transaction. Returns those whose rows wait for another's, which have another
        try behind the others. Raises OneFailed, also where all of them wait."""
        waiting: list[StagedBatch] = []
        first: WaitsForRows | None = None
        for batch in batches:
            try:
                with self._several.part():
                    states[batch.target] = self.write(batch)
            except WaitsForRows as error:
                first = first or error
                waiting.append(batch)
            except (SinkUnavailable, TargetRefused, Fenced) as error:
                raise OneFailed(batch.target) from self._why(error, batch.target)
        if first is not None and len(waiting) == len(batches):
            raise OneFailed(waiting[0].target) from first
        return waiting

    def _why(self, error: Exception, target: TargetName) -> Exception:
        """A sink that answers nobody is nobody's fault: then all wait, and come together."""
        if type(error) is not SinkUnavailable or not self._several.is_away(target):
            return error
        away = SinkAway(str(error))
        away.__cause__ = error
        return away

    def _prepare(self, batch: StagedBatch) -> None:
        """Make the table, or give it its columns, as far as the batch needs that."""
        with self._several.call(batch.target):
            check_capable(batch, self._several.capabilities)
            seen, covered = self._fitting(batch)
            if not covered:
                self._several.prepare(seen, batch)
