"""The sinks that are written, behind one face: a section of the configuration, rows out, planted
differences in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from tests.live.schema import Name


@dataclass(frozen=True, slots=True)
class Stored:
    """A table of a sink: its columns, and its rows by them."""

    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, object]]


class Plant(Enum):
    """What somebody does to a target behind the daemon's back."""

    CHANGED = "differs"
    MISSING = "missing"
    EXTRA = "extra"


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that is made to differ. ``key`` is a column of whole numbers; an extra row is a copy
    of the row ``value`` under the key ``spare``; a changed one has no value in ``column``."""

    table: Name
    what: Plant
    key: str
    value: int
    column: str
    spare: int
    columns: tuple[str, ...]
    """Of the target."""

    @property
    def differs(self) -> int:
        """The key by which a comparison must tell it."""
        return self.spare if self.what is Plant.EXTRA else self.value

    def sql(self, table: str, mark: str) -> str:
        """The statement. ``table``: as the sink spells it; ``mark``: what quotes a name there."""

        def named(column: str) -> str:
            return mark + column.replace(mark, mark * 2) + mark

        key = named(self.key)
        where = f"WHERE {key} = {self.value}"
        match self.what:
            case Plant.MISSING:
                return f"DELETE FROM {table} {where}"
            case Plant.CHANGED:
                return f"UPDATE {table} SET {named(self.column)} = NULL {where}"
            case Plant.EXTRA:
                into = ", ".join(map(named, self.columns))
                given = ", ".join(
                    str(self.spare) if column == self.key else named(column)
                    for column in self.columns
                )
                return f"INSERT INTO {table} ({into}) SELECT {given} FROM {table} {where}"


class Sink(Protocol):
    """One sink, for the whole run. One thread's."""

    name: str
    """Of its section, and the first word of its targets."""

    def start(self) -> None:
        """Start what it needs; raises LiveError, JarsError."""

    def kill(self) -> None:
        """End it."""

    def sections(self, folder: Path) -> Sequence[str]:
        """Its lines of the daemon's configuration. ``folder``: the round's."""

    def begin(self, folder: Path) -> None:
        """A round begins."""

    def end(self) -> None:
        """The round is over."""

    def read(self, databases: Sequence[str]) -> Mapping[Name, Stored]:
        """Every table of some namespaces. Raises LiveError."""

    def plant(self, difference: Difference) -> str:
        """Make a row differ; gives the error that the sink answered, or nothing."""
