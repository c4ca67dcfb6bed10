"""The spills of one processor's targets: filled from memory and from the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from actors.contract.effects import LogRange, Spill
from actors.contract.messages import Fetched
from actors.contract.multi_entry import TargetPart, by_target
from actors.contract.ports import NotKept, SpillBroken
from actors.contract.raw_messages import SpillRecord, SpillState
from actors.fetcher.reassembly import Reassembly, SequenceGap
from actors.target.settings import OpenSpill
from changes.formats import AUTO
from changes.formats.detector import detector
from changes.formats.engine.format import Chunked, Format, MultiEntry, mark_in
from changes.model.model import Kind, TargetName
from changes.routes.routing import Router, TargetRoute
from daemon.state.room import SPILLS
from daemon.state.spills.file import Found, SpillError, SpillFolder
from offsets.parts import MissingPart, TooLarge
from offsets.snapshot import SpillMark
from sources.base.consumed import as_consumed, tables_of
from sources.base.port import LogGone, LogUnreadable, Reader

log: Any = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PipelineSpills:
    """The ``Spills`` of one processor. Only its thread calls it."""

    folder: SpillFolder
    log: Reader
    format: Format
    router: Router

    def append(self, spill: Spill) -> SpillState:
        """Read again what is no longer in memory, append it and the rest, fsync."""
        try:
            self.folder.room.require()
            file = self.folder.of(spill.target)
            before, records = file.state.bytes, self._records(spill)
            state = file.append(spill.target, spill.reason, records, spill.away)
            self.folder.room.note(SPILLS, state.bytes - before)
            return state
        except OSError as error:
            raise NotKept(f"the spill of {spill.target}: {error.strerror or error}") from error
        except LogUnreadable as error:
            raise NotKept(str(error)) from error
        except LogGone as error:
            raise SpillBroken(str(error)) from error

    def read(
        self, target: TargetName, position: int, limit: int
    ) -> tuple[Sequence[SpillRecord], int]:
        """A page of a spill, without rows of tables that no route leads to the target any more."""
        try:
            page, end = self.folder.of(target).read(position, limit)
            records = [record for each in page for record in self._routed(target, each)]
            if left_out := len(page) - len(records):
                log.warning("spilled_without_route", target=str(target), messages=left_out)
            return records, end
        except OSError as error:
            raise NotKept(f"the spill of {target}: {error.strerror or error}") from error
        except SpillError as error:
            raise SpillBroken(str(error)) from error

    def end(self, target: TargetName) -> None:
        """Delete a spill."""
        try:
            file = self.folder.of(target)
            size = file.state.bytes
            file.end()
            self.folder.room.note(SPILLS, -size)
        except OSError as error:
            raise NotKept(f"the spill of {target}: {error.strerror or error}") from error

    def _records(self, spill: Spill) -> Iterator[SpillRecord]:
        for reread in spill.rereads:
            yield from self._again(spill.target, reread)
        yield from spill.records

    def _again(self, target: TargetName, reread: LogRange) -> Iterator[SpillRecord]:
        """The target's messages of a stretch. All were parsed before, so none is bad."""
        records = whole_records(self.format, self.log, reread)
        for offset, value in records:
            kind, tables = tables_of(self.format, value)
            if kind is Kind.MULTI_ENTRY:
                for part in self._split(value):
                    if part.route.name == target:
                        yield SpillRecord(reread.source, offset, part.ddl, part.value)
            elif any(route.name == target for t in tables for route in self.router.targets(t)):
                yield SpillRecord(reread.source, offset, kind is Kind.DDL, value)

    def _routed(self, target: TargetName, record: SpillRecord) -> Iterator[SpillRecord]:
        """A record, with its rows' only table if the target takes one table."""
        if record.ddl:
            yield record
            return
        _, tables = tables_of(self.format, record.value)
        mine = [t for t in tables if any(r.name == target for r in self.router.targets(t))]
        if tables and not mine:
            return
        owners = {self.router.owner(table, target) for table in mine}
        if len(owners) > 1:
            both = " and ".join(map(str, mine))
            where = f"{record.source} offset {record.offset}"
            raise SpillBroken(f"{where}: {both} both go to {target}, which no route merges")
        yield record._replace(table=next(iter(owners), None))

    def _split(self, value: bytes) -> Sequence[TargetPart]:
        assert isinstance(self.format, MultiEntry)
        targets = self.router.targets
        return by_target(
            self.format,
            value,
            lambda entry: targets(entry.table),
            self.format.ddl,
            lambda ddl: targets(ddl.table),
        )


