"""Refuses clauses of one ALTER TABLE that name the same column and mean each other.

The steps of a statement have the names of before. MariaDB goes further: it also takes MODIFY and
SET DEFAULT of a column that the same statement adds, and IF [NOT] EXISTS looks at the table of
before, which nobody here knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from changes.model import AddColumn, ChangeColumn, DdlStep, DropColumn, RenameColumn
from changes.mysql.tokens import NotUnderstood


def check_together(steps: Sequence[DdlStep], defaults: Collection[str], *, optional: bool) -> None:
    """Raise NotUnderstood where a clause can't be read without another one.

    ``defaults`` are the columns, in small letters, of ALTER COLUMN ... DEFAULT. ``optional``: a
    clause does something only if a column is there, or is not.
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
