"""Edits of a pipeline's snapshot, with the daemon stopped or running."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from pathlib import Path
from typing import IO

from daemon.config.pipeline_config import PipelineConfig
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


def edit_offline(pipeline: PipelineConfig, change: Change) -> Snapshot:
    """Change the snapshot of a pipeline whose daemon is stopped, under the state directory's lock.

    Returns the new snapshot. Raises EditRefused before anything is written, and StoreError.
    """
    if not pipeline.section.remembers:
        raise EditRefused(
            f"pipeline {pipeline.name} has no store that keeps a snapshot (file, kafka-topic)"
        )
    with claimed(pipeline.state_dir):
        store = make_stores(pipeline)
        store.start()
        try:
            return store_edit(store, recorded_of(pipeline, store.get()), change)
        finally:
            store.stop()


def claimed(state_dir: Path) -> IO[str]:
    """The state directory's lock, until it is closed. Raises EditRefused."""
    try:
        return lock_state_dir(state_dir)
    except StateDirBusy as error:
        raise EditRefused(str(error)) from error
    except OSError as error:
        raise EditRefused(f"daemon.state_dir {state_dir} can't be used: {error}") from error


def recorded_of(pipeline: PipelineConfig, loaded: Loaded) -> Snapshot:
    """The recorded snapshot, or an empty one. Raises StoreError if it belongs to another group."""
    name, group = pipeline.name, pipeline.group
    snapshot = loaded.snapshot or Snapshot(name, group)
    if (snapshot.pipeline, snapshot.group) != (name, group):
        raise StoreError(
            f"the offset file of pipeline.{name} was written by pipeline "
            f"{snapshot.pipeline!r}, group {snapshot.group!r}; this is group {group!r}"
        )
    return snapshot


def chosen_pipeline(pipelines: Collection[str], name: str | None) -> str:
    """The chosen pipeline of those that are configured. The only one need not be named. Raises
    EditRefused."""
    known = ", ".join(sorted(pipelines))
    if name is None and len(pipelines) > 1:
        raise EditRefused(f"--pipeline is required, one of: {known}")
    chosen = name or next(iter(pipelines))
    if chosen not in pipelines:
        raise EditRefused(f"--pipeline {chosen}: unknown; the configuration has: {known}")
    return chosen
