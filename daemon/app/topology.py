"""Builds and connects the actors of a daemon. ``lifecycle.py`` decides when they end."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from actors.committer.cutting import CutWatch
from actors.committer.debt import DebtBounds
from actors.committer.rule import Begin, CommitterLogic
from actors.contract.addresses import WRITERS, Address
from actors.contract.ports import BatchWriter, DeadLetterStore, RecordSource, Stagers
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from actors.runtime.effect_handlers import (
    CommitterEffects,
    DeadLetterEffects,
    FetcherEffects,
    ProcessorEffects,
    Settling,
    WriterEffects,
)
from actors.runtime.lending import NOTHING, Lender
from actors.runtime.mailbox import DataQueue, Mailbox, Tick
from actors.runtime.shell import Directory, Endpoint, Logic, Perform, Run, Shell, WorkQueue
from actors.target.rule import ProcessorLogic
from actors.target.settings import ProcessorSettings
from actors.writer import WriterLogic
from changes.formats import TopicFormats, make_format
from changes.formats.engine.format import Format
from changes.routes.routing import Router, shard_of
from daemon.app.registries import Registries
from daemon.app.requests import Requests, WritersDirectory
from daemon.app.side_actors import letters_of, side_actors_of, together_of
from daemon.config.config import Config
from daemon.operations.rebuild.rebuilds import loads_of, stand_ins
from daemon.state.dead_letters.open import OpenLetters
from daemon.state.spills.file import Found, SpillFolder
from daemon.state.spills.spills import PipelineSpills, open_spills
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from offsets.store import OffsetStore
from sources.opening import open_source

STOP_TIMEOUT_S = 1.0
"""How long one idle actor may take to notice its stop. A stuck one is left behind."""


@dataclass(frozen=True, slots=True)
class PipelineParts:
    """What the composition root built for one pipeline."""

    name: str
    source: RecordSource
    store: OffsetStore
    recorded: Snapshot
    spill_folder: SpillFolder
    found: tuple[Found, ...] = ()
    """The spills that an earlier run left."""
    dead_letters: DeadLetterStore | None = None
    recent_letters_s: tuple[float, ...] = ()
    """The ages of the letters that earlier runs stored within the last hour."""
    until: Mapping[TopicPartition, int] | None = None
    group: str = ""
    """See ``StagedBatch.group``."""
    open_letters: OpenLetters | None = None


class Topology:
    """All actors of the process. Built and started by the main thread.

    A pipeline that has ended may start again: its new actors take the old addresses.
    """

    def __init__(
        self,
        config: Config,
        run_id: str,
        stagers: Stagers,
        supervisor: Endpoint,
        paused: Callable[[], Collection[str]] = tuple,
        around: Callable[[Address, Perform], Perform] | None = None,
    ) -> None:
        """``paused``: pipelines that are to read nothing, targets that are not written. ``around``
        makes what carries out an actor's effects from what would."""
        self._config, self._paused, self._around = config, paused, around
        self._run_id = run_id
        self._stagers = stagers
        self._supervisor = supervisor
        self._mailboxes = Lender(config.memory.mailboxes_bytes)
        self._buffers = Lender(config.memory.buffers_bytes)
        self._staged = Lender(config.memory.staged_bytes)
        self.directory = Directory()
        self._registries = Registries(config, self.directory.tell)
        self._work = {name: WorkQueue() for name in config.sink}
        self._requests = Requests(self._work, config.daemon.writers, config.writers_of)
        self._asked: list[Address] = []
        self.directory.add_endpoint(WRITERS, self._requests)

    @property
    def asked(self) -> tuple[Address, ...]:
        """The actors that always answer soon: all but the writers, who may be in a long write."""
        return tuple(self._asked)

    def start_writers(self, sinks: Callable[[], Mapping[str, BatchWriter]]) -> None:
        """Start the writers, ``daemon.writers`` for each sink. ``sinks`` is called as often, and
        gives a writer of each sink its own session or connection."""
        answers = WritersDirectory(self.directory, self._requests)
        number = itertools.count()
        for _ in range(self._config.daemon.writers):
            for name, sink in sinks().items():
                effects = WriterEffects({name: sink}, self._stagers)
                mailbox = Mailbox(self._work[name].data)
                address = Address("", "writer", next(number))
                self._start(address, WriterLogic(), mailbox, _just(effects), answers)

    def start_pipeline(self, parts: PipelineParts) -> None:
        """Start one pipeline; committer and processors first: no message may come too early."""
        config, section = self._config, self._config.pipeline[parts.name]
        self._asked = [address for address in self._asked if address.pipeline != parts.name]
        self.directory.add_endpoint(Address(parts.name, "supervisor"), self._supervisor)
        options, topics = config.format_options(parts.name), TopicFormats(parts.recorded.formats)
        router = Router(self._config.routes(parts.name), stand_ins(parts.recorded))
        self._start_committer(parts)
        self._start_dead_letters(parts)
        beside = [*side_actors_of(config, parts.name, self._run_id, parts.recorded)]
        for role, logic, effects in beside:
            mailbox = Mailbox(DataQueue(NOTHING))
            self._start(Address(parts.name, role), logic, mailbox, _just(effects))
        for index in range(config.daemon.processors):
            made = make_format(section.format, options, topics)
            self._start_processor(Address(parts.name, "processor", index), made, router, parts)
        fetcher = FetcherLogic(
            parts.name,
            make_format(section.format, options, topics),
            router,
            config.daemon.processors,
            FetcherSettings(
                dead_letters=parts.dead_letters is not None,
                ddl_not_understood_stops=section.ddl.not_understood == "stop",
                until=parts.until,
                registry=options.registry,
                schema_patience_s=self._registries.patience_s(parts.name),
                messages_per_s=section.quota.messages_per_s,
                cut_every_s=section.cut_every if parts.until is None else None,
                cut_patience_s=section.cuts.wait,
                paused=parts.name in self._paused(),
            ),
        )
        self._start_fetcher(parts, fetcher)
        self.directory.tell(Address(parts.name, "committer"), Begin())
        for role, *_ in beside:  # which tell processors what they found
            self.directory.tell(Address(parts.name, role), Tick())

    def _start_committer(self, parts: PipelineParts) -> None:
        daemon, section = self._config.daemon, self._config.pipeline[parts.name]
        together = bool(together_of(self._config, parts.name, parts.until))
        logic = CommitterLogic(
            parts.name,
            parts.recorded,
            daemon.commit_interval_s,
            parts.until,
            commits="kafka-commit" in section.offset_stores,
            debt=DebtBounds(daemon.frontier_debt_messages, daemon.frontier_debt_s),
            cut=CutWatch(parts.name, section.cuts.wait, together=together),
        )
        mailbox, effects = Mailbox(DataQueue(NOTHING)), CommitterEffects(parts.store)
        self._start(Address(parts.name, "committer"), logic, mailbox, _just(effects))

    def _start_dead_letters(self, parts: PipelineParts) -> None:
        section = self._config.pipeline[parts.name]
        store, count = parts.dead_letters, parts.open_letters
        if store is None or count is None:
            return
        logic = letters_of(parts.name, section, count.every_s, parts.recent_letters_s)
        effects, queue = DeadLetterEffects(store, count), DataQueue(NOTHING)
        self._start(Address(parts.name, "dead-letters"), logic, Mailbox(queue), _just(effects))

    def end_pipeline(self, name: str, actors_s: float, writes_s: float) -> str | None:
        """Remove a pipeline's actors, so that it may start again. Any thread.

        Its consumer has left the group. Waits for the actors, then for their writes; these are not
        retried. Returns one line about what did not end in time.
        """
        mine = [address for address in self._asked if address.pipeline == name]
        deadline = time.monotonic() + actors_s
        refs = {address: self.directory.ref(address) for address in mine}
        for ref in refs.values():
            ref.stop(block=False)
        for address, ref in refs.items():
            if not ref.actor_stopped.wait(max(0.0, deadline - time.monotonic())):
                return f"{address} does not end within {actors_s:g} s"
        for lender in (self._mailboxes, self._buffers, self._staged):
            lender.end(name)
        self._registries.forget(Address(name, "fetcher"))
        left = self._requests.wait(name, writes_s)
        return f"{left} writes under way have not ended within {writes_s:g} s" if left else None

    def keep(self, pipelines: Collection[str]) -> None:
        """Query actors of other pipelines no more: they have ended for good."""
        self._asked = [address for address in self._asked if address.pipeline in pipelines]

    def stop(self) -> None:
        """Stop all actors. One that is stuck in a call is a daemon thread and ends with the
        process.

        Actors of other topologies in the process (in a test) keep running.
        """
        self._registries.close()
        refs = self.directory.refs()
        for ref in refs:
            ref.stop(block=False)
        for ref in refs:
            ref.actor_stopped.wait(STOP_TIMEOUT_S)

    def _start_processor(
        self, address: Address, format_: Format, router: Router, parts: PipelineParts
    ) -> None:
        config, section = self._config, self._config.pipeline[parts.name]
        reader = open_source(config, parts.name).reader()
        own = PipelineSpills(parts.spill_folder, reader, format_, router)
        processors, quota = config.daemon.processors, section.quota.memory
        mine = [f for f in parts.found if shard_of(str(f.target), processors) == address.number]
        spills, _ = open_spills(mine, format_, router)
        lent = parts.name, None if quota is None else quota / processors
        mailbox = Mailbox(DataQueue(self._mailboxes.account(*lent)))
        settings = ProcessorSettings(
            batch_messages=config.batch.max_messages,
            batch_bytes=config.batch.max_bytes,
            batch_age_s=config.batch.max_age_s,
            writers=config.daemon.writers,
            dead_letters=section.on_bad_record == "dead-letter",
            quarantine=section.on_refused_target != "stop",
            quarantine_bytes=section.quarantine_bytes,
            quarantine_full_stops=section.on_quarantine_full == "stop",
            paused=frozenset(self._paused()),
            away_after_s=config.away_after_s(parts.name),
            away_spill_bytes=section.away_spill_bytes,
            processors=config.daemon.processors,
            buffer_bytes=config.memory.piece_bytes(quota, processors),
            memory=self._buffers.account(*lent, lambda: mailbox.tell(Tick())),
            staged=self._staged.account(*lent, lambda: mailbox.tell(Tick())),
            group=parts.group,
            ddl=section.ddl.policy,
            loads=loads_of(parts.recorded),
            load_spill_bytes=config.load.spill_bytes,
            partitioner=section.partitioner,
            counts=None if section.counts is None else Address(parts.name, "counts"),
            together=together_of(config, parts.name, parts.until),
        )
        known = self._run_id, random.random, spills, parts.recorded.targets
        logic = ProcessorLogic(address, format_, router, settings, *known)
        stager = self._stagers.of(address.pipeline, address.number)
        self._start(address, logic, mailbox, _just(ProcessorEffects(stager, own)))
        mailbox.tell(Tick())  # a loaded target's spill is released without any message

    def _start_fetcher(self, parts: PipelineParts, logic: FetcherLogic) -> None:
        mailbox, settling = Mailbox(DataQueue(NOTHING)), Settling()
        self.directory.add_endpoint(Address(parts.name, "settling"), settling)
        schemas, of = self._registries.of(parts.name), (parts.source, self.directory, parts.name)
        self._start(
            Address(parts.name, "fetcher"),
            logic,
            mailbox,
            lambda run: FetcherEffects(*of, run, settling, schemas),
        )
        mailbox.tell(Tick())

    def _start(
        self,
        address: Address,
        logic: Logic,
        mailbox: Mailbox,
        make_effects: Callable[[Run], Perform],
        directory: Directory | None = None,
    ) -> None:
        self.directory.add_mailbox(address, mailbox)
        if (around := self._around) is not None:
            make_own, make_effects = make_effects, lambda run: around(address, make_own(run))
        ref = Shell.start(
            address,
            logic,
            mailbox,
            directory or self.directory,
            make_effects,
            supervisor=self._supervisor,
        )
        self.directory.add_ref(address, ref)
        if address.role != "writer" and address not in self._asked:
            self._asked.append(address)


def _just(effects: Perform) -> Callable[[Run], Perform]:
    """Effects that are never called back."""
    return lambda run: effects
