"""Keys in flight: tells rows that differ from rows that are on their way. Pure but for its port.

A row is looked at in the source, then in the target once that holds all that the source showed at
the first look, and in the source again. It differs only if the log has no change of it from before
the first look until after the second: then the source had one row all the time, and the target must
have that. "Before" is a margin earlier, for a commit may be in the log before a read sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from databases.base.port import Key, Texts
from offsets.position import TopicPartition

Ends = Mapping[TopicPartition, int]
"""A place in each partition of the log."""

LOOKS = 6
"""Looks at a row that changes all the time, before it is reported as undecided.

The second comes at once: most rows that were on their way are there by then, and those that are
not have a rest before each further one."""


class NotPassed(Exception):
    """The target does not come to hold what the source showed: one line that says why."""


class DifferingRow(NamedTuple):
    """A row that differs: as the source has it, as the target has it; None where it has none."""

    key: Key
    source: Texts | None
    target: Texts | None


@dataclass(slots=True)
class KeyLooks:
    """What the looks at some keys gave. ``undecided``: keys, and why. ``moved``: of a target at
    rest the keys whose rows have changed since."""

    differing: list[DifferingRow] = field(default_factory=list)
    undecided: dict[Key, str] = field(default_factory=dict)
    moved: list[Key] = field(default_factory=list)


class Lookout(Protocol):
    """What the looks ask. One thread's."""

    def source(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """The source's rows now."""
        ...

    def target(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """The target's rows now."""
        ...

    def begins(self) -> Ends:
        """Where the log ended a margin ago: no change that a read does not see yet is before."""
        ...

    def rest(self) -> None:
        """Wait for that margin: what changed at the last look may be calm then."""
        ...

    def passed(self, begins: Ends) -> Ends:
        """Wait until the log has passed the database's present moment: below what it gives is all
        that was visible then. It looks from ``begins`` on. Raises NotPassed."""
        ...

    def held(self, ends: Ends) -> None:
        """Wait until the target holds all below these places. Raises NotPassed."""
        ...

    def changed(self, keys: Collection[Key], begins: Ends, ends: Ends) -> Collection[Key]:
        """Those of the keys of which the log may have a change between these places."""
        ...


Look = Callable[[Sequence[Key], KeyLooks], list[Key]]
"""One look at keys: what it decides goes into ``KeyLooks``; gives those that need another."""


def looked(keys: Sequence[Key], lookout: Lookout, looks: int = LOOKS) -> KeyLooks:
    """Look at keys whose rows seemed to differ, until each is decided or was looked at so often."""
    return repeated(keys, partial(_look, lookout), lookout.rest, looks)


def repeated(
    keys: Sequence[Key], look: Look, rest: Callable[[], None], looks: int = LOOKS
) -> KeyLooks:
    """Look until each key is decided or was looked at so often, with a rest before each look that
    follows the second."""
    seen, left = KeyLooks(), list(keys)
    for number in range(looks):
        try:
            if number > 1:
                rest()
            left = look(left, seen)
        except NotPassed as reason:
            seen.undecided |= dict.fromkeys(left, str(reason))
            return seen
        if not left:
            return seen
    seen.undecided |= dict.fromkeys(left, "it changes all the time")
    return seen


def looked_at_rest(keys: Sequence[Key], lookout: Lookout) -> KeyLooks:
    """Look once at keys of a target that does not change any more: a row that has changed since
    can't be decided by another look."""
    return once(keys, partial(_look, lookout))


def once(keys: Sequence[Key], look: Look) -> KeyLooks:
    """Look once: what is not decided then has moved."""
    seen = KeyLooks()
    try:
        seen.moved = look(keys, seen)
    except NotPassed as reason:
        seen.undecided |= dict.fromkeys(keys, str(reason))
    return seen


def _look(lookout: Lookout, keys: Sequence[Key], seen: KeyLooks) -> list[Key]:
    """One look; gives the keys that need another."""
    begins = lookout.begins()
    first = lookout.source(keys)
    lookout.held(lookout.passed(begins))
    stored = lookout.target(keys)
    unlike = [key for key in keys if first.get(key) != stored.get(key)]
    if not unlike:
        return []
    second = lookout.source(unlike)
    moved = {key for key in unlike if second.get(key) != first.get(key)}
    still = [key for key in unlike if key not in moved]
    if still:
        # A row may have changed and changed back: the two looks alone would not tell.
        moved |= set(lookout.changed(still, begins, lookout.passed(begins)))
    seen.differing += [
        DifferingRow(key, first.get(key), stored.get(key)) for key in still if key not in moved
    ]
    return [key for key in unlike if key in moved]
