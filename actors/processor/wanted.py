"""Sum of the statements of one message, for one target."""

from __future__ import annotations

from dataclasses import dataclass, field

from actors.contract.writes import Doubt
from changes.model import TableName, TableStep, TargetName


class AnotherTable(Exception):
    """Two tables have a statement for a target that is meant to be of one."""


@dataclass(slots=True)
class Wanted:
    """The steps, and what becomes of the target's name.

    ``table``: whose statements they are, where the target is meant to be of one table alone;
    ``becomes``: its name afterwards, where they rename it.
    """

    ddl: list[tuple[TableStep, ...]] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    moves_to: TargetName | None = None
    takes_from: TargetName | None = None
    table: TableName | None = None
    becomes: TableName | None = None

    def acts(self, table: TableName) -> None:
        """A statement of that table does something to the target. Raises AnotherTable."""
        owner = self.becomes or self.table
        if owner is None:
            self.table = table
        elif owner != table:
            raise AnotherTable(f"{owner} and {table} have statements in one message")
