"""MySQL's and MariaDB's SQL. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from changes.model.errors import TargetRefused
from changes.model.model import TargetName
from changes.sql.spark.ddl_plan import LakeField
from sparkwriter.kit.marks_table.table_description import Made, Remake
from sparkwriter.sql.base.session import CHECKSUM, STAGE, LoadedColumn, SqlDialect, target_name
from sparkwriter.sql.base.tables import DbColumn, DbTable
from sparkwriter.sql.base.values import default_text

LONGEST_NAME = 64
"""Characters."""

KEY_BYTES = 3072
"""Of an index of InnoDB."""

FIXED_BYTES = {
    "boolean": 1, "int": 4, "long": 8, "float": 4, "double": 8, "date": 3, "timestamp": 8,
    "timestamptz": 8,
}  # fmt: skip
"""What a key's column takes of those; a decimal 18 at most."""

_TYPES = {
    "boolean": "tinyint(1)",
    "long": "bigint",
    "string": "longtext",
    "binary": "longblob",
    "timestamp": "datetime(6)",
    "timestamptz": "datetime(6)",
}

MOST_COMMENT = 2048
STAMP = "binlogd:"
"""Begins the end of a table's comment: which statement changed it last."""

_STAMPED = re.compile(rf"(.*?) ?{STAMP}([0-9a-f]{{12}}\.[0-9]+)", re.DOTALL)
"""A comment with a stamp. What somebody wrote may hold the word, too."""


def stamp_of(comment: str) -> str:
    """The stamp that a table's comment ends with, empty without one."""
    found = _STAMPED.fullmatch(comment)
    return found[2] if found else ""


