"""A load's settings, by the configuration."""

from __future__ import annotations

from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.load.ports import LoadSettings


def settings_of(pipeline: PipelineConfig) -> LoadSettings:
    """The configuration's, with the bounds of the pipeline's databases."""
    section, databases = pipeline.load, pipeline.databases.values()
    rates = [section.rows_per_s, *(found.rows_per_s for found in databases)]
    bounded = [rate for rate in rates if rate is not None]
    return LoadSettings(
        margin_s=section.margin_s,
        by_positions=section.by_positions,
        settle_s=section.settle_s,
        idle_s=section.idle_s,
        chunk_rows=section.chunk_rows,
        parallel=min((found.connections for found in databases), default=1),
        rows_per_s=min(bounded, default=None),
        attempts_per_hour=section.attempts_per_hour,
    )
