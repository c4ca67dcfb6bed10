"""What a verification remembers between its steps, as JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from changes.sql.spark.checksums import Grid
from daemon.operations.verify.groups import Differing
from daemon.operations.verify.key_texts import Trail
from databases.base.port import Key

MOST_FOUND = 10_000
"""Rows of one table that differ, before it is left: a table that lacks so much is loaded again."""

MOST_SHOWN = 100
"""Rows of one table whose values are in the result."""

RESTARTS = 3
"""Attempts at one table whose definition changes meanwhile."""


@dataclass(frozen=True, slots=True)
class Table:
    """How far the comparison of one table is. ``begun_ms``: Unix milliseconds.

    ``definition``: of the source's table as the comparison began. ``grid``: on which the bounds of
    its intervals are. ``left``: what is still to be
    looked at closer; None before the first pass. ``found``: keys that differ; ``shown``: the first
    of them with their values. ``rows``: of the source, of the target. ``trail``: of rows that
    change their key meanwhile; None before the first pass, and of a cut. ``moved``: how many rows
    have changed since the cut. ``changed``: of two targets the keys that the log changed between
    what the one had and what the other had, and that are still to be looked at.
    """

    begun_ms: int
    definition: str = ""
    grid: Grid | None = None
    left: tuple[Differing, ...] | None = None
    found: tuple[Key, ...] = ()
    shown: tuple[Mapping[str, Any], ...] = ()
    undecided: tuple[tuple[Key, str], ...] = ()
    rows: tuple[int, int] = (0, 0)
    ranges: int = 0
    notes: tuple[str, ...] = ()
    restarts: int = 0
    trail: Trail | None = None
    moved: int = 0
    changed: tuple[Key, ...] = ()

    @property
    def is_compared(self) -> bool:
        """Whether nothing is left to be looked at."""
        if self.left is None or self.is_full:
            return self.left is not None
        rest = self.left or self.changed
        return not rest and (self.trail is None or self.trail.ended)

    @property
    def is_full(self) -> bool:
        """Whether so much differs that it is left."""
        return len(self.found) >= MOST_FOUND

    def again(self) -> Table:
        """Begun again, for its definition has changed."""
        return Table(self.begun_ms, restarts=self.restarts + 1)

    def document(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return {
            "begun_ms": self.begun_ms,
            "definition": self.definition,
            "grid": None if self.grid is None else list(self.grid),
            "left": None if self.left is None else [part.document() for part in self.left],
            "found": [list(key) for key in self.found],
            "shown": [dict(one) for one in self.shown],
            "undecided": [[list(key), why] for key, why in self.undecided],
            "rows": list(self.rows),
            "ranges": self.ranges,
            "notes": list(self.notes),
            "restarts": self.restarts,
            "trail": None if self.trail is None else self.trail.document(),
            "moved": self.moved,
            "changed": [list(key) for key in self.changed],
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Table:
        """Read back what ``document`` gave."""
        left, grid, trail = document["left"], document["grid"], document.get("trail")
        source, target = document["rows"]
        return cls(
            int(document["begun_ms"]),
            str(document["definition"]),
            None if grid is None else Grid(*grid),
            None if left is None else tuple(map(Differing.of, left)),
            tuple(tuple(key) for key in document["found"]),
            tuple(document["shown"]),
            tuple((tuple(key), why) for key, why in document["undecided"]),
            (int(source), int(target)),
            int(document["ranges"]),
            tuple(document["notes"]),
            int(document["restarts"]),
            None if trail is None else Trail.of(trail),
            int(document.get("moved", 0)),
            tuple(tuple(key) for key in document.get("changed", ())),
        )


@dataclass(frozen=True, slots=True)
class Work:
    """How far a job is: the tables that are done, as their results, and the present one."""

    done: tuple[Mapping[str, Any], ...] = ()
    table: Table | None = None
    source_rows: int = field(default=0)

    def document(self) -> dict[str, Any]:
        """As JSON keeps it."""
        table = None if self.table is None else self.table.document()
        return {"done": [dict(one) for one in self.done], "table": table, "rows": self.source_rows}

    @classmethod
    def of(cls, memory: Mapping[str, Any]) -> Work:
        """Read back what ``document`` gave; nothing is done where there is nothing."""
        if not memory:
            return cls()
        table = memory["table"]
        done = None if table is None else Table.of(table)
        return cls(tuple(memory["done"]), done, int(memory["rows"]))

    def ended(self, result: Mapping[str, Any]) -> Work:
        """The present table is done."""
        rows = self.source_rows + int(result["rows"])
        return replace(self, done=(*self.done, result), table=None, source_rows=rows)
