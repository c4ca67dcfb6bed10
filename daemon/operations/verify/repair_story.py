"""What a repair says: of each row what it was and what it is, or why it is not repaired."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from changes.model.errors import TargetRefused, WaitsForRows
from daemon.operations.verify.columns import ComparedShape
from daemon.operations.verify.in_flight import DifferingRow, Ends, Lookout
from daemon.operations.verify.report import Repaired, shown
from databases.base.port import Key, Texts
from offsets.position import NO_OFFSET
from settings.counted import counted

# Writes rows in as few writes as can be where the database refuses some of them for good. Pure.

MOST_REFUSED = 100
"""Rows that are refused, before the others are left: the pipeline stands meanwhile."""

PASSES = 5
"""Attempts at rows that are refused, as long as others get through."""

FOR_GOOD = (TargetRefused, WaitsForRows)
"""What a database says of rows. A foreign key's other row may come, but nobody waits for it."""


@dataclass(slots=True)
class Written:
    """``refused``: rows that were not written, and why. ``left``: rows that nobody tried."""

    done: list[Key] = field(default_factory=list)
    refused: dict[Key, str] = field(default_factory=dict)
    left: list[Key] = field(default_factory=list)


def written(keys: Sequence[Key], write: Callable[[Sequence[Key]], None]) -> Written:
    """Write the rows of the keys: all at once, then by halves where that is refused.

    Rows that are refused are tried again as long as others get through: one may need another.
    Raises what ``write`` does, but for refusals.
    """
    ended, todo = Written(), list(keys)
    for _ in range(PASSES):
        before = len(ended.done)
        ended.refused, ended.left = {}, []
        _write(todo, write, ended)
        todo = [*ended.refused, *ended.left]
        if not todo or len(ended.done) == before:
            break
    return ended


def _write(keys: Sequence[Key], write: Callable[[Sequence[Key]], None], ended: Written) -> None:
    if len(ended.refused) >= MOST_REFUSED:
        ended.left += keys
        return
    try:
        write(keys)
    except FOR_GOOD as error:
        if len(keys) == 1:
            ended.refused[keys[0]] = str(error)
            return
    else:
        ended.done += keys
        return
    half = len(keys) // 2
    _write(keys[:half], write, ended)
    _write(keys[half:], write, ended)


# Which rows may be written beside a stream, whatever is still to come of it. Pure.


@dataclass(frozen=True, slots=True)
class Ready:
    """Rows as the source had them, None where it had none. ``begins``: where the log ended a margin
    before they were read, or their comparison did; ``ends``: below it is all that they show."""

    rows: Mapping[Key, Texts | None]
    begins: Ends
    ends: Ends

    @property
    def keys(self) -> Sequence[Key]:
        """Of all rows."""
        return list(self.rows)


def made_ready(keys: Sequence[Key], since: Ends, lookout: Lookout) -> Ready:
    """Read rows while the pipeline runs, and wait until the target holds all that they show.

    ``since``: up to where the comparison has followed the keys. Raises NotPassed.
    """
    calm = lookout.begins()
    begins = {source: min(at, since.get(source, at)) for source, at in calm.items()}
    found = lookout.source(keys)
    ends = lookout.passed(begins)
    lookout.held(ends)
    return Ready({key: found.get(key) for key in keys}, begins, ends)


def places(ready: Ready, frontiers: Ends, marks: Ends) -> Ends:
    """Where a target's stream stands: all below is in the target, and nothing else. ``marks`` are
    the target's: another member of the group may have gone on behind the frontiers."""
    sources = {*ready.begins, *marks}
    return {
        source: max(frontiers.get(source, 0), marks.get(source, NO_OFFSET) + 1)
        for source in sources
    }


def calm_keys(ready: Ready, at: Ends, lookout: Lookout) -> list[Key]:
    """The keys whose rows the target must have where its stream stands."""
    moved = set(lookout.changed(ready.keys, ready.begins, at))
    return [key for key in ready.keys if key not in moved]


def stands_behind(ready: Ready, at: Ends) -> bool:
    """Whether the stream has gone back below what the rows show: an operator did that."""
    return any(at.get(source, 0) < end for source, end in ready.ends.items())


log: Any = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Story:
    """Of one edit. ``before``: the target's rows; ``stored``: those that were written, as they are
    read back."""

    job: str
    target: str
    shape: ComparedShape
    ready: Ready
    before: Mapping[Key, Texts]
    stored: Mapping[Key, Texts]

    def lines(
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
        return shown(DifferingRow(key, source, target), self.shape)


def _notes(moving: int, kept: int, left: int) -> list[str]:
    found = []
    if moving:
        found.append(f"not repaired: {counted(moving, 'row')}, which the source changes just now")
    if kept:
        found.append(
            f"not repaired: {counted(kept, 'row')} that the source has not: "
            'delete = "soft" keeps deleted rows'
        )
    if left:
        found.append(f"not repaired: {counted(left, 'row')} more, for so many others are refused")
    return found
