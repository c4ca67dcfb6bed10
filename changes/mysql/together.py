"""Refuses clauses of one ALTER TABLE that depend on each other.

The steps of a statement use the names from before it. MariaDB goes further: it also accepts MODIFY
and SET DEFAULT of a column that the same statement adds, and IF [NOT] EXISTS depends on the former
table, which is unknown here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from changes.model import AddColumn, ChangeColumn, DdlStep, DropColumn, RenameColumn
from changes.mysql.tokens import NotUnderstood


def check_together(steps: Sequence[DdlStep], defaults: Collection[str], *, optional: bool) -> None:
    """Raise NotUnderstood where a clause depends on another one.

    ``defaults`` are the columns, in lower case, of ALTER COLUMN ... DEFAULT. ``optional``: a clause
    depends on the existence of a column.
    """
    added = {step.column.name.lower() for step in steps if isinstance(step, AddColumn)}
    modified = {
        step.old.lower()
        for step in steps
        if isinstance(step, ChangeColumn) and step.old.lower() == step.column.name.lower()
    }
    for name in sorted(added & {*defaults, *modified}):
        raise NotUnderstood(f"{name} is added and defined anew in one statement")
    if optional:
        for name, count in Counter(name for step in steps for name in _names(step)).items():
            if count > 1:
                raise NotUnderstood(f"{name} in two clauses, of which one says IF EXISTS")


def _names(step: DdlStep) -> set[str]:
    match step:
        case AddColumn(column):
            return {column.name.lower()}
        case DropColumn(name):
            return {name.lower()}
        case RenameColumn(old, new):
            return {old.lower(), new.lower()}
        case ChangeColumn(old, column):
            return {old.lower(), column.name.lower()}
        case _:
            return set()
