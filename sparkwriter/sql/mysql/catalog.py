"""What MySQL's and MariaDB's catalogs say of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from changes.model.errors import TargetRefused
from sparkwriter.sql.base.session import CatalogQueries
from sparkwriter.sql.base.tables import DbColumn, DbTable, runs_before

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
_REFERENCED = """
SELECT 1 FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE UNIQUE_CONSTRAINT_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s LIMIT 1
"""
_DEPENDENTS = """
SELECT CONCAT('foreign key ', CONSTRAINT_NAME, ' of ', CONSTRAINT_SCHEMA, '.', TABLE_NAME)
FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE UNIQUE_CONSTRAINT_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s
AND NOT (CONSTRAINT_SCHEMA = UNIQUE_CONSTRAINT_SCHEMA AND TABLE_NAME = REFERENCED_TABLE_NAME)
ORDER BY 1
"""
"""A view names its table, and is of whichever has the name."""
TRIGGERS = """
SELECT TRIGGER_NAME, ACTION_TIMING = 'BEFORE' FROM information_schema.TRIGGERS
WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s ORDER BY 1
"""
"""Those that the user may see: with the right TRIGGER (``sparkwriter.sql.mysql.checks``)."""

_LEFT = """
SELECT DISTINCT CONCAT('index ', INDEX_NAME) FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND INDEX_NAME <> 'PRIMARY'
UNION SELECT CONCAT('comment of ', COLUMN_NAME) FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLUMN_COMMENT <> ''
UNION SELECT CONCAT('default or NOT NULL of ', COLUMN_NAME) FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLUMN_KEY <> 'PRI'
AND (IS_NULLABLE = 'NO' OR (COLUMN_DEFAULT IS NOT NULL AND COLUMN_DEFAULT <> 'NULL'))
UNION SELECT CONCAT('constraint ', CONSTRAINT_NAME) FROM information_schema.TABLE_CONSTRAINTS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND CONSTRAINT_TYPE IN ('CHECK', 'FOREIGN KEY')
UNION SELECT CONCAT('options ', CREATE_OPTIONS) FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
AND LOWER(CREATE_OPTIONS) NOT IN ('', 'row_format=dynamic')
ORDER BY 1
"""
"""What of a table another one that takes its name does not have; triggers are ``fires``'s."""

QUERIES = CatalogQueries(
    _REFERENCED,
    _DEPENDENTS,
    _LEFT,
    "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s",
)

_INTS = {"tinyint": "int", "smallint": "int", "mediumint": "int", "int": "int", "bigint": "long"}
_EXACT = {
    "float": "float",
    "double": "double",
    "date": "date",
    "datetime(6)": "timestamp",
    "timestamp(6)": "timestamptz",
}
_TEXTS = ("tinytext", "text", "mediumtext", "longtext")
_BYTES = ("tinyblob", "blob", "mediumblob", "longblob")
"""Types that give back what was written; whole numbers, decimals, varchar, varbinary, enum and set,
too. Whatever is not here is refused: the tests' fuzz (``tests/own_tables``) has tried these
alone."""

CHARACTER_SETS = frozenset(
    ("ascii", "latin1", "latin2", "ucs2", "utf16", "utf16le", "utf32", "utf8", "utf8mb3", "utf8mb4")
)
"""Those in which each character is itself again, or is refused by the server: tried one by one."""

_WHY = {
    "datetime": "it rounds: make it datetime(6)",
    "timestamp": "it rounds: make it timestamp(6)",
    "time": "it stores other text than was written: make it varchar(30)",
    "year": "it makes years of numbers below 100: make it smallint",
    "float": "it rounds: leave out its digits",
    "double": "it rounds: leave out its digits",
    "char": "it changes what a value ends with: make it varchar",
    "binary": "it changes what a value ends with: make it varbinary",
    "json": "it stores other text than was written: make it longtext",
}
"""Of types that look as if they held a value and don't: what they do, and a way out."""

SYSTEM_VERSIONED = (
    "it is system-versioned: the server keeps each row that is replaced or deleted as well, and "
    "refuses statements that change such a table; route to another name, or take the versions "
    "away, which deletes them: ALTER TABLE … DROP SYSTEM VERSIONING"
)

Rows = Sequence[tuple[Any, ...]]


