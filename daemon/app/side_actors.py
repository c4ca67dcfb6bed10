"""Builds the actors beside a pipeline's flow: who stores dead letters, who makes cuts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from actors.cuts import CutsLogic
from actors.dead_letters import DeadLetterLogic, DeadLetterSettings
from actors.staging.cut_rows import CutEffects
from actors.staging.staged_tables import ParquetTables
from changes.model.model import TargetName
from changes.routes.routing import Router
from daemon.config.config import Config
from daemon.config.pipelines import PipelineSection


def cuts_of(config: Config, pipeline: str, run_id: str) -> Iterator[tuple[CutsLogic, CutEffects]]:
    """Its logic and what carries out its effects; nothing where the pipeline is not cut."""
    section = config.pipeline[pipeline]
    if (table := section.cuts_table) is not None:
        router = Router(config.routes(pipeline))

        def routed(target: str) -> bool:
            return router.reaches(TargetName.parse(target))

        group, keep = config.group(pipeline), section.cuts.keep
        logic = CutsLogic(pipeline, group, table, keep, time.time, run_id, routed)
        yield logic, CutEffects(ParquetTables(), config.daemon.staging_folder / run_id)


def letters_of(
    pipeline: str, section: PipelineSection, count_every_s: float, recent_s: Iterable[float]
) -> DeadLetterLogic:
    """``recent_s``: as of ``DeadLetterLogic``."""
    per_hour, retry_s = section.max_bad_records_per_hour, section.dead_letter_retry_s
    bounds = DeadLetterSettings(per_hour, retry_s, count_every_s=count_every_s)
    return DeadLetterLogic(pipeline, bounds, recent_s)
