"""The looks' port in the running daemon: source, target, log, and the pipeline's progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from daemon.config.pipeline_parts import VerifySection
from daemon.operations.engine.port import Control
from daemon.operations.engine.source_watermarks import (
    LogMoments,
    behind,
    frontiers_of,
    passage,
    some,
)
from daemon.operations.verify.in_flight import Ends, NotPassed
from daemon.operations.verify.key_texts import Move
from daemon.operations.verify.log_changes import LogChanges
from daemon.operations.verify.sides import Side
from databases.base.port import Key, Texts
from databases.opening import Primary
from offsets.snapshot import Snapshot

LOOK_EVERY_S = 0.5
"""Between two looks at the log's end, and at what the pipeline has stored of its progress."""


SETTLE_S = 2.0
"""A partition without news for so long has what is visible, when keys are followed: without a
heartbeat each table would otherwise wait, also one that nobody changes."""


class Interrupted(Exception):
    """There is a request to the job: the step is left."""


class LiveLookout:
    """``looks.Lookout`` and ``moves.Follower`` of one target. One thread's."""

    def __init__(
        self,
        control: Control,
        pipeline: str,
        target: str,
        sides: tuple[Side, Side],
        primary: Primary,
        moments: LogMoments,
        changes: LogChanges,
        settings: VerifySection,
        say: Callable[[str], None],
    ) -> None:
        """``sides``: the source, the target. ``say``: shows what is waited for."""
        self._control = control
        self._pipeline = pipeline
        self._target = target
        self._source, self._stored = sides
        self._primary = primary
        self._moments = moments
        self._changes = changes
        self._settings = settings
        self._say = say
        self.assumed = False
        """Whether an idle partition was taken to have passed a moment."""

    def source(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """See ``Lookout``."""
        return self._source.rows(keys)

    def target(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """See ``Lookout``."""
        return self._stored.rows(keys)

    def begins(self) -> Ends:
        """See ``Lookout``."""
        return self._moments.ended_before(self._settings.margin_s)

    def rest(self) -> None:
        """See ``Lookout``."""
        self._say("waits until rows that change are calm")
        if self._control.wait(self._settings.margin_s):
            raise Interrupted

    def passed(self, begins: Ends) -> Ends:
        """See ``Lookout``."""
        return self._passed(begins, self._settings.idle_s)

    def settled(self) -> Ends:
        """See ``Follower``."""
        settle_s = min(SETTLE_S, self._settings.margin_s)
        idle_s = self._settings.idle_s
        return self._passed(self._moments.ends(), settle_s if idle_s is None else idle_s)

    def _passed(self, begins: Ends, idle_s: float | None) -> Ends:
        log_read = self._moments.log_end(self._primary.log_end)
        search = passage(self._primary.moment(), begins, log_read)
        since_s = time.monotonic()
        while (search := self._moments.followed(search)).waits_for:
            waited_s = time.monotonic() - since_s
            if idle_s is not None and waited_s >= idle_s:
                search = self._moments.followed(search, idle=True)
                if not search.waits_for:
                    break
            self._wait(search.waiting(), since_s)
        self.assumed = self.assumed or search.assumed
        return search.ends

    def held(self, ends: Ends) -> None:
        """See ``Lookout``."""
        since_s = time.monotonic()
        while True:
            snapshot = self._control.snapshot(self._pipeline)
            if (why := not_following(snapshot, self._target)) is not None:
                raise NotPassed(why)
            left = behind(ends, frontiers_of(snapshot))
            if not left:
                return
            self._wait(f"waits until what came before is written: {some(left)}", since_s)

    def changed(self, keys: Collection[Key], begins: Ends, ends: Ends) -> Collection[Key]:
        """See ``Lookout``."""
        return self._changes.among(keys, begins, ends)

    def moves(self, begins: Ends, ends: Ends) -> Sequence[Move]:
        """See ``Follower``."""
        return self._changes.moves(begins, ends)

    def _wait(self, waits: str, since_s: float) -> None:
        if time.monotonic() - since_s > self._settings.wait_s:
            raise NotPassed(f"{waits}: not within {self._settings.wait_s:g} s")
        self._say(waits)
        if self._control.wait(LOOK_EVERY_S):
            raise Interrupted


def not_following(snapshot: Snapshot, target: str) -> str | None:
    """Why a target is not what its log makes of it, however far the pipeline is; None where it is.

    Messages that are spilled count as done, and a table that is rebuilt is not written meanwhile.
    """
    if target in snapshot.spills:
        why = "its sink is away" if snapshot.spills[target].away else "it is in quarantine"
        return f"{why}: its changes are in its spill"
    if target in snapshot.rebuilding:
        return "it is being rebuilt or loaded"
    return None
