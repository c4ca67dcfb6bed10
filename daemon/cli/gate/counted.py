"""Whether the counts of tables agree, for a gate that waits until they do."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from daemon.cli.counts.pipelines import scanned
from daemon.cli.counts.report import reports, why_not
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from offsets.counts import RowCounts

AGAIN_S = 10.0
"""The log is counted again after so long at the earliest: the range may be a day."""

REST = 4
"""... and after so many times as counting took: a difference may stay for days."""


class CountsAgree:
    """One thread's. ``minutes``: the range, in minutes since 1970 of the source's clock."""

    def __init__(self, settings: Config, minutes: range) -> None:
        self._settings, self.minutes = settings, minutes
        self._last: dict[str, tuple[float, Mapping[str, str]]] = {}
        self.in_log: dict[str, RowCounts] = {}
        """By target its changes in the log, as they were counted last."""

    def __call__(self, pipeline: PipelineConfig, targets: Sequence[str]) -> Mapping[str, str]:
        """By target why its counts don't agree. Raises what ``counts.pipelines.scanned`` does."""
        due, found = self._last.get(pipeline.name, (0.0, None))
        begun = time.monotonic()
        if found is None or begun >= due:
            scan, recorded = scanned(self._settings, pipeline, targets, self.minutes)
            # The gate itself says which tables may be empty.
            all_ = reports(pipeline.name, targets, scan, recorded, may_be_empty=True)
            told = ((each.target, why_not(each, scan)) for each in all_)
            found = {target: f"counts: {why}" for target, why in told if why is not None}
            self.in_log |= {each.target: each.found for each in all_}
            ended = time.monotonic()
            self._last[pipeline.name] = ended + max(AGAIN_S, REST * (ended - begun)), found
        return found
