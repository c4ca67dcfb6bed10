"""Looks at rows that seem to differ in two targets of one log: told, looked at again, or undecided.

A row differs if both were read and the log has no change of it between what the one held surely
and what the other held at most. Else both must come to hold that stretch, and it is looked at once
more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from daemon.config.pipeline_parts import VerifySection
from daemon.operations.engine.port import Control
from daemon.operations.engine.source_watermarks import some
from daemon.operations.verify.between.places import Places, highest, lowest, short_of
from daemon.operations.verify.between.unstorable import Nulls
from daemon.operations.verify.in_flight import (
    DifferingRow,
    Ends,
    KeyLooks,
    NotPassed,
    once,
    repeated,
)
from daemon.operations.verify.in_flight_here import LOOK_EVERY_S, Interrupted
from daemon.operations.verify.key_texts import Move
from daemon.operations.verify.log_changes import LogChanges
from daemon.operations.verify.sides import Side
from databases.base.port import Key


class BetweenLookout:
    """The looks at two targets. ``key_texts.KeyMoves``, too. One thread's."""

    def __init__(
        self,
        control: Control,
        sides: tuple[Side, Side],
        places: tuple[Places, Places],
        names: tuple[str, str],
        changes: LogChanges,
        nulls: Nulls,
        settings: VerifySection,
        say: Callable[[str], None],
    ) -> None:
        """``names``: the targets', for people. ``say``: shows what is waited for."""
        self._control = control
        self._sides = sides
        self._places = places
        self._names = names
        self._changes = changes
        self._nulls = nulls
        self._settings = settings
        self._say = say
        self._wanted: Ends = {}

    def begins(self) -> Ends:
        """Below these places both targets hold everything."""
        first, second = self._places
        return lowest(first.holds(), second.holds())

    def settled(self) -> Ends:
        """See ``KeyMoves``: what neither target holds yet no read has seen."""
        first, second = self._places
        return highest(first.lacks(), second.lacks())

    def moves(self, begins: Ends, ends: Ends) -> Sequence[Move]:
        """See ``KeyMoves``."""
        return self._changes.moves(begins, ends)

    def looked(self, keys: Sequence[Key]) -> KeyLooks:
        """Look until each key is decided, or was looked at often enough."""
        self._wanted = {}
        return repeated(keys, self._look, self._rest)

    def looked_when_held(self, keys: Sequence[Key]) -> KeyLooks:
        """The same, and not before both targets hold what either holds now."""
        self._wanted = self.settled()
        return repeated(keys, self._look, self._rest)

    def looked_at_cut(self, keys: Sequence[Key], cut: Ends) -> KeyLooks:
        """Look once, when the second target has come to the first one's cut, if it follows: rows
        that changed between the two can't be decided by another look."""
        self._wanted = cut if self._places[1].why_behind() is None else {}
        return once(keys, self._look)

    def _look(self, keys: Sequence[Key], seen: KeyLooks) -> list[Key]:
        """One look; gives the keys that need another."""
        self._await_held(self._wanted)
        begins = self.begins()
        first, second = (side.rows(keys) for side in self._sides)
        self._wanted = self.settled()
        alike = self._nulls.alike
        unlike = [key for key in keys if not alike(first.get(key), second.get(key))]
        if not unlike:
            return []
        moved = set(self._changes.among(unlike, begins, self._wanted))
        seen.differing += [
            DifferingRow(key, first.get(key), second.get(key)) for key in unlike if key not in moved
        ]
        return [key for key in unlike if key in moved]

    def _await_held(self, ends: Ends) -> None:
        """Wait until both targets hold all below these places. Raises NotPassed."""
        since_s = time.monotonic()
        for name, places in zip(self._names, self._places, strict=True):
            while left := short_of(ends, places.holds()):
                if (why := places.why_behind()) is not None:
                    raise NotPassed(
                        f"it changed between the two, and {name} does not follow: {why}"
                    )
                waits = f"waits until {name} has what the other has: {some(left)}"
                if time.monotonic() - since_s > self._settings.wait_s:
                    raise NotPassed(f"{waits}: not within {self._settings.wait_s:g} s")
                self._say(waits)
                if self._control.wait(LOOK_EVERY_S):
                    raise Interrupted

    def _rest(self) -> None:
        self._say("waits until rows that change are calm")
        if self._control.wait(self._settings.margin_s):
            raise Interrupted
