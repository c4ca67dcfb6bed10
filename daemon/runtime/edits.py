"""Edits of a pipeline's snapshot, with the daemon stopped or running.

Offline, the state directory's lock keeps daemons away. In a running daemon the pipeline drains (or
has already stopped) and its actors end. Then the snapshot is changed in the pipeline's stores, and
the pipeline starts again with new actors. The other pipelines and the sinks' session go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from daemon.config.config import Config
from daemon.positions.chain import StoreChain, make_stores
from daemon.positions.offset_file import StateDirBusy, lock_state_dir
from daemon.runtime.lifecycle import Hold, Lifecycle, PipelineHeld, Resumed
from daemon.runtime.topology import PipelineParts
from offsets.snapshot import Snapshot
from offsets.store import Loaded, StoreError

Change = Callable[[Snapshot], Snapshot]
"""Makes the new snapshot from the recorded one. Runs on a thread of its own. Raises EditRefused.

Partitions and targets that the new snapshot lacks stay recorded, because stores merge.
"""


class EditRefused(Exception):
    """Nothing was changed: one line."""


class EditBusy(EditRefused):
    """Refused now, and not for good: another edit is under way, or the daemon is being stopped."""


class EditFailed(Exception):
    """The pipeline does not run, or its positions could not be stored. One line with the state."""


@dataclass(frozen=True, slots=True)
class EditRequested:
    """A request to the supervisor for an edit. ``done`` fails with EditRefused or EditFailed."""

    pipeline: str
    change: Change
    done: Future[None]


@dataclass(frozen=True, slots=True)
class Edited:
    """An edit has ended. ``parts`` start the pipeline again; None if it can't start, with the
    reason in ``failure``. ``refused``: nothing was changed."""

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


class Edits:
    """The edits of a running daemon. Only the main thread calls it."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        make: Callable[[str, Change], PipelineParts],
        start: Callable[[PipelineParts], None],
        tell: Callable[[Edited], None],
    ) -> None:
        """``make`` ends a held pipeline's actors, changes its snapshot and returns the parts of its
        next life. It runs on a thread of its own. It raises EditRefused, which comes back through
        ``tell``, or EditFailed. ``start`` starts the parts, on the main thread."""
        self._lifecycle = lifecycle
        self._make = make
        self._start = start
        self._tell = tell
        self._open: dict[str, _Open] = {}

    def begin(self, request: EditRequested, now: float) -> list[object]:
        """Hold the pipeline, or refuse the edit."""
        name = request.pipeline
        stages = self._lifecycle.stages()
        if (why := self._refusal(name, stages)) is not None:
            request.done.set_exception(why)
            return []
        ended = stages[name] == "ended"
        self._open[name] = _Open(request, ended, self._lifecycle.failures().get(name))
        return self._lifecycle.handle(Hold(name), now)

    def held(self, held: PipelineHeld) -> None:
        """The pipeline is held: run the edit on a thread of its own."""
        open_ = self._open[held.pipeline]
        thread = threading.Thread(
            target=self._run, args=(open_.request,), name=f"edit-{held.pipeline}", daemon=True
        )
        thread.start()

    def ended(self, edited: Edited, now: float) -> list[object]:
        """Start the pipeline again if possible, and set the request's result."""
        open_ = self._open.pop(edited.pipeline)
        done, name = open_.request.done, edited.pipeline
        failure = open_.failure if edited.refused is not None else edited.failure
        stays = edited.refused is not None and open_.ended
        runs = edited.parts is not None and not stays and not self._lifecycle.stopping
        if runs:
            assert edited.parts is not None
            self._start(edited.parts)
            failure = None
        out = self._lifecycle.handle(Resumed(name, not runs, failure), now)
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

    def _refusal(self, name: str, stages: dict[str, str]) -> EditRefused | None:
        if name not in stages:
            return EditRefused(f"pipeline {name}: unknown; there are: {', '.join(sorted(stages))}")
        if self._lifecycle.stopping:
            return EditBusy("the daemon is stopping")
        if name in self._open:
            return EditBusy(f"pipeline {name} is being changed already")
        return None

    def _run(self, request: EditRequested) -> None:
        name = request.pipeline
        refused: str | None = None

        def change(snapshot: Snapshot) -> Snapshot:
            nonlocal refused
            try:
                return request.change(snapshot)
            except EditRefused as error:
                refused = str(error)
                return snapshot

        try:
            parts = self._make(name, change)
        except EditFailed as error:
            self._tell(Edited(name, None, str(error), refused))
        except Exception as error:
            # An unexpected fault must not leave the pipeline held for ever.
            text = f"pipeline {name}: {type(error).__name__}: {error}"
            self._tell(Edited(name, None, text, refused))
        else:
            self._tell(Edited(name, parts, None, refused))


def store_edit(store: StoreChain, recorded: Snapshot, change: Change) -> Snapshot:
    """Change the snapshot, durably. Raises EditRefused and StoreError."""
    changed = change(recorded)
    if changed != recorded:
        store.set(changed).result()
    return changed


def edit_offline(config: Config, pipeline: str, change: Change) -> Snapshot:
    """Change the snapshot of a pipeline whose daemon is stopped, under the state directory's lock.

    Returns the new snapshot. Raises EditRefused before anything is written, and StoreError.
    """
    if not config.pipeline[pipeline].remembers:
        raise EditRefused(
            f"pipeline {pipeline} has no store that keeps a snapshot (file, kafka-topic)"
        )
    try:
        claim = lock_state_dir(config.daemon.state_dir)
    except StateDirBusy as error:
        raise EditRefused(str(error)) from error
    except OSError as error:
        raise EditRefused(
            f"daemon.state_dir {config.daemon.state_dir} can't be written: {error}"
        ) from error
    with claim:
        store = make_stores(config, pipeline)
        store.start()
        try:
            return store_edit(store, recorded_of(config, pipeline, store.get()), change)
        finally:
            store.stop()


def recorded_of(config: Config, pipeline: str, loaded: Loaded) -> Snapshot:
    """The recorded snapshot, or an empty one. Raises StoreError if it belongs to another group."""
    group = config.group(pipeline)
    snapshot = loaded.snapshot or Snapshot(pipeline, group)
    if (snapshot.pipeline, snapshot.group) != (pipeline, group):
        raise StoreError(
            f"the offset file of pipeline.{pipeline} was written by pipeline "
            f"{snapshot.pipeline!r}, group {snapshot.group!r}; this is group {group!r}"
        )
    return snapshot
