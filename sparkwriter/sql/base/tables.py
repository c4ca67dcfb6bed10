"""A table as a database's own catalog describes it, and what is wrong with it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from changes.model.errors import TargetRefused
from changes.model.model import CHANGELOG_NAMES, Mode, TargetName
from changes.sql.spark.ddl_plan import LakeField
from changes.sql.spark.schema import lake_name, widens
from offsets.recovery import ways_out
from sparkwriter.kit.marks_table.table_description import Made


@dataclass(frozen=True, slots=True)
class DbColumn:
    """A column. ``type``: as the database spells it, so that a table can be made of it.

    ``lake``: the type that is kept in it exactly, None where there is none: ``refused`` says why.
    ``max_chars``, ``max_bytes``: what longer text is cut to where only spaces are too many.
    ``members``: the only texts that it holds as they are, ``several`` of them between commas, in
    this order. ``merges``: why two different values of it may be equal: then it can't be a key's.
    """

    name: str
    type: str
    lake: str | None
    refused: str = ""
    nullable: bool = True
    default: bool = False
    generated: bool = False
    max_chars: int | None = None
    max_bytes: int | None = None
    members: tuple[str, ...] | None = None
    several: bool = False
    merges: str = ""


@dataclass(frozen=True, slots=True)
class DbTable:
    """A table. ``primary``: the columns of its primary key.

    ``one_unique``: the primary key is known to be its only unique one. ``acting``: its foreign keys
    that change its rows by themselves. ``by_row``: those to itself that are checked amid a
    statement. ``deferrable``: it has constraints that can be checked at the commit. ``comment``:
    its own. ``identity``: differs from that of another table which had the name before.
    ``unsafe``: why what is written may not be what is there. ``only``: statements name its own
    rows by PostgreSQL's ONLY, or they reach the rows of tables that inherit from it. ``fires``: the
    triggers that run with its writes and can't change what is written of a row.
    """

    columns: tuple[DbColumn, ...]
    primary: tuple[str, ...] = ()
    primary_name: str = ""
    one_unique: bool = False
    acting: tuple[str, ...] = ()
    by_row: tuple[str, ...] = ()
    deferrable: bool = False
    comment: str = ""
    identity: str = ""
    unsafe: tuple[str, ...] = ()
    only: bool = False
    fires: tuple[str, ...] = ()

    @property
    def filled(self) -> frozenset[str]:
        """The columns, in small letters, that have a value in a row that does not give one."""
        return frozenset(one.name.lower() for one in self.columns if one.default or one.generated)

    def find(self, name: str) -> DbColumn | None:
        """A column by its name, case aside."""
        lower = name.lower()
        return next((one for one in self.columns if one.name.lower() == lower), None)


def adopted(table: DbTable) -> Made:
    """A table that binlogd did not make, as its ledger would describe it."""
    own = {lake_name(name).lower() for name in CHANGELOG_NAMES}
    names = {column.name.lower() for column in table.columns}
    mode = Mode.APPEND if own <= names else Mode.UPSERT
    fields = tuple(
        LakeField(None, column.name, column.lake)
        for column in table.columns
        if column.lake is not None and not column.generated
    )
    numbered = tuple(replace(field, id=at) for at, field in enumerate(fields))
    return Made(numbered, mode, table.primary if mode is Mode.UPSERT else ())


def problems(table: DbTable, made: Made, target: TargetName) -> Iterable[str]:
    """Why a table can't be kept equal as it is now. One line each."""
    yield from table.unsafe
    for name in table.acting:
        yield (
            f"the foreign key {name} changes rows by itself (ON DELETE or ON UPDATE): let it be "
            "NO ACTION, for the source's own changes come through the log"
        )
    for name in table.by_row:
        yield (
            f"the foreign key {name} points to its own table, and is checked row by row, in an "
            "order that is not the source's: drop it"
        )
    names = [column.name.lower() for column in table.columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield f"two columns are named {twice[0]} (case aside)"
    known = {field.name.lower() for field in made.fields}
    for field in made.fields:
        yield from _problem(table, field, target)
    for key in made.keys:
        column = table.find(key)
        if column is not None and column.lake is None:
            yield f"column {column.name}, part of the key, is {column.type}: {column.refused}"
        elif column is not None and column.merges:
            yield f"column {column.name}, part of the key, {column.merges}"
    for column in table.columns:
        extra = column.name.lower() not in known
        if extra and not (column.nullable or column.default or column.generated):
            yield (
                f"column {column.name} has no default and may not be NULL: "
                f"{column.refused or 'the source sends no value for it'}"
            )


def runs_before(trigger: str) -> str:
    """Why a table with such a trigger is refused."""
    return (
        f"its trigger {trigger} runs BEFORE a row is written, and may write another or none: make "
        "it AFTER, or drop it"
    )


def check_new(table: DbTable, before: Made, after: Made) -> None:
    """Raise TargetRefused where a column that is to be added is there already, made by somebody
    else. It is not used instead: its stored rows do not have the source's values."""
    ours = {field.name.lower() for field in before.fields}
    for field in after.fields:
        column = table.find(field.name) if field.id is None else None
        if column is None or column.name.lower() in ours:
            continue
        if column.generated:
            why = "generated by the database: drop it, or make it a plain one"
        elif column.refused:
            why = f"and is {column.type}, which does not hold {field.type}: {column.refused}"
        else:
            why = "made by somebody else: drop it, and it is added"
        raise TargetRefused(f"column {column.name} exists already, {why}")


def _problem(table: DbTable, field: LakeField, target: TargetName) -> Iterable[str]:
    column = table.find(field.name)
    if column is None:
        yield (
            f"column {field.name} was dropped or renamed by somebody else: give it its name again; "
            f"{ways_out('', str(target))}"
        )
    elif column.generated:
        yield f"column {column.name} is generated by the database: drop it, or make it a plain one"
    elif not holds(column, field.type):
        yield (
            f"column {column.name} is {column.type}, which does not hold {field.type} exactly"
            f"{f': {column.refused}' if column.refused else ''}; {ways_out('', str(target))}"
        )


def holds(column: DbColumn, type_: str) -> bool:
    """Whether each value of the lake's type is kept exactly, or refused by the database aloud."""
    have = column.lake
    if have is None or (have, type_) == ("float", "double"):
        return False
    if have == type_ or widens(type_, have) or widens(have, type_):
        return True
    if {have, type_} == {"timestamp", "timestamptz"}:
        # MySQL's DATETIME: what it holds of a moment is its time in UTC.
        return column.type.startswith("datetime")
    if type_ == "boolean" and have == "int":
        return column.type.startswith("tinyint")
    return _scales(have) is not None and _scales(have) == _scales(type_)


def _scales(type_: str) -> str | None:
    found = re.fullmatch(r"decimal\([0-9]+, ?([0-9]+)\)", type_)
    return found[1] if found else None
