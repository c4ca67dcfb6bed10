"""What MySQL's and MariaDB's catalogs say of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from actors.contract.ports import TargetRefused
from sparkwriter.jdbc.tables import DbColumn, DbTable

TABLE = """
SELECT TABLE_TYPE, ENGINE, TABLE_COMMENT, CREATE_TIME FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""
# MariaDB spells the default of a column without one as NULL, MySQL has none.
COLUMNS = """
SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT IS NOT NULL
 AND NOT (IS_NULLABLE = 'YES' AND COLUMN_DEFAULT = 'NULL'), EXTRA,
CHARACTER_SET_NAME, COLLATION_NAME, CHARACTER_MAXIMUM_LENGTH
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
ORDER BY ORDINAL_POSITION
"""
UNIQUE = """
SELECT COLUMN_NAME, SUB_PART, INDEX_NAME = 'PRIMARY' FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX
"""
FOREIGN = """
SELECT CONSTRAINT_NAME, UNIQUE_CONSTRAINT_SCHEMA = CONSTRAINT_SCHEMA
AND REFERENCED_TABLE_NAME = TABLE_NAME, DELETE_RULE, UPDATE_RULE
FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = %s AND TABLE_NAME = %s
"""
REFERENCED = """
SELECT 1 FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE UNIQUE_CONSTRAINT_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s LIMIT 1
"""
TRIGGERS = """
SELECT TRIGGER_NAME FROM information_schema.TRIGGERS
WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s ORDER BY 1
"""

_INTS = {"tinyint": "int", "smallint": "int", "mediumint": "int", "int": "int", "bigint": "long"}
_TEXTS = ("varchar", "tinytext", "text", "mediumtext", "longtext")
_BYTES = ("varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_EXACT = {
    "float": "float",
    "double": "double",
    "date": "date",
    "datetime(6)": "timestamp",
    "timestamp(6)": "timestamptz",
    "time(6)": "string",
    "json": "string",
}

Rows = Sequence[tuple[Any, ...]]


def table_of(table: Rows, columns: Rows, unique: Rows, foreign: Rows) -> DbTable | None:
    """The table that the queries above tell of. Raises TargetRefused for what is none."""
    if not table:
        return None
    ((kind, engine, comment, created),) = table
    if kind != "BASE TABLE":
        raise TargetRefused(f"there is a {str(kind).lower()} of that name, which is no table")
    if str(engine).lower() != "innodb":
        raise TargetRefused(f"its engine is {engine}, which has no transactions: make it InnoDB")
    primary = [(name, part) for name, part, is_primary in unique if is_primary]
    prefixes = {name for name, part in primary if part is not None}
    kept = ("NO ACTION", "RESTRICT")
    return DbTable(
        tuple(_column(prefixes, *column) for column in columns),
        tuple(name for name, _ in primary),
        "PRIMARY" if primary else "",
        one_unique=bool(primary) and len(primary) == len(unique),
        acting=tuple(name for name, _, *rules in foreign if any(r not in kept for r in rules)),
        by_row=tuple(name for name, own, *_ in foreign if own),
        comment=comment or "",
        identity="" if created is None else str(created),
    )


def _column(
    prefixes: set[str],
    name: str,
    type_: str,
    nullable: str,
    default: int,
    extra: str,
    charset: str | None,
    collation: str | None,
    length: int | None,
) -> DbColumn:
    plain = re.split(r"[( ]", type_)[0]
    lake, refused = _lake(type_, plain)
    spelled = type_
    if collation is not None:
        spelled += f" CHARACTER SET {charset} COLLATE {collation}"
    characters = plain in ("varchar", "char")
    extras = extra.upper()
    return DbColumn(
        name,
        spelled,
        lake,
        refused,
        nullable=nullable == "YES",
        default=bool(default) or "AUTO_INCREMENT" in extras,
        generated="GENERATED" in extras and "DEFAULT_GENERATED" not in extras,
        max_chars=length if characters else None,
        max_bytes=length if plain in _TEXTS and not characters else None,
        members=_members(type_) if plain in ("enum", "set") else None,
        several=plain == "set",
        merges=_merges(collation, name in prefixes),
    )


def _members(type_: str) -> tuple[str, ...]:
    return tuple(text.replace("''", "'") for text in re.findall(r"'((?:[^']|'')*)'", type_))


def _merges(collation: str | None, is_prefix: bool) -> str:
    if is_prefix:
        return "is in it by its first characters alone: put the whole column into the key"
    if collation is None or re.search(r"_(0900|nopad)_bin$", collation):
        return ""
    return (
        f"has the collation {collation}, for which different texts may be equal: give it "
        "utf8mb4_0900_bin (MySQL) or utf8mb4_nopad_bin (MariaDB)"
    )


def _lake(type_: str, plain: str) -> tuple[str | None, str]:
    """The lake's type that it holds exactly, or why there is none."""
    bare = type_.replace(" zerofill", "")
    unsigned = bare.endswith(" unsigned")
    bare = bare.removesuffix(" unsigned")
    if plain in _INTS:
        if not unsigned or plain in ("tinyint", "smallint", "mediumint"):
            return _INTS[plain], ""
        return ("long" if plain == "int" else "decimal(20, 0)"), ""
    if bare in _EXACT:
        return _EXACT[bare], ""
    if plain in _TEXTS or plain in ("enum", "set"):
        return "string", ""
    if plain in _BYTES:
        return "binary", ""
    if found := re.fullmatch(r"decimal\(([0-9]+),([0-9]+)\)", bare):
        if int(found[1]) <= 38:
            return f"decimal({found[1]}, {found[2]})", ""
        return None, "decimals have up to 38 digits: make it decimal(38,…), or longtext"
    if plain in ("datetime", "timestamp", "time"):
        return None, f"it rounds: make it {plain}(6)"
    if plain == "year":
        return None, "it makes years of numbers below 100: make it smallint"
    if plain in ("float", "double"):
        return None, "it rounds: leave out its digits"
    if plain in ("char", "binary"):
        return None, f"it changes what a value ends with: make it var{plain}"
    return None, "make it longtext"
