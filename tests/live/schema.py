"""What the generator knows of the source: databases, tables, columns. Values, and pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

Name = tuple[str, str]
"""Database (in PostgreSQL: schema) and table."""


@dataclass(frozen=True, slots=True)
class Type:
    """A column's type as it is declared, and a literal of it for a statement."""

    sql: str
    literal: Callable[[Random], str]


@dataclass(frozen=True, slots=True)
class Column:
    """``default`` is the literal of DEFAULT; None where it has none."""

    name: str
    type: Type
    nullable: bool = True
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """``key`` names the primary key's columns; a table without one has an empty key."""

    name: Name
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    hostile: bool = False
    """Whether its columns may have odd names."""
    related: bool = False
    """Whether it has children, or is one: its columns stay as they are."""
    listed: tuple[str, ...] | None = None
    """The columns that a publication named when it was made; None: all."""

    def column(self, name: str) -> Column:
        """A column by its name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def streamed(self) -> tuple[Column, ...]:
        """The columns that a new table's changes have."""
        return tuple(c for c in self.columns if self.listed is None or c.name in self.listed)

    @property
    def others(self) -> tuple[Column, ...]:
        """The columns outside the key."""
        return tuple(column for column in self.columns if column.name not in self.key)

    def with_column(self, old: str, new: Column | None) -> Table:
        """One column replaced, or taken away; a renamed one is renamed in the key, too."""
        columns = (new if column.name == old else column for column in self.columns)
        key = self.key if new is None else tuple(new.name if k == old else k for k in self.key)
        return replace(self, columns=tuple(c for c in columns if c is not None), key=key)


@dataclass(frozen=True, slots=True)
class Schema:
    """All there is, in the order in which it was made."""

    databases: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    hostile: bool = False
    """Whether its tables may have odd names."""
    whole: bool = False
    """Whether all tables of PostgreSQL's send their old rows whole."""
    published: bool = False
    """Whether its tables are published one by one, with lists and filters."""

    def has(self, name: Name) -> bool:
        """Whether there is such a table."""
        return any(table.name == name for table in self.tables)

    def without(self, *names: Name) -> Schema:
        """As it is when tables are dropped."""
        return replace(self, tables=tuple(t for t in self.tables if t.name not in names))

    def put(self, *tables: Table) -> Schema:
        """As it is with these tables, in the place of those of their names."""
        kept = self.without(*(table.name for table in tables))
        return replace(kept, tables=kept.tables + tables)


@dataclass(frozen=True, slots=True)
class Step:
    """Statements of one session, and what the source is like where it accepts all of them.

    ``about``: the tables that they concern, under their names of before and after.
    """

    kind: str
    statements: tuple[str, ...]
    about: tuple[Name, ...]
    after: Schema


Maker = Callable[[Random, Schema], Step | None]
"""Makes a step of one kind; None where the schema has nothing for it."""
