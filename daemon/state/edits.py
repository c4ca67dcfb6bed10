"""Edits of a pipeline's snapshot, with the daemon stopped or running."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import IO

from daemon.config.config import Config
from daemon.state.offset_file import StateDirBusy, lock_state_dir
from daemon.state.offset_stores import StoreChain, make_stores
from offsets.snapshot import Snapshot
from offsets.store import Loaded, StoreError

Change = Callable[[Snapshot], Snapshot]
"""Makes the new snapshot from the recorded one. Runs on a thread of its own. Raises EditRefused.

Partitions and targets that the new snapshot lacks stay recorded, because stores merge.
"""


class EditRefused(Exception):
    """Nothing was changed: a line for each reason."""

    def __init__(self, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


class EditBusy(EditRefused):
    """Refused now, and not for good: another edit is under way, or the daemon is being stopped."""


class EditFailed(Exception):
    """The pipeline does not run, or its positions could not be stored. One line with the state."""


class Fate(Enum):
    """What an edit makes of the pipeline."""

    RUNS_AGAIN = "runs again"
    BEGINS = "begins"
    """It is new. Where it can't start, nobody knows it afterwards."""
    GOES = "goes"
    """It ends for good, if all that it had read is written. What is stored of it stays."""
    AS_IT_WAS = "is as it was"
    """It stood still, and nothing of its snapshot is changed: one that had ended stays so."""


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
    with claimed(config):
        store = make_stores(config, pipeline)
        store.start()
        try:
            return store_edit(store, recorded_of(config, pipeline, store.get()), change)
        finally:
            store.stop()


def claimed(config: Config) -> IO[str]:
    """The state directory's lock, until it is closed. Raises EditRefused."""
    folder = config.daemon.state_dir
    try:
        return lock_state_dir(folder)
    except StateDirBusy as error:
        raise EditRefused(str(error)) from error
    except OSError as error:
        raise EditRefused(f"daemon.state_dir {folder} can't be used: {error}") from error


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


def chosen_pipeline(config: Config, name: str | None) -> str:
    """The chosen pipeline. The only one need not be named. Raises EditRefused."""
    known = ", ".join(sorted(config.pipeline))
    if name is None and len(config.pipeline) > 1:
        raise EditRefused(f"--pipeline is required, one of: {known}")
    chosen = name or next(iter(config.pipeline))
    if chosen not in config.pipeline:
        raise EditRefused(f"--pipeline {chosen}: unknown; the configuration has: {known}")
    return chosen
