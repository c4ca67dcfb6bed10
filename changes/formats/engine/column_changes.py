"""Changes of columns that the rows show and no statement announced.

A column is new, is gone or has another type, or its values may differ from the source's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from changes.sql.mysql.definitions import Family, keeps, shape_of


class ColumnChange(NamedTuple):
    """One change of a column, found in rows; ``model.ChangeColumn`` is a statement's.

    ``table`` is empty where the rows don't show whose column it is. Kind ``filled``: the default
    may stand in the place of NULL; always with the table. ``amid``: rows from before the change may
    be written in the same batch, also into an empty table.
    """

    kind: Literal["new", "gone", "type", "filled"]
    column: str
    what: str
    table: str = ""
    amid: bool = False


class ListedType(NamedTuple):
    """A column's type in a list of all columns: as it is sent, and in the source's words where the
    connector passes them on."""

    sent: str
    source: str | None = None

    def differs(self, other: ListedType) -> bool:
        """Whether the type changed; the source's words may appear or end without a change, and
        labels may come to an enumeration."""
        if self.sent != other.sent or self.source is None or other.source is None:
            return self.sent != other.sent
        return self.source != other.source and not adds_labels(other.source, self.source)

    def __str__(self) -> str:
        return self.source or self.sent


def is_enumeration(words: str) -> bool:
    """Whether a type in MySQL's words has labels."""
    return words[:5].lower().startswith(("enum(", "set("))


def adds_labels(before: str, after: str) -> bool:
    """Whether an enumeration keeps all its labels. Renamed, they change stored rows without an
    event (PostgreSQL); so they do in another order, in a SET.

    The labels were sent as one text, with commas between them and perhaps in them: where that shows
    in one of the texts, or where others stand between the former ones, none is known to be kept.
    """
    old, new = shape_of(before), shape_of(after)
    labelled = old is not None and old.family in (Family.ENUM, Family.SET)
    if not labelled or old is None or new is None or not keeps(old, new):
        return False
    return not any(map(_has_commas, (old.labels, new.labels))) and _in_one_run(
        old.labels, new.labels
    )


def _has_commas(labels: Sequence[str]) -> bool:
    """Whether parts of a text between its commas can't all be labels, as far as they show it."""
    return len(set(labels)) < len(labels) or any(
        not each or each != each.strip() for each in labels
    )


def _in_one_run(old: Sequence[str], new: Sequence[str]) -> bool:
    old, new = tuple(old), tuple(new)
    return any(new[at : at + len(old)] == old for at in range(len(new) - len(old) + 1))


def filled(table: str, names: Iterable[str]) -> tuple[ColumnChange, ...]:
    """The changes of kind ``filled``: columns whose NULLs may come as their default."""
    what = "has a default, and a NULL may have come as that"
    return tuple(ColumnChange("filled", name, f"column {name} {what}", table) for name in names)


def changed_types(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[ColumnChange]:
    """MySQL types that may not hold every value of those before them."""
    for name, words in now.items():
        before = was.get(name, words)
        if before == words:
            continue
        old, new = shape_of(before), shape_of(words)
        if old is None or new is None or not keeps(old, new):
            yield ColumnChange("type", name, f"column {name} from {before} to {words}")


def changed_columns(
    table: str,
    was: Mapping[str, ListedType],
    now: Mapping[str, ListedType],
    amid: bool = False,
) -> Iterator[ColumnChange]:
    """The differences between two lists of all columns of a table, with their types.

    A wider type counts, too: the source may have changed stored values in any way (PostgreSQL's
    ``ALTER COLUMN … TYPE … USING``).
    """
    for name, type_ in now.items():
        if name not in was:
            yield ColumnChange("new", name, f"column {name} is new", table, amid)
        elif type_.differs(was[name]):
            what = f"column {name} from {was[name]} to {type_}"
            yield ColumnChange("type", name, what, table, amid)
    for name in was:
        if name not in now:
            yield ColumnChange("gone", name, f"column {name} is gone", table, amid)
