"""Follows rows that change their key while a table is compared. Pure but for its ports.

A row that differs may leave its key and take its wrong values along, where the change tells the
other columns only. No range need show it: it can go from one that is read later to one that was
read before. So the log is looked through from before the first read to behind the last: each key
that a row came to in this way is looked at like one that seemed to differ, until no row that may be
wrong has gone on meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from daemon.databases.port import Key
from daemon.jobs.verify.looks import LOOKS, Ends, Lookout, NotPassed, Seen, looked
from offsets.position import TopicPartition

MOST_MOVES = 10_000
"""Keys that are followed in one table: with more of them it is undecided."""


class Move(NamedTuple):
    """A row's key before and after a change that does not tell the whole row."""

    old: Key
    new: Key


class MovesUnknown(Exception):
    """A stretch of the log can't be read: one line."""


class Follower(Lookout, Protocol):
    """What it takes to follow keys. One thread's."""

    def settled(self) -> Ends:
        """Wait until the log has all that is visible now; a partition in which nothing comes is
        taken to have it. Raises NotPassed."""
        ...

    def moves(self, begins: Ends, ends: Ends) -> Sequence[Move]:
        """The moves between these places, in each partition's order. Raises MovesUnknown."""
        ...


@dataclass(frozen=True, slots=True)
class Trail:
    """How far keys are followed. ``at``: the log is looked through up to there. ``watched``: keys
    from which a row may have taken wrong values since; None: any."""

    at: Ends
    watched: frozenset[Key] | None = None
    rounds: int = 0
    ended: bool = False

    def document(self) -> dict[str, Any]:
        """As JSON keeps it."""
        return {
            "at": {str(source): offset for source, offset in self.at.items()},
            "watched": None if self.watched is None else sorted(map(list, self.watched)),
            "rounds": self.rounds,
            "ended": self.ended,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Trail:
        """Read back what ``document`` gave."""
        watched = document["watched"]
        return cls(
            {TopicPartition.parse(name): int(at) for name, at in document["at"].items()},
            None if watched is None else frozenset(map(tuple, watched)),
            int(document["rounds"]),
            bool(document["ended"]),
        )


def follow(trail: Trail, follower: Follower) -> tuple[Trail, Seen]:
    """Look at the keys that rows have come to since; the trail has ended where there are none."""
    seen = Seen()
    try:
        ends = follower.settled()
        found = _reached(follower.moves(trail.at, ends), trail.watched)
    except (NotPassed, MovesUnknown) as reason:
        seen.undecided[()] = f"keys that changed meanwhile are not known: {reason}"
        return replace(trail, ended=True), seen
    after = Trail(ends, frozenset(found), trail.rounds + 1, ended=not found)
    if not found:
        return after, seen
    if len(found) > MOST_MOVES or after.rounds > LOOKS:
        seen.undecided |= dict.fromkeys(found[:MOST_MOVES], "its row comes from other keys")
        return replace(after, ended=True), seen
    return after, looked(found, follower)


def _reached(moves: Sequence[Move], watched: Collection[Key] | None) -> list[Key]:
    """The keys that rows came to from these, over whatever others: the partitions' moves have no
    common order."""
    if watched is None:
        return list(dict.fromkeys(new for _, new in moves))
    found, before = dict[Key, None](), -1
    while len(found) > before:
        before = len(found)
        found |= {new: None for old, new in moves if old in watched or old in found}
    return list(found)
