"""The spills of one processor's targets: what goes in, from memory and from the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from actors.effects import Reread, Spill
from actors.ports import NotKept, SpillBroken, SpillRecord, SpillState
from actors.processor import OpenSpill
from changes.formats.base import Format, pack
from changes.model import BadMessage, Kind, TableName, TargetName
from changes.routing import Router, TargetRoute
from daemon.log_reader import LogGone, LogReader, LogUnreadable
from daemon.spill import Found, SpillError, SpillFolder


@dataclass(frozen=True, slots=True)
class PipelineSpills:
    """The ``Spills`` of one processor: its thread's alone."""

    folder: SpillFolder
    log: LogReader
    format: Format
    router: Router

    def append(self, spill: Spill) -> SpillState:
        """Read again what is no more in memory, append it and the rest, fsync."""
        try:
            file = self.folder.of(spill.target)
            return file.append(spill.target, spill.reason, self._records(spill))
        except OSError as error:
            raise NotKept(f"the spill of {spill.target}: {error.strerror or error}") from error
        except LogUnreadable as error:
            raise NotKept(str(error)) from error
        except LogGone as error:
            raise SpillBroken(str(error)) from error

    def read(
        self, target: TargetName, position: int, limit: int
    ) -> tuple[Sequence[SpillRecord], int]:
        """A page of a spill."""
        try:
            return self.folder.of(target).read(position, limit)
        except OSError as error:
            raise NotKept(f"the spill of {target}: {error.strerror or error}") from error
        except SpillError as error:
            raise SpillBroken(str(error)) from error

    def end(self, target: TargetName) -> None:
        """Let go of a spill."""
        try:
            self.folder.of(target).end()
        except OSError as error:
            raise NotKept(f"the spill of {target}: {error.strerror or error}") from error

    def _records(self, spill: Spill) -> Iterator[SpillRecord]:
        for reread in spill.rereads:
            yield from self._again(spill.target, reread)
        yield from spill.records

    def _again(self, target: TargetName, reread: Reread) -> Iterator[SpillRecord]:
        """The target's messages of a stretch; they were all looked at once, so none is bad."""
        for record in self.log.read(*reread):
            value = record.value
            if self.format.keyed:
                value = pack(record.key, record.value, record.headers)
            if value is None:
                continue
            kind, tables = tables_of(self.format, value)
            if any(route.name == target for t in tables for route in self.router.targets(t)):
                ddl = kind is Kind.DDL
                yield SpillRecord(reread.source, record.offset, ddl, value)


def tables_of(format_: Format, value: bytes) -> tuple[Kind, tuple[TableName, ...]]:
    """Which tables a message speaks of; none where it can't be looked at (a dead letter)."""
    try:
        kind, table = format_.peek(value)
        if kind is Kind.DDL:
            return kind, tuple(statement.table for statement in format_.ddl(value))
    except BadMessage:
        return Kind.NOTHING, ()
    return kind, () if table is None else (table,)


def open_spills(
    found: Iterable[Found], format_: Format, router: Router
) -> tuple[list[OpenSpill], list[str]]:
    """The spills of an earlier run with their present routes, and those that no route wants."""
    spills: list[OpenSpill] = []
    unwanted: list[str] = []
    for spill in found:
        route = _route(spill, format_, router)
        if route is None:
            unwanted.append(str(spill.target))
        else:
            spills.append(OpenSpill(route, spill.reason, spill.state))
    return spills, unwanted


def _route(spill: Found, format_: Format, router: Router) -> TargetRoute | None:
    _, tables = tables_of(format_, spill.first.value)
    routes = (route for table in tables for route in router.targets(table))
    return next((route for route in routes if route.name == spill.target), None)
