"""Who plays in one life of the process: the logic of each actor, made as the daemon makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from actors.committer.rule import CommitterLogic
from actors.contract.addresses import Address
from actors.dead_letters import DeadLetterLogic, DeadLetterSettings
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from actors.runtime.effect_handlers import ProcessorEffects
from actors.runtime.lending import Lender
from actors.target.rule import ProcessorLogic
from actors.target.settings import ProcessorSettings
from changes.formats import TopicFormats, make_format
from changes.model.model import Mode
from changes.routes.routing import Route, Router, shard_of
from changes.routes.shaping.shape import Shape
from daemon.operations.rebuild.rebuilds import loads_of, stand_ins
from daemon.state.spills.spills import PipelineSpills, open_spills
from tests.actors.settings import settings_of
from tests.simulation.durable import PIPELINE, Durable, Failing, FakeLog
from tests.simulation.partitions import COMMITTER, FETCHER
from tests.simulation.parts import SplitCanalJson
from tests.simulation.schemas.registry import FramedCanalJson
from tests.simulation.several import SeveralCanalJson
from tests.simulation.staging import PlainStaging, RealStaging, Staging

LETTERS = Address(PIPELINE, "dead-letters")


def routes(shape: Shape) -> tuple[Route, ...]:
    """Each table to its own target, and all to a changelog in another sink."""
    return (
        Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None, shape=shape),
        Route(("*",), (), "log.log.all", Mode.APPEND, None),
    )


SMALL = settings_of(
    batch_messages=5,
    batch_bytes=4000,
    batch_age_s=0.5,
    buffer_bytes=1500,
    writers=2,
    dead_letters=True,
    retry_base_s=0.1,
    retry_max_s=1.0,
    group="g@cluster",
)
"""Bounds that a stream of a few dozen messages reaches."""

SMALL_MEMORY, SMALL_DISK = 6000, 4 << 30
"""Bytes, for each processor; they lend each other what they don't need."""


class Cast:
    """The actors' logic by address, and what processors have beside it."""

    def __init__(
        self,
        durable: Durable,
        jitter: Callable[[], float],
        disk_fails: Failing,
        shards: int,
        settings: ProcessorSettings,
        staging: type[RealStaging] | type[PlainStaging],
        wake: Callable[[Address], None],
    ) -> None:
        """``wake`` leaves an actor a note that there is room again."""
        shape = durable.shape
        router = Router(routes(shape.route), stand_ins(durable.snapshot))
        topics = TopicFormats(durable.snapshot.formats)
        format_ = make_format(shape.format, shape.options, topics)
        if shape.several:
            format_ = SeveralCanalJson(shape.options)
        elif shape.split:
            format_ = SplitCanalJson(shape.options)
        if shape.registry is not None:
            format_ = FramedCanalJson(shape.options)
        reading = FetcherSettings(max_messages=7, dead_letters=True, registry=shape.registry)
        fetcher = FetcherLogic(PIPELINE, format_, router, shards, reading)
        self.logics: dict[Address, Any] = {
            FETCHER: fetcher,
            COMMITTER: CommitterLogic(PIPELINE, durable.snapshot, 1.0, durable.end),
            LETTERS: DeadLetterLogic(PIPELINE, DeadLetterSettings(1000, 1e9, 0.1)),
        }
        self.staging: dict[Address, Staging] = {}
        self.spills: dict[Address, ProcessorEffects] = {}
        folder = durable.folder(disk_fails)
        left, _ = open_spills(folder.found(durable.snapshot.spills), format_, router)
        in_frames = shape.registry is not None
        log = FakeLog(durable.log, disk_fails, packed=bool(shape.keyed), in_frames=in_frames)
        settings = replace(
            settings,
            quarantine=shape.quarantine,
            processors=shards,
            quarantine_bytes=shape.quarantine_bytes,
            away_after_s=0.5 if shape.away else None,
            away_spill_bytes=shape.quarantine_bytes,
            reread_offsets=shape.reread_offsets,
            ddl=shape.policy,
            loads=loads_of(durable.snapshot),
            partitioner="murmur2" if shape.keyed else None,
        )
        lenders = {"memory": Lender(SMALL_MEMORY * shards), "staged": Lender(SMALL_DISK * shards)}
        for number in range(shards):
            me = Address(PIPELINE, "processor", number)
            mine = [spill for spill in left if shard_of(str(spill.route.name), shards) == number]
            accounts = {
                kind: lender.account(PIPELINE, None, partial(wake, me))
                for kind, lender in lenders.items()
            }
            settings = replace(settings, **accounts)
            logic = ProcessorLogic(
                me, format_, router, settings, "run", jitter, mine, durable.snapshot.targets
            )
            self.logics[me] = logic
            self.staging[me] = staging(disk_fails, shape)
            spills = PipelineSpills(folder, log, format_, router)  # type: ignore[arg-type]
            self.spills[me] = ProcessorEffects(self.staging[me], spills)  # type: ignore[arg-type]
