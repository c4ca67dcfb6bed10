"""What jobs ask of a source's own database (``databases.base.database``), as values. Pure.

Every value passes as a *canonical text*: one text for each value, made by the database itself in
SQL. ``changes/sql/spark/canonical.py`` reads it into a column of the lake and prints a stored value
as the same text; a column's ``Form`` says which text it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from changes.model.model import TableName
from changes.sql.forms import Form
from databases.base.errors import DatabaseRefused

# Patterns of ``database.table``, as routes have them. Pure.


def matching(pattern: str, names: Iterable[TableName]) -> list[TableName]:
    """The names that a pattern matches, in order. Case counts."""
    return sorted(name for name in names if fnmatchcase(str(name), pattern))


# How Spark's tasks reach a database. Values.


@dataclass(frozen=True, slots=True)
class JdbcOptions:
    """A database for Spark's JDBC reader. ``password`` is shown nowhere.

    ``session`` is the statement that each connection begins with. ``fetch_rows``: so many rows are
    in a task's memory at a time.
    """

    url: str
    driver: str
    user: str
    password: str = field(repr=False)
    session: str
    fetch_rows: int = 100


Texts = tuple[str | None, ...]
"""A row as canonical texts, in the order in which its columns were asked for."""

Key = tuple[str, ...]
"""A row's key as canonical texts, in the order of ``SourceTable.keys``. Only the database compares
them: it alone knows its collations."""


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """``type`` is what the database prints (MySQL: COLUMN_TYPE, PostgreSQL: format_type).

    ``form`` is the canonical text that ``query`` gives. None: it can't be had exactly, for which
    ``refused`` gives the reason. ``generated``: computed by the database from other columns.
    """

    name: str
    type: str
    nullable: bool
    form: Form | None
    collation: str | None = None
    generated: bool = False
    refused: str = ""
    zero: str | None = None
    """What stands in place of a zero date, a year of zero or an enumeration's invalid value, where
    the stream has something else for it; empty: null. Digits and signs of a date alone."""
    own: str | None = None
    """Its name in the database, where the stream's reader renames it: ``name`` is the stream's."""

    @property
    def sql_name(self) -> str:
        """The name by which the database knows it."""
        return self.name if self.own is None else self.own


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table as it is now. ``rows`` and ``bytes`` are the database's estimates.

    ``definition`` is a fingerprint: it changes with the columns, their types and order, the key,
    and where the database tells also with TRUNCATE and with a table that is dropped and recreated.
    """

    name: TableName
    columns: tuple[SourceColumn, ...]
    keys: tuple[str, ...]
    rows: int
    bytes: int
    definition: str
    rows_where: str | None = None
    """The condition of the rows that the stream has (a publication's filter); None: of all."""
    whole_images: bool = True
    """Whether the server's log has whole rows (MySQL, MariaDB: ``binlog_row_image``)."""
    only: bool = False
    """Whether its own rows are read by PostgreSQL's ONLY: without it a SELECT has the rows of the
    tables that inherit from it, too."""

    def renamed(self, names: Sequence[tuple[str, str]]) -> SourceTable:
        """The same table by the stream's names, where its reader renames columns: the database's
        name and the stream's, in any case. A name that no column has says nothing: a route may
        take many tables. Raises DatabaseRefused where two columns would have one name."""
        new = {old.lower(): name for old, name in names}
        columns = tuple(
            replace(one, name=new[one.name.lower()], own=one.name)
            if one.name.lower() in new
            else one
            for one in self.columns
        )
        taken: dict[str, SourceColumn] = {}
        for one in columns:
            other = taken.setdefault(one.name.lower(), one)
            if other is not one and (one.own or other.own):
                raise DatabaseRefused(
                    f"{self.name}: reader_renames: the columns {other.sql_name} and {one.sql_name} "
                    f"would both be {one.name}"
                )
        keys = tuple(new.get(key.lower(), key) for key in self.keys)
        return replace(self, columns=columns, keys=keys)

    def column(self, name: str) -> SourceColumn:
        """A column by its name. Raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Moment:
    """The database's own now: everything that a read before it could see is at or below it.

    ``unix_us`` is its clock, in microseconds. ``position`` is its place in the log, as
    ``mysql:SERVER:FILE:POS`` or ``lsn:SYSTEM:NUMBER``; None where it does not tell (a server
    without a log, or a right that lacks). Of a replica it is the primary's, up to which it has
    applied everything.
    """

    unix_us: int
    position: str | None = None


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The rows with low < key <= high in the database's own order; None is open."""

    low: Key | None = None
    high: Key | None = None


ALL_ROWS = KeyRange()


@dataclass(frozen=True, slots=True)
class Findings:
    """What a check has found: problems, and what is legal but unwise. One line each."""

    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
