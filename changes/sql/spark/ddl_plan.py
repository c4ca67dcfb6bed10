"""What DDL steps make of a stored table's columns. Pure: no Spark, no catalog.

A field keeps its id through every rename and widening, so stored values stay under the new name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from changes.model.errors import TargetRefused
from changes.model.model import (
    AddColumn,
    ChangeColumn,
    Column,
    DropColumn,
    DropTable,
    Mode,
    RenameColumn,
    TableStep,
    TruncateTable,
)
from changes.sql.spark.schema import check_name, lake_column, widens


@dataclass(frozen=True, slots=True)
class LakeField:
    """A column of the table. ``id`` None: it is new, stored rows read as ``default`` in it."""

    id: int | None
    name: str
    type: str
    default: object = None


ASIDE = "__dropped_"
"""What a kept column's name goes on with where its own is needed; the place in the log follows."""

_NAMED_ASIDE = re.compile(f"{ASIDE}[0-9]+(_[0-9]+)?$", re.ASCII)


@dataclass(frozen=True, slots=True)
class DdlTable:
    """A table as statements find it and leave it.

    ``kept`` names the columns that the source has dropped and the table still holds, in small
    letters. ``empty``: it has no row as they find it, ``emptied``: none is left. ``dropped``: the
    source's table is gone, None: the sink's table is to go as well.
    """

    fields: tuple[LakeField, ...]
    keys: tuple[str, ...]
    kept: frozenset[str] = frozenset()
    emptied: bool = False
    dropped: bool | None = False
    empty: bool = False

    @property
    def gone(self) -> frozenset[str]:
        """The columns, in small letters, that no row of the source has any more: kept ones under
        their own name, or under the one that made room for another column."""
        aside = [f.name.lower() for f in self.fields if _NAMED_ASIDE.search(f.name.lower())]
        return self.kept.union(aside)


def apply_ddl(
    table: DdlTable, statements: Iterable[Sequence[TableStep]], mode: Mode, aside: str
) -> DdlTable:
    """The table after the statements, one after another; what is so already stays so.

    ``aside`` is the end of a kept column's name when a new column needs that. Raises TargetRefused.
    """
    for steps in statements:
        change = _Statement(table, mode, aside)
        for step in steps:
            change.take(step)
        table = change.result()
    return table


class _Statement:
    """One statement. All its names are those before it, in whatever order its clauses are."""

    def __init__(self, table: DdlTable, mode: Mode, aside: str) -> None:
        self._table = table
        self._mode = mode
        self._aside = aside
        self._fields = {field.name.lower(): field for field in table.fields}
        self._now: dict[str, LakeField | None] = dict(self._fields)
        self._kept = set(table.kept)
        self._renamed: set[str] = set()
        self._adds: list[AddColumn] = []
        self._emptied = table.emptied
        self._dropped = table.dropped

    def take(self, step: TableStep) -> None:
        """Note one step. Raises TargetRefused."""
        match step:
            case AddColumn():
                self._check_rows(step)
                self._adds.append(step)
            case DropColumn(name, keep):
                self._drop(name.lower(), keep)
            case RenameColumn(old, new, if_exists):
                if not (if_exists and old.lower() in self._table.kept):
                    self._rename(old.lower(), new)
            case ChangeColumn(old, column, if_exists):
                if not (if_exists and old.lower() in self._table.kept):
                    self._change(old.lower(), column)
            case TruncateTable():
                self._emptied = True
            case DropTable(keep):
                self._dropped = True if keep else None

    def _check_rows(self, step: AddColumn) -> None:
        """Refuse a column whose value in stored rows nobody knows; without rows there is none."""
        if step.needs_no_rows is not None and not (self._table.empty or self._table.emptied):
            raise TargetRefused(step.needs_no_rows)

    def result(self) -> DdlTable:
        """The table once all steps are taken. Raises TargetRefused."""
        fields = [self._now[name] for name in self._fields]
        left = [field for field in fields if field is not None]
        left = self._make_room(left)
        present = {field.name.lower() for field in left}
        for add in self._adds:
            column = lake_column(add.column)
            if column.name.lower() not in present:
                present.add(column.name.lower())
                left.append(LakeField(None, column.name, column.type, add.default))
        return replace(
            self._table,
            fields=tuple(left),
            keys=tuple(map(self._key, self._table.keys)),
            kept=frozenset(self._kept) & present,
            emptied=self._emptied,
            dropped=self._dropped,
        )

    def _key(self, key: str) -> str:
        """The present name of a column that existed before the statement."""
        field = self._now.get(key.lower())
        return key if field is None else field.name

    def _drop(self, name: str, keep: bool) -> None:
        if self._fields.get(name) is None:
            return
        if name in {key.lower() for key in self._table.keys}:
            raise TargetRefused(f"column {name} is dropped, and is part of the key")
        if keep:
            self._kept.add(name)
        else:
            self._now[name] = None

    def _rename(self, old: str, new: str) -> None:
        field = self._now.get(old)
        if field is None:  # it is done already, or no row ever named the column
            return
        if old != new.lower():
            self._renamed.add(old)
        check_name(new)
        self._now[old] = replace(field, name=new)

    def _change(self, old: str, column: Column) -> None:
        """Where the type can't widen the rows tell: many a change is none in the lake's types."""
        if old != column.name.lower() or self._mode is Mode.UPSERT:
            self._rename(old, column.name)
        field, wanted = self._now.get(old), lake_column(column)
        if field is not None and widens(field.type, wanted.type):
            self._now[old] = replace(field, type=wanted.type)

    def _make_room(self, fields: list[LakeField]) -> list[LakeField]:
        """Give kept columns other names where a column of the source needs theirs."""
        wanted = {self._key(old).lower() for old in self._renamed}
        wanted |= {add.column.name.lower() for add in self._adds}
        here = {field.name.lower() for field in fields}
        made: list[LakeField] = []
        for field in fields:
            lower = field.name.lower()
            if lower in wanted and lower in self._kept and field is self._fields.get(lower):
                self._kept.discard(lower)
                field = replace(field, name=f"{field.name}{self._aside}")
                if field.name.lower() in here:
                    raise TargetRefused(f"column {field.name} exists already")
            made.append(field)
        names = [field.name.lower() for field in made]
        for name in names:
            if names.count(name) > 1:
                raise TargetRefused(f"a column is renamed to {name}, which exists already")
        return made
