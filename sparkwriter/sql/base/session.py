"""A connection to a database as the store uses it, and its errors as the store tells them apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow as pa

from changes.model.errors import SinkAway, SinkUnavailable, TargetRefused, WaitsForRows
from changes.model.model import TargetName
from changes.sql.quoted import quoted
from databases.base.errors import Cause, DatabaseError
from databases.base.session import DatabaseSession
from sparkwriter.kit.marks_table.table_description import Made, Remake
from sparkwriter.sql.base.tables import DbTable

# What the databases differ in, as words: names, types, statements. Pure.

CHECKSUM = "checksum varchar(64)"
"""The ledger's column that tells whether somebody else changed a row of it."""

LOCK_WITHIN_S = 30
"""How long a statement waits for a lock: then the reason is shown, and it is tried again."""

STAGE = "__binlogd_stage"
"""The temporary table of the batch that is being written."""


class SqlDialect(ABC):
    """One database's SQL. Methods raise TargetRefused for what it can't have."""

    name: str
    """As messages say it."""
    sign_of_names: str
    """What stands around a name."""
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
        return quoted(name, self.sign_of_names)

    @abstractmethod
    def literal(self, text: str) -> str:
        """A text as a constant, whatever it holds."""

    @abstractmethod
    def check_name(self, name: str) -> None:
        """Raise TargetRefused where nothing can be named so."""

    @abstractmethod
    def make(self, target: TargetName, made: Made, stamp: str) -> str:
        """The statement that makes a table."""

    @abstractmethod
    def remake(self, remake: Remake, table: DbTable, stamp: str) -> list[str]:
        """The statements that give a table its new columns. The first one carries the stamp, where
        the database stamps; those after it may be repeated."""

    @abstractmethod
    def rename(self, old: TargetName, new: TargetName) -> list[str]:
        """The statements that give a table another name."""

    @abstractmethod
    def loosen(self, target: TargetName, keys: Sequence[str], table: DbTable) -> list[str]:
        """The statements that let a table have nulls in its key; they may be repeated."""

    @abstractmethod
    def wait_for_locks(self, within_s: float) -> str:
        """The statement by which a session waits so long for a lock, and no longer."""

    def checks_at_commit(self) -> list[str]:
        """The statements that have constraints checked at the commit, where they can be: for the
        present transaction."""
        return []

    @abstractmethod
    def same(self, left: str, right: str) -> str:
        """A comparison for which a null equals a null."""

    @abstractmethod
    def stage(self, columns: Sequence[tuple[str, str]], key: Sequence[str]) -> list[str]:
        """The statements that make the temporary table of (name, type), by the table's key."""

    def filled(self) -> list[str]:
        """The statements that are of use once the stage is filled."""
        return []

    def or_update(self, sets: Sequence[tuple[str, str]]) -> str:
        """The end of an INSERT that changes the row, where one of the same primary key is there:
        empty where that is not to be had, or costs no less."""
        return ""

    @abstractmethod
    def update(
        self, table: str, on: str, sets: Sequence[tuple[str, str]], of: Literal["t", "s"]
    ) -> str:
        """Change rows of the table ``t`` by the stage ``s``, or the other way: (column, value)."""

    @abstractmethod
    def delete(self, table: str, on: str) -> str:
        """Delete the rows ``t`` of the table that have a match in the stage ``s``."""


def rows_of(dialect: SqlDialect, target: TargetName, table: DbTable) -> str:
    """A target's own rows, where they are read, changed or deleted. Raises TargetRefused."""
    name = target_name(dialect, target)
    return f"ONLY {name}" if table.only else name


def target_name(dialect: SqlDialect, target: TargetName) -> str:
    """A target's table in SQL. Raises TargetRefused."""
    if target.table.startswith("__binlogd_"):
        raise TargetRefused("names that begin with __binlogd_ are binlogd's own")
    dialect.check_name(target.namespace)
    dialect.check_name(target.table)
    return f"{dialect.quote(target.namespace)}.{dialect.quote(target.table)}"


