"""Builds the actors beside a pipeline's flow: who stores dead letters, makes cuts, folds counts,
has tables say through when they are complete."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import structlog

from actors.counts import CountsLogic
from actors.cuts import CutsLogic
from actors.dead_letters import DeadLetterLogic, DeadLetterSettings
from actors.staging.own_rows import OwnRowEffects
from actors.staging.staged_tables import ParquetTables
from actors.through import ThroughLogic
from actors.together import Together
from changes.model.model import TargetName
from changes.routes.routing import Router
from daemon.config.config import Config
from daemon.config.gates import tables_that_say
from daemon.config.pipeline_config import PipelineConfig
from daemon.config.pipelines import PipelineSection
from daemon.state.gates_through import GatesThrough
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot

log: Any = structlog.get_logger(__name__)


def side_actors_of(
    config: Config, pipeline: str, run_id: str, recorded: Snapshot
) -> Iterator[tuple[str, CutsLogic | CountsLogic | ThroughLogic, OwnRowEffects]]:
    """Who has the writers do something beside a pipeline's flow: name, logic, and what carries out
    its effects. ``recorded``: by earlier runs."""
    section, group = config.pipeline[pipeline], config.group(pipeline)
    router = Router(config.routes(pipeline))
    effects = OwnRowEffects(ParquetTables(), config.daemon.staging_folder / run_id)

    def routed(target: str) -> bool:
        return router.reaches(TargetName.parse(target))

    if (table := section.cuts_table) is not None:
        keep, skips = section.cuts.keep, section.cuts.incomplete == "skip"
        own_config = PipelineConfig(config, pipeline)
        sinks, tagged = own_config.together, own_config.versioned
        if own_config.apart:
            log.info("tables_come_one_by_one", pipeline=pipeline, sinks=sorted(own_config.apart))
        together = Together(sinks, section.cuts.wait / 2, untagged=sinks - tagged)
        states = recorded.partitions.items()
        again = {each: at for each, state in states if (at := state.withdraws) is not None}
        own = pipeline, group, table, keep, time.time, run_id, routed, skips, together
        yield "cuts", CutsLogic(*own, again), effects
    if section.counts is not None:
        table, known = TargetName.parse(section.counts), filter(routed, recorded.targets)
        more = config.daemon.processors, known, time.time, run_id
        yield "counts", CountsLogic(pipeline, group, table, *more), effects
    if says := tables_that_say(config.gates, routed):
        moments = GatesThrough(config.daemon.state_dir, says).moments
        yield "through", ThroughLogic(pipeline, moments, time.time), effects


def together_of(
    config: Config, pipeline: str, until: Mapping[TopicPartition, int] | None
) -> frozenset[str]:
    """The sinks whose targets are written at cuts alone: none in a run that ends where the log
    ends, which is its one moment."""
    return frozenset() if until is not None else PipelineConfig(config, pipeline).together


def letters_of(
    pipeline: str, section: PipelineSection, count_every_s: float, recent_s: Iterable[float]
) -> DeadLetterLogic:
    """``recent_s``: as of ``DeadLetterLogic``."""
    per_hour, retry_s = section.max_bad_records_per_hour, section.dead_letter_retry_s
    bounds = DeadLetterSettings(per_hour, retry_s, count_every_s=count_every_s)
    return DeadLetterLogic(pipeline, bounds, recent_s)
