"""What a repair says: of each row what it was and what it is, or why it is not repaired."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from daemon.databases.port import Key, Texts
from daemon.jobs.verify.columns import Shape
from daemon.jobs.verify.looks import Found
from daemon.jobs.verify.repair.parts import Written
from daemon.jobs.verify.repair.rule import Ready
from daemon.jobs.verify.report import Repaired, shown

log: Any = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Story:
    """Of one edit. ``before``: the target's rows; ``stored``: those that were written, as they are
    read back."""

    job: str
    target: str
    shape: Shape
    ready: Ready
    before: Mapping[Key, Texts]
    stored: Mapping[Key, Texts]

    def told(
        self, keys: Sequence[Key], kept: Collection[Key], ended: Written, moving: int
    ) -> Repaired:
        """Of the keys that were calm, without those that are ``kept``; ``moving``: how many were
        not."""
        why = f"{self.job}: the log has no change of it, and the two were not the same"
        left = set(ended.left)
        rows: list[Mapping[str, Any]] = []
        refused: list[Mapping[str, Any]] = []
        for key in (key for key in keys if key not in kept and key not in left):
            before, now = self.before.get(key), self.ready.rows[key]
            if before == now:
                rows.append({**self._row(key, now, before), "why": why, "what": "equal now"})
            elif (reason := self._reason(key, ended)) is not None:
                refused.append({**self._row(key, now, self.stored.get(key, before)), "why": reason})
                log.warning("row_not_repaired", target=self.target, **refused[-1])
            else:
                rows.append({**self._row(key, now, before), "why": why})
                log.info("row_repaired", target=self.target, **rows[-1])
        return Repaired(tuple(rows), tuple(refused), tuple(_notes(moving, len(kept), len(left))))

    def _reason(self, key: Key, ended: Written) -> str | None:
        """Why a row is not as the source has it."""
        if (said := ended.refused.get(key)) is not None:
            return said
        if self.stored.get(key) == self.ready.rows[key]:
            return None
        return "the server changes it: it was written, and read back as another"

    def _row(self, key: Key, source: Texts | None, target: Texts | None) -> dict[str, Any]:
        return shown(Found(key, source, target), self.shape)


def _notes(moving: int, kept: int, left: int) -> list[str]:
    found = []
    if moving:
        found.append(f"not repaired: {moving} rows, which the source changes just now")
    if kept:
        found.append(
            f'not repaired: {kept} rows that the source has not: delete = "soft" keeps deleted rows'
        )
    if left:
        found.append(f"not repaired: {left} rows more, for so many others are refused")
    return found
