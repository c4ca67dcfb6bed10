"""Pipelines that would begin at an old group's commit, for ``binlogd check-config --connect``."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.recorded import recorded_snapshot
from offsets.store import StoreError
from settings.counted import counted
from sources.base.port import NotAnswered, committed


def adopted_positions(config: Config) -> Iterator[str]:
    """A warning for each pipeline without a record whose group has read beyond a log's beginning:
    ``start`` does not count there. That a broker or a store does not answer is said elsewhere."""
    for name in config.pipeline:
        pipeline = PipelineConfig(config, name)
        if not pipeline.section.remembers:
            continue
        source = pipeline.source()
        try:
            recorded = recorded_snapshot(pipeline).snapshot
            if recorded is not None and recorded.partitions:
                continue
            commits = committed(source)
            lows = source.questions().begins(sorted(commits))
        except (NotAnswered, StoreError, OSError):
            continue
        beyond = [each for each, offset in sorted(commits.items()) if offset > lows[each]]
        if beyond:
            read = f"{beyond[0]} up to {commits[beyond[0]]}"
            if beyond[1:]:
                read += f" and {counted(len(beyond) - 1, 'more partition')}"
            yield (
                f"pipeline.{name}: its group has read {read}, and nothing is recorded here: "
                "reading begins there, not at `start`. A table that is not there lacks what is "
                "below. A second copy needs a `group` of its own"
            )
