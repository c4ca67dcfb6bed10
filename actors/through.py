"""Has tables say through when gates have found them complete.

A gate's process closes it; what it has closed is in files. This looks there now and then, and has
the writers put what is new into the tables. It keeps nothing: after a restart each table is told
once more, which commits nothing where it says so already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.contract.figures import Figures, bare
from actors.contract.of_counts import SideFigures
from actors.runtime.mailbox import Tick
from changes.model.model import TargetName

LOOK_EVERY_S = 10.0
"""As often as gates are looked at themselves."""

AGAIN_AFTER_S = 60.0
"""So long after a table could not say it, or was not there, it is told once more."""

SAID_FOR_S = 3600.0
"""So long it is taken to say so still: somebody may have put another table in its place."""

Moments = Mapping[str, str]
"""By gate the moment through which it is complete, as the table is to say it."""


@dataclass(slots=True)
class _Table:
    """What a table was told last, and when it is told that once more; ``open``: its answer is
    awaited. ``error``: why it could not say it."""

    moments: Moments
    due: float
    open: bool = True
    error: str | None = None

    def answered(self, due: float, error: str | None) -> bool:
        """It has; whether that is something new to name."""
        is_new = error is not None and error != self.error
        self.open, self.due, self.error = False, due, error
        return is_new


class ThroughLogic:
    """One per pipeline that has tables in such gates. Deterministic; see ``handle``."""

    def __init__(
        self,
        pipeline: str,
        moments: Callable[[], tuple[Mapping[str, Moments], str | None]],
        unix_s: Callable[[], float],
    ) -> None:
        """``moments``: by table what it is to say, and why that is not known of others. ``unix_s``:
        the time, in Unix seconds."""
        self._me = Address(pipeline, "through")
        self._moments, self._unix_s = moments, unix_s
        self._tables: dict[str, _Table] = {}
        self._unread: str | None = None
        self._failing_since: float | None = None

    def handle(self, message: object, now: float) -> list[fx.OwnTableEffect]:
        """React to one message. ``now`` is in monotonic seconds."""
        match message:
            case Tick():
                return [*self._look(now), fx.WakeAt(now + LOOK_EVERY_S)]
            case msg.Tagged(target, is_there):
                due = SAID_FOR_S if is_there else AGAIN_AFTER_S
                return self._answered(str(target), now + due, None)
            case msg.Failed(target, _, reason):
                return self._answered(str(target), now + AGAIN_AFTER_S, bare(str(target), reason))
            case Figures():
                return [fx.Reply(SideFigures(self._error, self._failing_since))]
            case _:
                raise TypeError(f"an actor for gates' moments does not know {message!r}")

    def _look(self, now: float) -> list[fx.OwnTableEffect]:
        found, self._unread = self._moments()
        self._note()
        out: list[fx.OwnTableEffect] = []
        for name, moments in sorted(found.items()):
            told = self._tables.get(name)
            if told is not None and (told.open or (told.moments == moments and now < told.due)):
                continue
            error = None if told is None else told.error
            self._tables[name] = _Table(moments, now, error=error)
            out.append(fx.Tell(WRITERS, msg.SayThrough(TargetName.parse(name), moments, self._me)))
        return out

    def _answered(self, target: str, due: float, error: str | None) -> list[fx.OwnTableEffect]:
        if (told := self._tables.get(target)) is None:
            return []  # of a life before this one
        is_new = told.answered(due, error)
        self._note()
        fields = {"target": target, "reason": error}
        return [fx.Log("warning", "valid_through_not_set", fields)] if is_new else []

    def _note(self) -> None:
        """Since when something is wrong."""
        if self._error is None:
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = self._unix_s()

    @property
    def _error(self) -> str | None:
        lines = (f"{n}: {t.error}" for n, t in sorted(self._tables.items()) if t.error is not None)
        return self._unread or next(lines, None)