class MySqlDialect(SqlDialect):
    """``mariadb``: which of the two it is."""

    sign_of_names = "`"
    holds_nul = True
    holds_nan = False

    def __init__(self, mariadb: bool) -> None:
        self.is_mariadb = mariadb
        self.name = "MariaDB" if mariadb else "MySQL"
        self.holds_minus_zero = not mariadb
        self._most_scale = 38 if mariadb else 30
        # Bytes are compared, and spaces at the end count.
        self.collation = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"
        text = f"longtext CHARACTER SET utf8mb4 COLLATE {self.collation}"
        name = f"varchar(64) CHARACTER SET utf8mb4 COLLATE {self.collation} NOT NULL"
        self.ledger_columns = (
            f"namespace {name}, name {name}, version bigint NOT NULL, marks {text} NOT NULL,"
            f" freed {text}, made {text}, step {text}, {CHECKSUM}, PRIMARY KEY (namespace, name)"
        )

    def wait_for_locks(self, within_s: float) -> str:
        """In whole seconds."""
        limit = max(1, int(within_s))
        return f"SET SESSION lock_wait_timeout = {limit}, innodb_lock_wait_timeout = {limit}"

    def literal(self, text: str) -> str:
        """Without NO_BACKSLASH_ESCAPES, which the session sees to."""
        return "'" + text.replace("\\", r"\\").replace("'", r"\'") + "'"

    def check_name(self, name: str) -> None:
        """Of 64 characters at most, in the first plane, and no space at the end."""
        wrong = not name or "\0" in name or len(name) > LONGEST_NAME or name.endswith(" ")
        if wrong or any(ord(character) > 0xFFFF for character in name):
            raise TargetRefused(
                f"{name!r} is no name in {self.name}: 1 to {LONGEST_NAME} characters up to U+FFFF, "
                "no NUL, no space at the end. Give its route another target"
            )

    def make(self, target: TargetName, made: Made, stamp: str) -> str:
        """Text of a key is compared by its bytes, and has what an index can hold."""
        keys = {key.lower() for key in made.keys}
        room = key_bytes([f for f in made.fields if f.name.lower() in keys])
        columns = [
            self._column(field, room if field.name.lower() in keys else None)
            for field in made.fields
        ]
        if keys:
            columns.append(f"PRIMARY KEY ({', '.join(map(self.quote, made.keys))})")
        return (
            f"CREATE TABLE {target_name(self, target)} ({', '.join(columns)}) ENGINE=InnoDB"
            f" ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {self.collation}"
            f" COMMENT={self.literal(STAMP + stamp)}"
        )

    def remake(self, remake: Remake, table: DbTable, stamp: str) -> list[str]:
        """One ALTER TABLE, which the server does whole or not at all, with the stamp in it."""
        before, after = remake.before.fields, remake.after.fields
        kept = {field.id for field in after}
        clauses = [
            f"DROP COLUMN {self.quote(field.name)}"
            for at, field in enumerate(before)
            if at not in kept
        ]
        defaulted = []
        for field in after:
            self.check_name(field.name)
            if field.id is None:
                default = self._default(field)
                clauses.append(f"ADD COLUMN {self._column(field, None)} NULL{default}")
                if default:
                    defaulted.append(f"MODIFY COLUMN {self._column(field, None)} NULL")
                continue
            old = before[field.id]
            was, now = self.quote(old.name), self.quote(field.name)
            if old.type != field.type:
                null = _null(table.find(old.name))
                clauses.append(f"CHANGE COLUMN {was} {now} {self._type(field)}{null}")
            elif old.name != field.name:
                clauses.append(f"RENAME COLUMN {was} TO {now}")
        name = target_name(self, remake.target)
        clauses.append(self._stamped(table, stamp))
        first = f"ALTER TABLE {name} {', '.join(clauses)}"
        return [first, *(f"ALTER TABLE {name} {clause}" for clause in defaulted)]

    def stamp(self, target: TargetName, table: DbTable, stamp: str) -> str:
        """The statement that only stamps a table."""
        return f"ALTER TABLE {target_name(self, target)} {self._stamped(table, stamp)}"

    def rename(self, old: TargetName, new: TargetName) -> list[str]:
        """One name."""
        return [self.rename_all([(old, new)])]

    def rename_all(self, pairs: Iterable[tuple[TargetName, TargetName]]) -> str:
        """Several at once, one after another in a single step."""
        named = (f"{target_name(self, old)} TO {target_name(self, new)}" for old, new in pairs)
        return f"RENAME TABLE {', '.join(named)}"

    def loosen(self, target: TargetName, keys: Sequence[str], table: DbTable) -> list[str]:
        """The primary key becomes an index, in one statement."""
        columns = [column for key in keys if (column := table.find(key)) is not None]
        clauses = [f"MODIFY COLUMN {self.quote(one.name)} {one.type} NULL" for one in columns]
        listed = ", ".join(self.quote(one.name) for one in columns)
        clauses += ["DROP PRIMARY KEY", f"ADD KEY ({listed})"]
        return [f"ALTER TABLE {target_name(self, target)} {', '.join(clauses)}"]

    def same(self, left: str, right: str) -> str:
        """It uses an index."""
        return f"{left} <=> {right}"

    def stage(self, columns: Sequence[tuple[str, str]], key: Sequence[str]) -> list[str]:
        """It outlives the transaction: the previous one is dropped first."""
        made = ", ".join(f"{self.quote(name)} {type_} NULL" for name, type_ in columns)
        return [
            f"DROP TEMPORARY TABLE IF EXISTS {STAGE}",
            f"CREATE TEMPORARY TABLE {STAGE} ({made}) ENGINE=InnoDB ROW_FORMAT=DYNAMIC"
            f" DEFAULT CHARACTER SET utf8mb4 COLLATE {self.collation}",
        ]

    def or_update(self, sets: Sequence[tuple[str, str]]) -> str:
        """Half the cost of UPDATE and INSERT."""
        made = ", ".join(f"{self.quote(name)} = {value}" for name, value in sets)
        return f" ON DUPLICATE KEY UPDATE {made}"

    def update(
        self, table: str, on: str, sets: Sequence[tuple[str, str]], of: Literal["t", "s"]
    ) -> str:
        """The stage is read, and the table's key looked up for each row."""
        made = ", ".join(f"{of}.{self.quote(name)} = {value}" for name, value in sets)
        return f"UPDATE {STAGE} AS s STRAIGHT_JOIN {table} AS t ON {on} SET {made}"

    def delete(self, table: str, on: str) -> str:
        """DELETE of the joined."""
        return f"DELETE t FROM {STAGE} AS s STRAIGHT_JOIN {table} AS t ON {on}"

    def _stamped(self, table: DbTable, stamp: str) -> str:
        own = found[1] if (found := _STAMPED.fullmatch(table.comment)) else table.comment
        made = f"{own}{' ' if own else ''}{STAMP}{stamp}"
        if len(made) > MOST_COMMENT:
            raise TargetRefused(f"its comment leaves no room for {STAMP}{stamp}")
        return f"COMMENT={self.literal(made)}"

    def _column(self, field: LakeField, key_room: int | None) -> str:
        self.check_name(field.name)
        return f"{self.quote(field.name)} {self._type(field, key_room)}"

    def _type(self, field: LakeField, key_room: int | None = None) -> str:
        scale = int(field.type.rstrip(")").split(",")[1]) if "," in field.type else 0
        if scale > self._most_scale:
            raise TargetRefused(
                f"column {field.name}: {field.type}, and {self.name}'s decimals have up to"
                f" {self._most_scale} digits behind the point: declare it as string in its route"
            )
        return own_type(field.type, key_room)

    def _default(self, field: LakeField) -> str:
        text = default_text(field.name, field.default, field.type, self)
        if text is None:
            return ""
        value = f"x'{text}'" if field.type == "binary" else self.literal(text)
        return f" DEFAULT ({value})"