def for_port(error: DatabaseError, *, away: bool = False) -> SinkUnavailable | TargetRefused:
    """A database's error as a sink raises it. ``away``: there was no connection."""
    if error.cause is Cause.OTHER_ROW:
        return WaitsForRows(str(error))
    if error.cause is Cause.READ_ONLY or (error.ends_session and away):
        return SinkAway(str(error))
    if error.ends_session or error.cause is Cause.LATER:
        return SinkUnavailable(str(error))
    return TargetRefused(str(error))


@dataclass(frozen=True, slots=True)
class CatalogQueries:
    """Of a catalog, by schema and table; ``schema`` by its name alone, ``left`` by both some times.
    Each gives a row or a text for what it finds."""

    referenced: str
    dependents: str
    left: str
    schema: str


@dataclass(frozen=True, slots=True)
class LoadedColumn:
    """A column to be loaded: its name, its texts (``sparkwriter.sql.base.values``)."""

    name: str
    texts: pa.Array
    binary: bool = False


class Session(DatabaseSession):
    """A connection that writes: what a sink asks of the catalog beside it. Every method raises
    DatabaseError; what a server has no need of is left as it is here."""

    transactional_ddl: ClassVar[bool]
    """Whether statements about tables are part of a transaction."""
    lasting_identity: ClassVar[bool]
    """Whether a table keeps its identity (``DbTable``) when it is altered."""
    folds_names: bool = False
    """Whether tables whose names differ in case alone are one."""
    queries: ClassVar[CatalogQueries]
    dialect: SqlDialect
    """The server's SQL."""

    @abstractmethod
    def load(self, table: str, columns: Sequence[LoadedColumn]) -> None:
        """Add rows to a table, each value as it is or an error."""

    @abstractmethod
    def describe(self, target: TargetName) -> DbTable | None:
        """The table as it is now."""

    @abstractmethod
    def lacks(self, target: TargetName, into: TargetName, aside: TargetName) -> list[str]:
        """Why this user could not make ``into`` now, have it take the target's name, and remove
        what goes ``aside``: rights, and locks that others hold. One line each."""

    @abstractmethod
    def remarks(self) -> Iterator[str]:
        """What of the server is unwise. One line each."""

    def identity(self, target: TargetName) -> str | None:
        """What ``describe`` says of its identity, and nothing else."""
        found = self.describe(target)
        return None if found is None else found.identity

    def is_referenced(self, target: TargetName) -> bool:
        """Whether another table's foreign key points to it."""
        return bool(self.rows(self.queries.referenced, target[1:]))

    def has_schema(self, name: str) -> bool:
        """Whether there is such a namespace."""
        return bool(self.rows(self.queries.schema, (name,)))

    def has_one_unique(self, target: TargetName) -> bool:
        """Whether the primary key is, now, the table's only unique one: as of ``DbTable``."""
        return False

    def dependents(self, target: TargetName) -> list[str]:
        """What hangs on a table, and would go with it or stay with it when another one takes its
        name. Each as the database calls it."""
        return [str(what) for (what,) in self.rows(self.queries.dependents, target[1:])]

    def left_behind(self, target: TargetName) -> list[str]:
        """What of a table that one which takes its name does not get. One line each."""
        places = self.queries.left.count("%s") // 2
        return [what for (what,) in self.rows(self.queries.left, target[1:] * places)]

    def sees_triggers(self, target: TargetName) -> bool:
        """Whether ``describe`` knows all triggers of the table."""
        return True

    def take_over(self, old: TargetName, new: TargetName) -> Iterator[str]:
        """The statements by which a table gets what the one has whose name it takes."""
        yield from ()

    def use(self, schema: str) -> None:
        """Make temporary tables there, where they need a place."""
        return

    def exclusive(self, name: str) -> AbstractContextManager[None]:
        """Nobody else is inside with the same name. When that takes long: Cause.LATER."""
        return nullcontext()


def make_once(session: Session, sql: str) -> None:
    """Run a CREATE … IF NOT EXISTS, which in PostgreSQL fails where two run it at once."""
    try:
        session.run(sql)
    except DatabaseError as error:
        if error.cause is not Cause.UNIQUE:
            raise