_FURTHER = 1_000
"""How many offsets earlier the read begins when a message starts before its stretch; doubled
then."""

_PART_BYTES = 256 << 20
"""Bytes of incomplete messages while a stretch is read again: well above the fetcher's limit."""


def whole_records(format_: Format, log: Reader, reread: LogRange) -> Iterator[tuple[int, bytes]]:
    """The messages of a stretch with their offsets. A chunked one has its last part's offset.

    Parts of a message that ends in the stretch may lie before it: then the read begins earlier.
    Raises LogUnreadable, and LogGone if the parts are gone.
    """
    source, first, last = reread
    start = first
    while isinstance(format_, Chunked) and _reaches_back(
        format_, log, LogRange(source, start, last), first
    ):
        if start == 0:
            raise LogGone(f"{source}: a part of a message before offset {first} is missing")
        start = max(0, first - 2 * (first - start) - _FURTHER)
    parts = Reassembly(format_, _PART_BYTES)
    parts.begin(source, at_frontier=True)
    for record in log.read(source, start, last):
        value = as_consumed(format_, source.topic, record)
        one = Fetched(source, [record.offset], [value], record.offset + 1)
        try:
            found = [batch.fetched for batch in parts.batches(one)]
        except (MissingPart, TooLarge, SequenceGap) as error:
            raise LogGone(str(error)) from error
        for fetched in found:
            for offset, whole in zip(fetched.offsets, fetched.values, strict=True):
                if whole is not None and offset >= first:
                    yield offset, whole


def _reaches_back(format_: Format, log: Reader, reread: LogRange, first: int) -> bool:
    """Whether a message with parts at ``first`` or later begins before the stretch."""
    assert isinstance(format_, Chunked)
    begun: set[str] = set()
    for record in log.read(*reread):
        value = as_consumed(format_, reread.source.topic, record)
        found = None if value is None else format_.part(value)
        if found is not None and found[1].number == 0:
            begun.add(found[0])
        elif found is not None and record.offset >= first and found[0] not in begun:
            return True
    return False


def spills_at_start(
    folder: SpillFolder, listed: Mapping[str, SpillMark], forced: bool
) -> tuple[tuple[Found, ...], str | None]:
    """The existing spills, and why a listed one is missing, if a forced start accepts that.

    Raises SpillError if a listed one is not whole, OSError. A ``forced`` start is the way out: the
    operator chooses from where its messages are read again.
    """
    try:
        return folder.found(listed), None
    except SpillError as error:
        if not forced:
            raise
        return folder.found({}), str(error)


def check_marks(found: Iterable[Found], format_: Format) -> None:
    """Raise SpillError for messages stored under ``format = "auto"`` if that is not configured any
    more, and the reverse: such messages name their format, others don't."""
    auto = detector(format_) is not None
    for spill in found:
        if bool(mark_in(spill.first.value)) != auto:
            then = "without" if auto else "with"
            raise SpillError(
                f'{spill.target} is in quarantine with messages that were kept {then} format = "'
                f'{AUTO}": release it with that (`binlogd tables retry`), then change the format'
            )


def open_spills(
    found: Iterable[Found], format_: Format, router: Router
) -> tuple[list[OpenSpill], list[str]]:
    """The spills of an earlier run with their present routes, and those without a route."""
    spills: list[OpenSpill] = []
    unwanted: list[str] = []
    for spill in found:
        route = _route(spill, format_, router)
        if route is None:
            unwanted.append(str(spill.target))
        else:
            spills.append(OpenSpill(route, spill.reason, spill.state, spill.away))
    return spills, unwanted


def _route(spill: Found, format_: Format, router: Router) -> TargetRoute | None:
    for record in spill.records():
        for table in tables_of(format_, record.value)[1]:
            for route in router.targets(table):
                if route.name == spill.target:
                    return route
    return None
