"""What is recorded of a pipeline's positions and targets, also while its daemon runs.

Imports no source and no actor: commands that only show it start in a moment.
"""

from __future__ import annotations

from daemon.config.pipeline_config import PipelineConfig
from daemon.state.offset_file import OffsetFile
from daemon.state.offset_stores import make_stores
from offsets.store import Loaded, OffsetStore


def export_snapshot(pipeline: PipelineConfig) -> Loaded:
    """What a pipeline's stores hold, also while its daemon runs. Raises StoreError.

    If the group's commit is the only store, its frontiers are the whole snapshot.
    """
    store: OffsetStore = make_stores(pipeline)
    if not pipeline.section.remembers:
        store = pipeline.source().group_commit()
    store.start()
    try:
        return store.get()
    finally:
        store.stop()


def recorded_snapshot(pipeline: PipelineConfig) -> Loaded:
    """What a pipeline's stores hold of its targets: of its file alone, where it has one. Raises
    OSError, StoreError."""
    if "file" in pipeline.section.offset_stores:
        return OffsetFile(pipeline.state_dir, pipeline.name).load()
    # The group's commit knows no target.
    return export_snapshot(pipeline) if pipeline.section.remembers else Loaded(None)
