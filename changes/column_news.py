"""What rows tell of columns that no statement told: one is new, is gone, or has another type, or
its values may not be what the source has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from changes.mysql.shapes import keeps, shape_of


class ColumnNews(NamedTuple):
    """One change of a column. ``table`` is empty where it is not known whose rows told it.

    ``default``: an insert lacks it, so that its value there is a default which nobody tells.
    ``filled``: its default may have been written in the place of NULL; always with the table.
    ``amid``: rows of before it may be written together with it, also into an empty table.
    """

    kind: Literal["new", "gone", "type", "default", "filled"]
    column: str
    what: str
    table: str = ""
    amid: bool = False


class ListedType(NamedTuple):
    """A column's type as a list of all columns has it: as it is sent, and as the source writes it,
    where that is passed on."""

    sent: str
    source: str | None = None

    def differs(self, other: ListedType) -> bool:
        """Tell whether it is another one; that the source's words come or end is none."""
        both = self.source is not None and other.source is not None
        return self.sent != other.sent or (both and self.source != other.source)

    def __str__(self) -> str:
        return self.source or self.sent


def left_out(names: Iterable[str]) -> tuple[ColumnNews, ...]:
    """Columns that inserts lack."""
    what = "has a default at the source that inserts don't carry: NULL here"
    return tuple(
        ColumnNews("default", name, f"column {name} {what}", amid=True)
        for name in dict.fromkeys(names)
    )


def filled(table: str, names: Iterable[str]) -> tuple[ColumnNews, ...]:
    """Columns whose NULLs may come as their default."""
    what = "has a default, and a NULL may have come as that"
    return tuple(ColumnNews("filled", name, f"column {name} {what}", table) for name in names)


def told_otherwise(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[ColumnNews]:
    """Types of MySQL that rows tell now and that may not hold what the former ones held."""
    for name, words in now.items():
        before = was.get(name, words)
        if before == words:
            continue
        old, new = shape_of(before), shape_of(words)
        if old is None or new is None or not keeps(old, new):
            yield ColumnNews("type", name, f"column {name} from {before} to {words}")


def listed_otherwise(
    table: str,
    was: Mapping[str, ListedType],
    now: Mapping[str, ListedType],
    amid: bool = False,
) -> Iterator[ColumnNews]:
    """How two lists of all columns of a table, with their types, differ.

    Also a wider type counts: what a source makes of stored values may be anything (PostgreSQL's
    ``ALTER COLUMN … TYPE … USING``).
    """
    for name, type_ in now.items():
        if name not in was:
            yield ColumnNews("new", name, f"column {name} is new", table, amid)
        elif type_.differs(was[name]):
            what = f"column {name} from {was[name]} to {type_}"
            yield ColumnNews("type", name, what, table, amid)
    for name in was:
        if name not in now:
            yield ColumnNews("gone", name, f"column {name} is gone", table, amid)
