"""Carries out the effects of each kind of actor: one small class for each."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Mapping
from typing import assert_never

import pykka
import structlog

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.ports import (
    BatchWriter,
    DeadLetterStore,
    LogAway,
    NotKept,
    RecordSource,
    Schemas,
    SpillBroken,
    Spills,
    StagedFiles,
    Stager,
)
from actors.runtime.in_sink import failed, published, published_together, said, tagged
from actors.runtime.shell import Directory, Run
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from changes.model.printable import reason_of
from offsets.fence import Fenced
from offsets.position import TopicPartition
from offsets.store import OffsetStore, StoreError, restricted

RELEASE_TIMEOUT_S = 10.0
"""How long a revoke waits for the committer's answer. It writes one small file: longer means that
the disk hangs, and then the commit is given up rather than the membership."""

SETTLE_SHARE = 0.75
"""The part of a revoke's time that writes under way may take: the commit needs the rest."""


class Settling:
    """Where processors report that their writes have ended, and a revoke waits for that.

    ``tell`` from any thread, ``wait`` on the fetcher's.
    """

    def __init__(self) -> None:
        self._said: queue.SimpleQueue[msg.Settled] = queue.SimpleQueue()

    def tell(self, message: object) -> None:
        """Take a report."""
        assert isinstance(message, msg.Settled)
        self._said.put(message)

    def wait(self, ticket: int, processors: set[Address], until: float) -> set[Address]:
        """Wait for all of them up to a monotonic second; returns those that have not settled."""
        missing = set(processors)
        while missing:
            try:
                said = self._said.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if said.ticket == ticket:  # not of a revoke whose waiting was given up
                missing.discard(said.sender)
        return missing


class FetcherEffects:
    """The fetcher's effects, and what the consumer calls back: all on the fetcher's thread."""

    def __init__(
        self,
        source: RecordSource,
        directory: Directory,
        pipeline: str,
        run: Run,
        settling: Settling,
        schemas: Schemas | None = None,
    ) -> None:
        """``settling`` must be known to the directory as the pipeline's ``settling``. ``schemas``:
        those of its registry, where it has one."""
        self._run = run
        self._schemas, self._me = schemas, Address(pipeline, "fetcher")
        self._settling = settling
        self._ticket = 0
        self._source = source
        self._started = False
        self._directory = directory
        self._committer = Address(pipeline, "committer")
        self._log = structlog.get_logger().bind(pipeline=pipeline, actor="fetcher-0")

    def __call__(self, effect: fx.OfFetcher) -> object | None:
        """Carry out one effect."""
        match effect:
            case fx.Consume(max_messages, timeout_s):
                if not self._started:
                    self._source.start(self)
                    self._started = True
                return self._source.poll(max_messages, timeout_s)
            case fx.Pause(sources):
                self._source.pause(sources)
            case fx.Resume(sources):
                self._source.resume(sources)
            case fx.WantSchemas(identities):
                assert self._schemas is not None  # without a registry no message needs one
                return msg.SchemasKept(self._schemas.want(self._me, identities))
            case fx.Commit(frontiers, wait):
                self._source.commit(frontiers, wait)
            case fx.ReleaseSources(sources, commit, settle):
                self._release(sources, commit, settle)
            case fx.Restart(sources):
                self._source.restart(sources)
            case fx.CloseSource():
                self._source.close()
            case _:
                assert_never(effect)
        return None

    def assigned(self, assigned: msg.Assigned) -> None:
        """Partitions were given: the logic hears it at once, inside the poll."""
        self._run(assigned)

    def revoked(self, revoked: msg.Revoked) -> None:
        """Partitions go away when this returns: the logic releases them and commits."""
        self._run(revoked)

    def confirmed(self, confirmed: msg.Confirmed) -> None:
        """The broker has taken a commit."""
        self._directory.tell(self._committer, confirmed)

    def _release(
        self, sources: tuple[TopicPartition, ...], commit: bool, settle: tuple[Address, ...]
    ) -> None:
        patience_s = self._source.revoke_patience_s
        until = time.monotonic() + patience_s
        self._settle(sources, settle, until - (1 - SETTLE_SHARE) * patience_s)
        left_s = min(RELEASE_TIMEOUT_S, until - time.monotonic())
        try:
            frontiers: Mapping[TopicPartition, int] = self._directory.ask(
                self._committer, msg.Release(sources), left_s
            )
        except (pykka.Timeout, pykka.ActorDeadError) as error:
            self._log.warning("revoked_without_commit", reason=reason_of(error))
            return
        if commit and frontiers:
            self._source.commit(frontiers, wait=True)

    def _settle(
        self, sources: tuple[TopicPartition, ...], processors: tuple[Address, ...], until: float
    ) -> None:
        """Have writes under way end, so that the next owner finds the marks as they will be.

        Where one takes longer, the marks fence it or the next owner: slower, not wrong.
        """
        self._ticket += 1
        for processor in processors:
            self._directory.tell(processor, msg.Settle(sources, self._ticket))
        begun = time.monotonic()
        missing = self._settling.wait(self._ticket, set(processors), until)
        if missing:
            self._log.warning(
                "revoked_while_writing",
                sources=[str(source) for source in sources],
                waited_s=round(time.monotonic() - begun, 3),
                processors=sorted(map(str, missing)),
            )


