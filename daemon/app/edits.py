"""Edits of a pipeline's snapshot, with the daemon stopped or running.

Offline, the state directory's lock keeps daemons away. In a running daemon the pipeline drains (or
has already stopped) and its actors end. Then the snapshot is changed in the pipeline's stores, and
the pipeline starts again with new actors. The other pipelines and the sinks' session go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from daemon.app.lifecycle import Hold, Lifecycle, LifeEffect, PipelineHeld, Resumed
from daemon.app.topology import PipelineParts
from daemon.state.edits import Change, EditBusy, EditFailed, EditRefused, Fate
from offsets.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class EditRequested:
    """A request to the supervisor for an edit. ``done`` fails with EditRefused or EditFailed."""

    pipeline: str
    change: Change
    done: Future[None]
    fate: Fate = Fate.RUNS_AGAIN


@dataclass(frozen=True, slots=True)
class Edited:
    """An edit has ended. ``parts`` start the pipeline again; None if it can't start, with the
    reason in ``failure``, or is not to. ``refused``: nothing was changed."""

    pipeline: str
    parts: PipelineParts | None
    failure: str | None = None
    refused: str | None = None


@dataclass(slots=True)
class _Open:
    """A running edit. ``ended``: the pipeline did not run before; ``failure``: why."""

    request: EditRequested
    ended: bool
    failure: str | None

    @property
    def stays(self) -> bool:
        """Whether it does not run afterwards either."""
        return self.ended and self.request.fate is Fate.AS_IT_WAS

    def is_gone(self, edited: Edited) -> bool:
        """Whether nobody is to know the pipeline any more."""
        worked = edited.refused is None and edited.failure is None
        fate = self.request.fate
        return (fate is Fate.GOES and worked) or (fate is Fate.BEGINS and not worked)


class Lives(Protocol):
    """What an edit does to a held pipeline. ``daemon/app/supervisor.py`` has the real one."""

    processors: int
    """Of each pipeline."""

    def open(self, pipeline: str) -> None:
        """Open the stores of a new pipeline. On the edit's thread. Raises EditFailed."""
        ...

    def change(self, pipeline: str, change: Change) -> Snapshot:
        """End its actors and change its snapshot. On the edit's thread. Raises EditFailed."""
        ...

    def parts(self, pipeline: str, recorded: Snapshot) -> PipelineParts:
        """The parts of its next life. On the edit's thread. Raises EditFailed."""
        ...

    def end(self, pipeline: str) -> None:
        """It has no next life: close what is open for it. On the edit's thread."""
        ...

    def start(self, parts: PipelineParts) -> None:
        """Start the parts. On the main thread."""
        ...

    def changed(self, pipelines: Collection[str]) -> None:
        """These are there now. On the main thread."""
        ...


class Edits:
    """The edits of a running daemon. Only the main thread calls it."""

    def __init__(self, lifecycle: Lifecycle, lives: Lives, tell: Callable[[Edited], None]) -> None:
        """``tell`` queues an event for the main thread."""
        self._lifecycle = lifecycle
        self._lives = lives
        self._tell = tell
        self._open: dict[str, _Open] = {}

    def begin(self, request: EditRequested, now: float) -> list[LifeEffect]:
        """Hold the pipeline, or refuse the edit."""
        name = request.pipeline
        stages = self._lifecycle.stages()
        if (why := self._refusal(request, stages)) is not None:
            request.done.set_exception(why)
            return []
        if request.fate is Fate.BEGINS:
            self._lifecycle.add(name, self._lives.processors)
        ended = stages.get(name, "ended") == "ended"
        self._open[name] = _Open(request, ended, self._lifecycle.failures().get(name))
        return self._lifecycle.handle(Hold(name), now)

    def held(self, held: PipelineHeld) -> None:
        """The pipeline is held: run the edit on a thread of its own."""
        open_ = self._open[held.pipeline]
        thread = threading.Thread(
            target=self._run, args=(open_, held), name=f"edit-{held.pipeline}", daemon=True
        )
        thread.start()

    def ended(self, edited: Edited, now: float) -> list[LifeEffect]:
        """Start the pipeline again if possible, and set the request's result."""
        open_ = self._open.pop(edited.pipeline)
        done, name = open_.request.done, edited.pipeline
        as_before = edited.refused is not None or open_.request.fate is Fate.AS_IT_WAS
        stays = as_before and open_.ended
        failure = open_.failure if stays else edited.failure
        runs = edited.parts is not None and not stays and not self._lifecycle.stopping
        if runs:
            assert edited.parts is not None
            self._lives.start(edited.parts)
            failure = None
        if open_.is_gone(edited):
            out = self._lifecycle.forget(name)
        else:
            out = self._lifecycle.handle(Resumed(name, not runs, failure), now)
        # A new life may have other actors beside its flow than the one before.
        if runs or open_.request.fate in (Fate.BEGINS, Fate.GOES):
            self._lives.changed(self._lifecycle.stages())
        if edited.refused is not None:
            done.set_exception(EditRefused(edited.refused))
        elif edited.failure is not None:
            done.set_exception(EditFailed(edited.failure))
        else:
            done.set_result(None)
        return out

    def close(self) -> None:
        """The process ends: fail the open requests. What is recorded is complete, old or new."""
        for open_ in self._open.values():
            open_.request.done.set_exception(EditFailed("the daemon has ended meanwhile"))
        self._open.clear()

    def _refusal(self, request: EditRequested, stages: dict[str, str]) -> EditRefused | None:
        name, begins = request.pipeline, request.fate is Fate.BEGINS
        if name not in stages and not begins:
            return EditRefused(f"pipeline {name}: unknown; there are: {', '.join(sorted(stages))}")
        if self._lifecycle.stopping:
            return EditBusy("the daemon is stopping")
        if name in self._open:
            return EditBusy(f"pipeline {name} is being changed already")
        if begins and name in stages:
            return EditRefused(f"pipeline {name} exists already")
        return None

    def _run(self, open_: _Open, held: PipelineHeld) -> None:
        request = open_.request
        try:
            self._tell(self._carry_out(request, held, stays=open_.stays))
        except EditFailed as error:
            self._tell(Edited(request.pipeline, None, str(error)))
        except Exception as error:
            # An unexpected fault must not leave the pipeline held for ever.
            text = f"pipeline {request.pipeline}: {type(error).__name__}: {error}"
            self._tell(Edited(request.pipeline, None, text))

    def _carry_out(self, request: EditRequested, held: PipelineHeld, *, stays: bool) -> Edited:
        name, refused = request.pipeline, ""
        goes, lives = request.fate is Fate.GOES, self._lives

        def change(snapshot: Snapshot) -> Snapshot:
            nonlocal refused
            try:
                if goes and held.late:
                    raise EditRefused(f"pipeline {name}: not all that it read was written in time")
                return request.change(snapshot)
            except EditRefused as error:
                refused = str(error)
                return snapshot

        if request.fate is Fate.BEGINS:
            lives.open(name)
        try:
            recorded = lives.change(name, change)
            if stays:
                return Edited(name, None)
            if not (goes and not refused):
                return Edited(name, lives.parts(name, recorded), None, refused or None)
        except Exception as error:
            if request.fate is Fate.BEGINS:
                lives.end(name)
            if not isinstance(error, EditFailed):
                raise
            return Edited(name, None, str(error), refused or None)
        lives.end(name)
        return Edited(name, None)
