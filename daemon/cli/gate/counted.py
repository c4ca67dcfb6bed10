"""Whether the counts of tables agree, for a gate that waits until they do."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from daemon.cli.counts.pipelines import scanned
from daemon.cli.counts.report import reports, why_not
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig

AGAIN_S = 10.0
"""The log is counted again after so long at the earliest: the range may be a day."""


class CountsAgree:
    """One thread's. ``minutes``: the range, in minutes since 1970 of the source's clock."""

    def __init__(self, settings: Config, minutes: range) -> None:
        self._settings, self._minutes = settings, minutes
        self._last: dict[str, tuple[float, Mapping[str, str]]] = {}

    def __call__(self, pipeline: PipelineConfig, targets: Sequence[str]) -> Mapping[str, str]:
        """By target why its counts don't agree. Raises what ``counts.pipelines.scanned`` does."""
        at, found = self._last.get(pipeline.name, (0.0, None))
        if found is None or time.monotonic() - at >= AGAIN_S:
            scan, recorded = scanned(self._settings, pipeline, targets, self._minutes)
            # The gate itself says which tables may be empty.
            all_ = reports(pipeline.name, targets, scan, recorded, may_be_empty=True)
            told = ((each.target, why_not(each, scan)) for each in all_)
            found = {target: f"counts: {why}" for target, why in told if why is not None}
            self._last[pipeline.name] = time.monotonic(), found
        return found