class ProcessorEffects:
    """A processor's effects: staged files, and spills."""

    def __init__(self, stager: Stager, spills: Spills) -> None:
        self._stager = stager
        self._spills = spills

    def __call__(self, effect: fx.OfTarget) -> object | None:
        """Carry out one effect."""
        match effect:
            case fx.Stage():
                return self._stager.stage(effect)
            case fx.RemoveStaged(paths):
                self._stager.remove(paths)
                return None
            case fx.Spill(target) | fx.ReadSpill(target) | fx.EndSpill(target):
                try:
                    return self._spill(effect)
                except NotKept as error:
                    return msg.SpillFailed(target, reason_of(error))
                except SpillBroken as error:
                    return msg.SpillFailed(target, reason_of(error), lasting=True)
            case _:
                assert_never(effect)

    def _spill(self, effect: fx.Spill | fx.ReadSpill | fx.EndSpill) -> object:
        match effect:
            case fx.Spill(target):
                return msg.Spilled(target, self._spills.append(effect))
            case fx.ReadSpill(target, position, limit):
                return msg.SpillRead(target, *self._spills.read(target, position, limit))
            case fx.EndSpill(target):
                self._spills.end(target)
                return msg.SpillEnded(target)


class DeadLetterEffects:
    """The dead letters' effects: their store."""

    def __init__(self, store: DeadLetterStore, count: Callable[[], int]) -> None:
        """``count``: how many stored letters are open. Raises NotKept."""
        self._store = store
        self._count = count

    def __call__(self, effect: fx.OfDeadLetters) -> object | None:
        """Carry out one effect."""
        match effect:
            case fx.KeepDeadLetter(letter):
                try:
                    self._store.keep(letter)
                except NotKept as error:
                    return msg.DeadLetterNotKept(reason_of(error), isinstance(error, LogAway))
                return msg.DeadLetterKept(letter)
            case fx.CountDeadLetters():
                try:
                    return msg.DeadLettersCounted(self._count())
                except NotKept as error:
                    return msg.DeadLettersNotCounted(reason_of(error))
            case _:
                assert_never(effect)


class WriterEffects:
    """A writer's effects: one sink for each name in the configuration."""

    def __init__(self, sinks: Mapping[str, BatchWriter], staged: StagedFiles) -> None:
        self._sinks = sinks
        self._staged = staged

    def __call__(self, effect: fx.OfWriter) -> object | None:
        """Carry out one effect; a sink's errors become messages."""
        match effect:
            case fx.OpenInSink(target, recorded):
                return self._guard(
                    target, lambda sink: msg.Opened(target, sink.open(target, recorded))
                )
            case fx.Publish(batch):
                return self._guard(batch.target, lambda sink: published(sink, batch))
            case msg.WriteTogether(writes):
                sink = self._sinks[writes[0].batch.target.sink]
                return published_together(sink, writes, effect.locks_s)
            case msg.TagVersion(target):
                return self._guard(target, lambda sink: tagged(sink, effect))
            case msg.SayThrough(target):
                return self._guard(target, lambda sink: said(sink, effect))
            case fx.RemoveStaged(paths):
                self._staged.remove(paths)
                return None
            case _:
                assert_never(effect)

    def _guard(self, target: TargetName, act: Callable[[BatchWriter], object]) -> object:
        try:
            return act(self._sinks[target.sink])
        except (SinkUnavailable, TargetRefused, Fenced) as error:
            return failed(target, error)


class CommitterEffects:
    """The committer's effect: the stores, as one."""

    def __init__(self, store: OffsetStore) -> None:
        self._store = store

    def __call__(self, effect: fx.SaveSnapshot) -> object | None:
        """Carry out one effect."""
        match effect:
            case fx.SaveSnapshot(snapshot, owned):
                try:
                    # Bounded: a store's promise. It may be as long as a revoke waits, not longer.
                    self._store.set(restricted(snapshot, owned)).result()
                except StoreError as error:
                    return msg.SaveFailed(reason_of(error))
                partitions = snapshot.partitions.items()
                return msg.Saved({source: state.frontier for source, state in partitions})
            case _:
                assert_never(effect)
