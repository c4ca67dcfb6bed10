"""Reads the clauses of MySQL's ALTER TABLE as steps, and names what can't be followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from changes.model.model import (
    AddColumn,
    ChangeColumn,
    DdlStep,
    DropColumn,
    Redefined,
    RenameColumn,
    TableName,
)
from changes.sql.mysql.alter_options import check_together, read_options
from changes.sql.mysql.columns import as_changed, read_definition
from changes.sql.mysql.defaults import Unknowable, as_added
from changes.sql.mysql.definitions import as_redefined
from changes.sql.mysql.names import StatementNames
from changes.sql.mysql.tokens import Cursor, NotUnderstood, Token, split, words

_INDEXES = words("INDEX KEY UNIQUE FULLTEXT SPATIAL FOREIGN VECTOR")
_PARTITION_UPKEEP = words("REORGANIZE COALESCE ANALYZE CHECK OPTIMIZE REBUILD REPAIR")


@dataclass(slots=True)
class Alter:
    """What a statement does, gathered clause by clause."""

    steps: list[DdlStep] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Added columns, and why their values in stored rows are unknown."""
    renamed_to: TableName | None = None
    others: list[tuple[TableName, str]] = field(default_factory=list)
    """Other tables whose rows it changes, and how: refused for each."""
    redefined: list[Redefined] = field(default_factory=list)
    defaults: set[str] = field(default_factory=set)
    """Columns, in lower case, whose DEFAULT a separate clause sets or drops."""
    optional: bool = False
    """A clause has IF EXISTS or IF NOT EXISTS, which may decide what a column's name is."""


def read_alter(tokens: Sequence[Token], sql: str, names: StatementNames, alter: Alter) -> None:
    """Read the clauses after the table's name into ``alter``; raises NotUnderstood.

    ``names`` resolves new table names.
    """
    for part in split(tokens, ","):
        if not part:
            if len(tokens) == 0:
                return
            raise NotUnderstood("a comma too many")
        cursor = Cursor(part)
        if _swallows_commas(cursor, names, alter):
            break
        _clause(cursor, sql, names, alter)
        _tail(cursor)
    check_together(alter.steps, alter.defaults, optional=alter.optional)


def _swallows_commas(cursor: Cursor, names: StatementNames, alter: Alter) -> bool:
    """Read clauses whose lists are not in parentheses; they can only come last."""
    if cursor.is_words("PARTITION", "BY") or cursor.accept("ORDER", "BY"):
        return True
    for verb in _PARTITION_UPKEEP:
        if cursor.accept(verb, "PARTITION"):
            return True
    if cursor.is_words("ADD", "PARTITION"):
        return True
    for verb in ("DROP", "TRUNCATE", "DISCARD", "IMPORT"):
        if cursor.accept(verb, "PARTITION"):
            alter.refused.append(f"{verb} PARTITION")
            return True
    return _takes_table(cursor, names, alter)


def _takes_table(cursor: Cursor, names: StatementNames, alter: Alter) -> bool:
    """Read an exchange of rows with another table, which is refused for both."""
    for verb, kind, before in (
        ("EXCHANGE", "PARTITION", "TABLE"),
        ("CONVERT", "PARTITION", "TABLE"),
        ("CONVERT", "TABLE", ""),
    ):
        if not cursor.accept(verb, kind):
            continue
        while before and not cursor.accept(before):
            cursor.next()
        reason = f"{verb} PARTITION"
        alter.refused.append(reason)
        alter.others.append((names.table(cursor), reason))
        return True
    return False


def spares_rows(tokens: Sequence[Token]) -> bool:
    """Whether no clause can delete or change a row in a statement with IGNORE.

    IGNORE deletes rows that a new key, check or partitioning does not allow, and changes values
    that do not fit a new type, without an event for them. This is the closed list of clauses that
    read no row.
    """
    return all(_spares(Cursor(part)) for part in split(tokens, ",") if part)


def _spares(cursor: Cursor) -> bool:
    if any(cursor.is_words(verb) for verb in ("RENAME", "ALTER")):
        return True
    if cursor.accept("ADD") or cursor.accept("DROP"):
        return cursor.is_words("INDEX") or cursor.is_words("KEY")
    if cursor.accept_any(frozenset(("ALGORITHM", "LOCK", "COMMENT"))):
        cursor.accept_sign("=")
        cursor.next()
        return cursor.at_end
    return cursor.accept("FORCE") and cursor.at_end


def _clause(cursor: Cursor, sql: str, names: StatementNames, alter: Alter) -> None:
    if cursor.accept("ADD"):
        _add(cursor, sql, alter)
    elif cursor.accept("DROP"):
        _drop(cursor, alter)
    elif cursor.accept("MODIFY"):
        _redefine(cursor, sql, alter, None, optional=_optional_column(cursor))
    elif cursor.accept("CHANGE"):
        _change(cursor, sql, alter)
    elif cursor.accept("RENAME"):
        _rename(cursor, names, alter)
    elif cursor.accept("ALTER"):
        _alter_default(cursor, alter)
    else:
        options = read_options(cursor)
        alter.refused += options.refused
        alter.redefined += [Redefined(None, charset=charset) for charset in options.charsets]


def _tail(cursor: Cursor) -> None:
    """A last clause may be followed by partitioning without a comma."""
    if cursor.at_end or cursor.is_words("PARTITION", "BY"):
        return
    raise NotUnderstood(f"{cursor.next().text!r} after a clause of ALTER TABLE")


def _optional_column(cursor: Cursor) -> bool:
    """Whether the clause depends on the existence of its column."""
    cursor.accept("COLUMN")
    return cursor.accept("IF", "NOT", "EXISTS") or cursor.accept("IF", "EXISTS")


