"""A connection to a database as the store uses it, and its errors as the store tells them apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import pyarrow as pa

from actors.contract.ports import SinkUnavailable, TargetRefused, WaitsForRows
from changes.model import TargetName
from sparkwriter.jdbc.dialect import Dialect
from sparkwriter.jdbc.tables import DbTable


class Cause(Enum):
    """What an error of a database asks for."""

    AWAY = "away"
    """Another connection, later: it is gone, or to a server that can't be written."""
    LATER = "later"
    """The same again, later: a lock, a deadlock, a full disk."""
    OTHER_ROW = "other row"
    """The same again, later: a foreign key's row of another table is not there yet, or still."""
    UNIQUE = "unique"
    """A row with the same unique values is there."""
    REFUSED = "refused"
    """The table can't take it as it is."""


class DbError(Exception):
    """A database's error: one line."""

    def __init__(self, cause: Cause, text: str) -> None:
        super().__init__(" ".join(text.split()))
        self.cause = cause

    def for_port(self) -> SinkUnavailable | TargetRefused:
        """As the port raises it."""
        if self.cause is Cause.OTHER_ROW:
            return WaitsForRows(str(self))
        if self.cause in (Cause.AWAY, Cause.LATER):
            return SinkUnavailable(str(self))
        return TargetRefused(str(self))


@dataclass(frozen=True, slots=True)
class Loaded:
    """A column to be loaded: its name, its texts (``sparkwriter.jdbc.values``)."""

    name: str
    texts: pa.Array
    binary: bool = False


class Session(Protocol):
    """One connection. One thread's, but for ``cut``. Every method raises DbError."""

    transactional_ddl: bool
    """Whether statements about tables are part of a transaction."""
    lasting_identity: bool
    """Whether a table keeps its identity (``DbTable``) when it is altered."""

    folds_names: bool
    """Whether tables whose names differ in case alone are one."""

    @property
    def dialect(self) -> Dialect:
        """The server's SQL."""
        ...

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """What a query gives. A value's place is ``%s``; then a ``%`` is written twice."""
        ...

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run a statement; how many rows it found."""
        ...

    def load(self, table: str, columns: Sequence[Loaded]) -> None:
        """Add rows to a table, each value as it is or an error."""
        ...

    def begin(self) -> None:
        """Begin a transaction. Raises DbError, AWAY, where it is not in the session that was set
        up: behind a pooler."""
        ...

    def commit(self) -> None:
        """End a transaction; when it returns the server has it durably."""
        ...

    def describe(self, target: TargetName) -> DbTable | None:
        """The table as it is now."""
        ...

    def identity(self, target: TargetName) -> str | None:
        """What ``describe`` says of its identity, and nothing else."""
        ...

    def is_referenced(self, target: TargetName) -> bool:
        """Whether another table's foreign key points to it."""
        ...

    def has_one_unique(self, target: TargetName) -> bool:
        """Whether the primary key is, now, the table's only unique one: as of ``DbTable``."""
        ...

    def dependents(self, target: TargetName) -> list[str]:
        """What hangs on a table, and would go with it or stay with it when another one takes its
        name. Each as the database calls it."""
        ...

    def lacks(self, target: TargetName, into: TargetName, aside: TargetName) -> list[str]:
        """Why this user could not make ``into`` now, have it take the target's name, and remove
        what goes ``aside``: rights, and locks that others hold. One line each."""
        ...

    def sees_triggers(self, target: TargetName) -> bool:
        """Whether ``describe`` knows all triggers of the table."""
        ...

    def take_over(self, old: TargetName, new: TargetName) -> Iterator[str]:
        """The statements by which a table gets what the one has whose name it takes."""
        ...

    def left_behind(self, target: TargetName) -> list[str]:
        """What of a table that one which takes its name does not get. One line each."""
        ...

    def use(self, schema: str) -> None:
        """Make temporary tables there, where they need a place."""
        ...

    def has_schema(self, name: str) -> bool:
        """Whether there is such a namespace."""
        ...

    def exclusive(self, name: str) -> AbstractContextManager[None]:
        """Nobody else is inside with the same name. Raises DbError, LATER, when it takes long."""
        ...

    def remarks(self) -> Iterator[str]:
        """What of the server is unwise. One line each."""
        ...

    def cut(self) -> None:
        """Break the connection under a call that waits. Any thread; raises nothing."""
        ...

    def close(self) -> None:
        """End it. Raises nothing."""
        ...


@contextmanager
def transaction(session: Session) -> Iterator[None]:
    """Commit what is done inside, or roll it back."""
    session.begin()
    try:
        yield
        session.commit()
    except BaseException as error:
        if not (isinstance(error, DbError) and error.cause is Cause.AWAY):
            session.run("ROLLBACK")
        raise


def make_once(session: Session, sql: str) -> None:
    """Run a CREATE … IF NOT EXISTS, which in PostgreSQL fails where two run it at once."""
    try:
        session.run(sql)
    except DbError as error:
        if error.cause is not Cause.UNIQUE:
            raise
