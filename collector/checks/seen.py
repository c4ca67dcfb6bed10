"""What was seen of a source: its server, its tables, and what each lacks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from changes.model.model import TableName
from databases.base.findings import Finding, problem
from databases.base.port import SourceTable
from databases.streamed import as_streamed

FORMAT = "debezium-json"
"""What a collector's records are."""


@dataclass(frozen=True, slots=True)
class SeenTable:
    """One table. ``table``: as it is now, None where it can't be described."""

    name: TableName
    table: SourceTable | None
    findings: tuple[Finding, ...] = ()

    @property
    def is_followed(self) -> bool:
        """Whether it can be loaded and followed as it is."""
        return self.table is not None and not any(one.wrong for one in self.findings)


@dataclass(frozen=True, slots=True)
class SeenSource:
    """A server and the requested tables, in order."""

    server: tuple[Finding, ...]
    tables: tuple[SeenTable, ...]

    @property
    def is_ready(self) -> bool:
        """Whether its log can be read."""
        return not any(one.wrong for one in self.server)


def once(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once. Where two name the same statements, what is wrong says it alone."""
    all_ = list(dict.fromkeys(found))
    graver = {one.mend for one in all_ if one.wrong and one.mend}
    return tuple(one for one in all_ if one.wrong or one.mend not in graver)


def unread_columns(table: SourceTable, kind: str) -> Iterator[Finding]:
    """Columns whose stream's value can't be had from the database: such a table is not loaded."""
    for why in as_streamed(table, kind, FORMAT, collected=True).refused:
        yield problem(f"{why}: it can't be loaded")