def _add(cursor: Cursor, sql: str, alter: Alter) -> None:
    if _history(cursor, "ADD", alter):
        return
    if cursor.accept("CONSTRAINT"):
        if not _is_constraint(cursor):
            cursor.accept("IF", "NOT", "EXISTS")
            cursor.name()
        _add_constraint(cursor, alter)
    elif _is_constraint(cursor):
        _add_constraint(cursor, alter)
    else:
        alter.optional |= _optional_column(cursor)
        if cursor.at_group():
            for part in split(cursor.group(), ","):
                _add_listed(Cursor(part), sql, alter)
        else:
            _add_column(cursor, sql, alter)


def _add_listed(cursor: Cursor, sql: str, alter: Alter) -> None:
    """An entry of ``ADD (…)``: a column, or an index as in CREATE TABLE."""
    if cursor.is_words("CONSTRAINT") or _is_constraint(cursor):
        _add(cursor, sql, alter)
    else:
        _add_column(cursor, sql, alter)


def _is_constraint(cursor: Cursor) -> bool:
    """VECTOR alone is no reserved word: it may name a column."""
    if cursor.is_words("VECTOR"):
        return cursor.is_words("VECTOR", "INDEX") or cursor.is_words("VECTOR", "KEY")
    return any(cursor.is_words(word) for word in ("PRIMARY", "CHECK", *_INDEXES))


def _add_constraint(cursor: Cursor, alter: Alter) -> None:
    if cursor.accept("PRIMARY", "KEY"):
        alter.refused.append("ADD PRIMARY KEY")
    elif not cursor.accept("CHECK") and not cursor.accept_any(_INDEXES):
        raise NotUnderstood("ADD CONSTRAINT")
    cursor.rest()


def _add_column(cursor: Cursor, sql: str, alter: Alter) -> None:
    column = read_definition(cursor, sql)
    if column.primary:
        alter.refused.append("ADD PRIMARY KEY")
    try:
        alter.steps.append(as_added(column))
    except Unknowable as reason:
        alter.unknown.append(f"ADD COLUMN {column.name}: {reason}")
        alter.steps.append(AddColumn(as_changed(column)))


def _history(cursor: Cursor, verb: str, alter: Alter) -> bool:
    """Read MariaDB's periods, which change no row, and versioning, which adds rows of history."""
    if cursor.accept("SYSTEM", "VERSIONING"):
        alter.refused.append(f"{verb} SYSTEM VERSIONING")
        return True
    if not cursor.is_words("PERIOD", "FOR") and not cursor.is_words("PERIOD", "IF"):
        return False
    cursor.rest()
    return True


def _drop(cursor: Cursor, alter: Alter) -> None:
    if _history(cursor, "DROP", alter):
        return
    if cursor.accept("PRIMARY", "KEY"):
        alter.refused.append("DROP PRIMARY KEY")
        return
    if cursor.accept("FOREIGN", "KEY") or cursor.accept_any(
        frozenset(("INDEX", "KEY", "CONSTRAINT", "CHECK"))
    ):
        cursor.accept("IF", "EXISTS")
        if cursor.name().upper() == "PRIMARY":
            alter.refused.append("DROP PRIMARY KEY")
        return
    _optional_column(cursor)
    alter.steps.append(DropColumn(cursor.column()))
    cursor.accept_any(frozenset(("RESTRICT", "CASCADE")))


def _redefine(cursor: Cursor, sql: str, alter: Alter, old: str | None, *, optional: bool) -> None:
    """Read a new definition of the column ``old``, None for the one it names itself."""
    alter.optional |= optional
    column = read_definition(cursor, sql)
    if column.primary:
        alter.refused.append("ADD PRIMARY KEY")
    before = column.name if old is None else old
    alter.steps.append(ChangeColumn(before, as_changed(column), if_exists=optional))
    alter.redefined.append(as_redefined(column, old))


def _change(cursor: Cursor, sql: str, alter: Alter) -> None:
    optional = _optional_column(cursor)
    _redefine(cursor, sql, alter, cursor.column(), optional=optional)


def _rename(cursor: Cursor, names: StatementNames, alter: Alter) -> None:
    if cursor.accept_any(frozenset(("INDEX", "KEY"))):
        _from_to(cursor)
    elif cursor.accept("COLUMN"):
        optional = cursor.accept("IF", "EXISTS")
        alter.optional |= optional
        alter.steps.append(RenameColumn(*_from_to(cursor), if_exists=optional))
    else:
        if not cursor.accept_any(frozenset(("TO", "AS"))):
            cursor.accept_sign("=")
        alter.renamed_to = names.table(cursor)


def _from_to(cursor: Cursor) -> tuple[str, str]:
    old = cursor.name()
    if not cursor.accept("TO"):
        raise NotUnderstood("RENAME without TO")
    return old, cursor.name()


def _alter_default(cursor: Cursor, alter: Alter) -> None:
    """SET DEFAULT and the like concern later rows, which carry their values themselves."""
    column = not cursor.accept_any(frozenset(("INDEX", "CHECK", "CONSTRAINT", "KEY")))
    if column:
        _optional_column(cursor)
    name = cursor.column() if column else cursor.name()
    if column and (cursor.is_words("SET", "DEFAULT") or cursor.is_words("DROP", "DEFAULT")):
        alter.defaults.add(name.lower())
    known = ("SET", "DROP", "VISIBLE", "INVISIBLE", "NOT", "ENFORCED", "IGNORED")
    if not any(cursor.is_words(word) for word in known):
        raise NotUnderstood("ALTER COLUMN")
    cursor.rest()