def own_type(type_: str, key_room: int | None = None) -> str:
    """The type of a column that binlogd makes. ``key_room``: the bytes of a key's text."""
    if key_room is not None and type_ == "string":
        return f"varchar({key_room // 4})"
    if key_room is not None and type_ == "binary":
        return f"varbinary({key_room})"
    return _TYPES.get(type_, type_)


def key_bytes(fields: Sequence[LakeField]) -> int:
    """How many bytes each text of a key may have."""
    fixed = [field.type for field in fields if field.type not in ("string", "binary")]
    long = len(fields) - len(fixed)
    room = KEY_BYTES - sum(FIXED_BYTES.get(type_, 18) for type_ in fixed)
    return room // max(long, 1) // 4 * 4


def _null(column: DbColumn | None) -> str:
    return "" if column is None or column.nullable else " NOT NULL"


# Columns of texts as INSERT statements. No code runs a row.

_SPECIAL = r"[\\']"


def inserts(head: bytes, columns: Sequence[LoadedColumn], most: int) -> Iterator[bytes]:
    """``head`` with all rows' values behind it, in statements of ``most`` bytes; longer only where
    one row alone is."""
    rows = pc.binary_join_element_wise(*map(_field, columns), ",")
    rows = pc.binary_join_element_wise("(", rows, "),", "")
    assert rows.offset == 0
    _, offsets, data = rows.buffers()
    ends = memoryview(offsets).cast("i")[1 : len(rows) + 1]
    text = memoryview(data)
    begin, at = 0, 0
    while at < len(ends):
        # The last row that fits, but one at least.
        last = max(bisect_right(ends, begin + most - len(head)) - 1, at)
        end = ends[last]
        yield head + text[begin : end - 1]
        begin, at = end, last + 1


def _field(column: LoadedColumn) -> pa.Array:
    texts = column.texts
    if column.binary:
        return pc.fill_null(pc.binary_join_element_wise("x'", texts, "'", ""), "NULL")
    if pc.any(pc.match_substring_regex(texts, _SPECIAL)).as_py():
        texts = pc.replace_substring(texts, "\\", r"\\")
        texts = pc.replace_substring(texts, "'", r"\'")
    return pc.fill_null(pc.binary_join_element_wise("'", texts, "'", ""), "NULL")