def table_of(
    table: Rows, columns: Rows, unique: Rows, foreign: Rows, triggers: Rows
) -> DbTable | None:
    """The table that the queries above tell of. Raises TargetRefused for what is none."""
    if not table:
        return None
    ((kind, engine, comment, _),) = table
    if kind == "SYSTEM VERSIONED":
        raise TargetRefused(SYSTEM_VERSIONED)
    if kind != "BASE TABLE":
        raise TargetRefused(f"there is a {str(kind).lower()} of that name, which is no table")
    if str(engine).lower() != "innodb":
        raise TargetRefused(f"its engine is {engine}, which has no transactions: make it InnoDB")
    primary = [(name, part) for name, part, is_primary in unique if is_primary]
    kept = ("NO ACTION", "RESTRICT")
    return DbTable(
        tuple(_column(primary, *column) for column in columns),
        tuple(name for name, _ in primary),
        "PRIMARY" if primary else "",
        one_unique=bool(primary) and len(primary) == len(unique),
        acting=tuple(name for name, _, *rules in foreign if any(r not in kept for r in rules)),
        by_row=tuple(name for name, own, *_ in foreign if own),
        comment=comment or "",
        identity=identity_of(table) or "",
        unsafe=tuple(runs_before(name) for name, before in triggers if before),
        fires=tuple(name for name, before in triggers if not before),
    )


def identity_of(table: Rows) -> str | None:
    """The time of creation, None where there is no table."""
    return None if not table else "" if table[0][3] is None else str(table[0][3])


def _column(
    primary: Rows,
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
    spelled = type_
    if collation is not None:
        spelled += f" CHARACTER SET {charset} COLLATE {collation}"
    characters = plain == "varchar"
    extras = extra.upper()
    in_key = [part for key, part in primary if key == name]
    makes_now = plain == "timestamp" and nullable != "YES"
    refused = _acts(extras, bool(in_key), makes_now)
    lake, unlike = _lake(type_, plain, charset)
    return DbColumn(
        name,
        spelled,
        None if refused else lake,
        refused or unlike,
        nullable=nullable == "YES",
        default=bool(default) or "AUTO_INCREMENT" in extras,
        generated="GENERATED" in extras and "DEFAULT_GENERATED" not in extras,
        max_chars=length if characters else None,
        max_bytes=length if plain in _TEXTS else None,
        members=_members(type_) if plain in ("enum", "set") else None,
        several=plain == "set",
        merges=_merges(collation, any(part is not None for part in in_key)),
    )


def _acts(extras: str, in_key: bool, makes_now: bool) -> str:
    """Why a column may store something else than what is written. In a key nothing is NULL."""
    if "ON UPDATE" in extras:
        return "it changes by itself with each update: leave out ON UPDATE"
    if "AUTO_INCREMENT" in extras and not in_key:
        return "it makes a number of NULL: leave out AUTO_INCREMENT"
    if makes_now and not in_key:
        return "MariaDB makes the present moment of NULL: let it be NULL, or make it datetime(6)"
    return ""


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


def _lake(type_: str, plain: str, charset: str | None) -> tuple[str | None, str]:
    """The lake's type that it holds exactly, or why there is none."""
    if charset is not None and charset not in CHARACTER_SETS:
        return None, f"its character set {charset} was never tried: make it utf8mb4"
    if found := re.fullmatch(r"([a-z]+)(\([0-9]+\))?( unsigned)?", type_):
        if (plain in _TEXTS or plain in _BYTES) and found[1] == type_:
            return ("string" if plain in _TEXTS else "binary"), ""
        if plain in ("varchar", "varbinary") and not found[3]:
            return ("string" if plain == "varchar" else "binary"), ""
        if plain in _INTS:
            return _whole(plain, bool(found[3])), ""
    if type_ in _EXACT:
        return _EXACT[type_], ""
    if plain in ("enum", "set"):
        return "string", ""
    if found := re.fullmatch(r"decimal\(([0-9]+),([0-9]+)\)( unsigned)?", type_):
        if int(found[1]) <= 38:
            return f"decimal({found[1]}, {found[2]})", ""
        return None, "decimals have up to 38 digits: make it decimal(38,…), or longtext"
    if "zerofill" in type_:
        return None, "it prints other text than was written: leave out ZEROFILL"
    if plain in ("float", "double") and type_.endswith("unsigned"):
        return None, "it was never tried: leave out UNSIGNED"
    return None, _WHY.get(plain, "it was never tried: make it longtext")


def _whole(plain: str, unsigned: bool) -> str:
    if not unsigned or plain in ("tinyint", "smallint", "mediumint"):
        return _INTS[plain]
    return "long" if plain == "int" else "decimal(20, 0)"
