"""What the databases differ in, as words: names, types, statements. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from actors.contract.ports import TargetRefused
from changes.model import TargetName
from sparkwriter.jdbc.tables import DbTable
from sparkwriter.ledgered.made import Made
from sparkwriter.ledgered.operations import Remake

CHECKSUM = "checksum varchar(64)"
"""The ledger's column that tells whether somebody else changed a row of it."""

LOCK_WITHIN_S = 30
"""How long a statement waits for a lock: then the reason is shown, and it is tried again."""

STAGE = "__binlogd_stage"
"""The temporary table of the batch that is being written."""


class Dialect(Protocol):
    """One database's SQL. Methods raise TargetRefused for what it can't have."""

    name: str
    """As messages say it."""
    holds_nul: bool
    """Whether text may have the character NUL."""
    holds_nan: bool
    """Whether a number may be NaN or infinite."""
    holds_minus_zero: bool
    """Whether a floating zero keeps its sign."""
    ledger_columns: str
    """Of the ledger's table, with its key: namespace, name, version, marks, freed, made, step,
    checksum."""

    def quote(self, name: str) -> str:
        """An identifier, whatever it holds."""
        ...

    def literal(self, text: str) -> str:
        """A text as a constant, whatever it holds."""
        ...

    def check_name(self, name: str) -> None:
        """Raise TargetRefused where nothing can be named so."""
        ...

    def make(self, target: TargetName, made: Made, stamp: str) -> str:
        """The statement that makes a table."""
        ...

    def remake(self, remake: Remake, table: DbTable, stamp: str) -> list[str]:
        """The statements that give a table its new columns. The first one carries the stamp, where
        the database stamps; those after it may be repeated."""
        ...

    def rename(self, old: TargetName, new: TargetName) -> list[str]:
        """The statements that give a table another name."""
        ...

    def loosen(self, target: TargetName, keys: Sequence[str], table: DbTable) -> list[str]:
        """The statements that let a table have nulls in its key; they may be repeated."""
        ...

    def wait_for_locks(self, within_s: float) -> str:
        """The statement by which a session waits so long for a lock, and no longer."""
        ...

    def same(self, left: str, right: str) -> str:
        """A comparison for which a null equals a null."""
        ...

    def stage(self, columns: Sequence[tuple[str, str]], key: Sequence[str]) -> list[str]:
        """The statements that make the temporary table of (name, type), by the table's key."""
        ...

    def filled(self) -> list[str]:
        """The statements that are of use once the stage is filled."""
        ...

    def or_update(self, sets: Sequence[tuple[str, str]]) -> str:
        """The end of an INSERT that changes the row, where one of the same primary key is there:
        empty where that is not to be had, or costs no less."""
        ...

    def update(
        self, table: str, on: str, sets: Sequence[tuple[str, str]], of: Literal["t", "s"]
    ) -> str:
        """Change rows of the table ``t`` by the stage ``s``, or the other way: (column, value)."""
        ...

    def delete(self, table: str, on: str) -> str:
        """Delete the rows ``t`` of the table that have a match in the stage ``s``."""
        ...


def rows_of(dialect: Dialect, target: TargetName, table: DbTable) -> str:
    """A target's own rows, where they are read, changed or deleted. Raises TargetRefused."""
    name = target_name(dialect, target)
    return f"ONLY {name}" if table.only else name


def target_name(dialect: Dialect, target: TargetName) -> str:
    """A target's table in SQL. Raises TargetRefused."""
    if target.table.startswith("__binlogd_"):
        raise TargetRefused("names that begin with __binlogd_ are binlogd's own")
    dialect.check_name(target.namespace)
    dialect.check_name(target.table)
    return f"{dialect.quote(target.namespace)}.{dialect.quote(target.table)}"
