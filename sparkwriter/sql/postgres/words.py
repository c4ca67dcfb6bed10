"""PostgreSQL's SQL. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from changes.model.errors import TargetRefused
from changes.model.model import TargetName
from changes.sql.quoted import quoted
from changes.sql.spark.ddl_plan import LakeField
from sparkwriter.kit.marks_table.table_description import Made, Remake
from sparkwriter.sql.base.session import CHECKSUM, STAGE, LoadedColumn, SqlDialect, target_name
from sparkwriter.sql.base.tables import DbTable
from sparkwriter.sql.base.values import default_text

LONGEST_NAME = 63
"""Bytes. A longer one would be cut, with a notice alone."""

_TYPES = {
    "int": "integer",
    "long": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
}


class PostgreSqlDialect(SqlDialect):
    """See ``SqlDialect``."""

    name = "PostgreSQL"
    sign_of_names = '"'
    holds_nul = False
    holds_nan = True
    holds_minus_zero = True
    ledger_columns = (
        "namespace text NOT NULL, name text NOT NULL, version bigint NOT NULL, marks text NOT NULL,"
        f" freed text, made text, step text, {CHECKSUM}, PRIMARY KEY (namespace, name)"
    )

    def wait_for_locks(self, within_s: float) -> str:
        """In milliseconds."""
        return f"SET lock_timeout = {max(1, int(within_s * 1000))}"

    def checks_at_commit(self) -> list[str]:
        """Also those of other tables that point to one that is written."""
        return ["SET CONSTRAINTS ALL DEFERRED"]

    def literal(self, text: str) -> str:
        """With standard_conforming_strings a backslash is a character."""
        return quoted(text)

    def check_name(self, name: str) -> None:
        """Of 63 bytes at most, without NUL."""
        if not name or "\0" in name or len(name.encode()) > LONGEST_NAME:
            raise TargetRefused(
                f"{name!r} is no name in PostgreSQL: 1 to {LONGEST_NAME} bytes without NUL. Give "
                "its route another target"
            )

    def make(self, target: TargetName, made: Made, stamp: str) -> str:
        """Text of a key is compared by its bytes."""
        keys = {key.lower() for key in made.keys}
        columns = [self._column(field, field.name.lower() in keys) for field in made.fields]
        if keys:
            columns.append(f"PRIMARY KEY ({', '.join(map(self.quote, made.keys))})")
        return f"CREATE TABLE {target_name(self, target)} ({', '.join(columns)})"

    def remake(self, remake: Remake, table: DbTable, stamp: str) -> list[str]:
        """Dropped, renamed, widened, added; nothing is stamped, for it is one transaction."""
        name = target_name(self, remake.target)
        before, after = remake.before.fields, remake.after.fields
        kept = {field.id for field in after}
        clauses = [
            f"DROP COLUMN {self.quote(field.name)}"
            for at, field in enumerate(before)
            if at not in kept
        ]
        renamed = [
            (before[field.id].name, field.name)
            for field in after
            if field.id is not None and before[field.id].name != field.name
        ]
        aside = [(old, f"__binlogd_{at}", new) for at, (old, new) in enumerate(renamed)]
        clauses += [f"RENAME COLUMN {self.quote(a)} TO {self.quote(b)}" for a, b, _ in aside]
        clauses += [f"RENAME COLUMN {self.quote(b)} TO {self.quote(c)}" for _, b, c in aside]
        for field in after:
            self.check_name(field.name)
            quoted = self.quote(field.name)
            if field.id is None:
                default = self._default(field)
                clauses.append(f"ADD COLUMN {self._column(field, False)}{default}")
                if default:
                    clauses.append(f"ALTER COLUMN {quoted} DROP DEFAULT")
            elif before[field.id].type != field.type:
                clauses.append(f"ALTER COLUMN {quoted} TYPE {own_type(field.type)}")
        return [f"ALTER TABLE {name} {clause}" for clause in clauses]

    def rename(self, old: TargetName, new: TargetName) -> list[str]:
        """Through a third name where the schema changes, too. What moves along is called otherwise
        where the new schema has its name: indexes are relations, and keep theirs when their table
        is renamed."""
        if old.namespace == new.namespace:
            self.check_name(new.table)
            return [f"ALTER TABLE {target_name(self, old)} RENAME TO {self.quote(new.table)}"]
        self.check_name(new.namespace)
        third = self.quote("__binlogd_moving")
        moving = f"{self.quote(old.namespace)}.{third}"
        return [
            f"ALTER TABLE {target_name(self, old)} RENAME TO {third}",
            self._free_names(moving, old.namespace, new.namespace),
            f"ALTER TABLE {moving} SET SCHEMA {self.quote(new.namespace)}",
            f"ALTER TABLE {self.quote(new.namespace)}.{third} RENAME TO {self.quote(new.table)}",
        ]

    def _free_names(self, table: str, schema: str, new: str) -> str:
        """Give its indexes and sequences names of their own where the new schema has theirs."""
        oid = f"{self.literal(table)}::regclass"
        body = f"""DECLARE one record; BEGIN FOR one IN
            SELECT c.oid, c.relname, c.relkind FROM pg_catalog.pg_class c
            WHERE c.relkind IN ('i', 'I', 'S') AND (c.oid IN (
                SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = {oid}
            ) OR c.oid IN (
                SELECT objid FROM pg_catalog.pg_depend
                WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass
                    AND refobjid = {oid} AND deptype IN ('a', 'i')
            )) AND EXISTS (
                SELECT FROM pg_catalog.pg_class other
                JOIN pg_catalog.pg_namespace n ON n.oid = other.relnamespace
                WHERE n.nspname = {self.literal(new)} AND other.relname = c.relname
            )
        LOOP EXECUTE 'ALTER ' || CASE one.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'INDEX ' END
            || quote_ident({self.literal(schema)}) || '.' || quote_ident(one.relname)
            || ' RENAME TO ' || quote_ident('binlogd_' || one.oid); END LOOP; END"""
        tag = "$names$"
        while tag in body:
            tag = f"${tag.strip('$')}_$"
        return f"DO {tag} {body} {tag}"

    def loosen(self, target: TargetName, keys: Sequence[str], table: DbTable) -> list[str]:
        """The primary key becomes an index."""
        name, columns = target_name(self, target), ", ".join(map(self.quote, keys))
        free = [f"ALTER TABLE {name} ALTER COLUMN {self.quote(key)} DROP NOT NULL" for key in keys]
        return [
            f"ALTER TABLE {name} DROP CONSTRAINT {self.quote(table.primary_name)}",
            *free,
            f"CREATE INDEX ON {name} ({columns})",
        ]

    def same(self, left: str, right: str) -> str:
        """It can use no index."""
        return f"{left} IS NOT DISTINCT FROM {right}"

    def stage(self, columns: Sequence[tuple[str, str]], key: Sequence[str]) -> list[str]:
        """It goes with the transaction."""
        made = ", ".join(f"{self.quote(name)} {type_}" for name, type_ in columns)
        gone = f"DROP TABLE IF EXISTS pg_temp.{STAGE}"  # of a write before, in one transaction
        return [gone, f"CREATE TEMPORARY TABLE {STAGE} ({made}) ON COMMIT DROP"]

    def filled(self) -> list[str]:
        """What the planner knows of it else is a guess: 10,000 rows cost half with it."""
        return [f"ANALYZE {STAGE}"]

    def update(
        self, table: str, on: str, sets: Sequence[tuple[str, str]], of: Literal["t", "s"]
    ) -> str:
        """UPDATE … FROM."""
        first, second = f"{table} AS t", f"{STAGE} AS s"
        if of == "s":
            first, second = second, first
        made = ", ".join(f"{self.quote(name)} = {value}" for name, value in sets)
        return f"UPDATE {first} SET {made} FROM {second} WHERE {on}"

    def delete(self, table: str, on: str) -> str:
        """DELETE … USING."""
        return f"DELETE FROM {table} AS t USING {STAGE} AS s WHERE {on}"

    def _column(self, field: LakeField, in_key: bool) -> str:
        self.check_name(field.name)
        collate = ' COLLATE "C"' if in_key and field.type == "string" else ""
        return f"{self.quote(field.name)} {own_type(field.type)}{collate}"

    def _default(self, field: LakeField) -> str:
        text = default_text(field.name, field.default, field.type, self)
        if text is None:
            return ""
        value = rf"\x{text}" if field.type == "binary" else text
        return f" DEFAULT {self.literal(value)}"


def own_type(type_: str) -> str:
    """The type of a column that binlogd makes. The others are called alike."""
    return re.sub("^decimal", "numeric", _TYPES.get(type_, type_))


# Columns of texts as the text of PostgreSQL's COPY. No code runs a row.

_SPECIAL = r"[\\\t\n\r]"
_ESCAPES = (("\\", r"\\"), ("\t", r"\t"), ("\n", r"\n"), ("\r", r"\r"))


def copy_text(columns: Sequence[LoadedColumn]) -> memoryview:
    """All rows: fields between tabs, rows ended by a newline."""
    fields = [_field(column) for column in columns]
    joined = pc.binary_join_element_wise(*fields, "\t")
    lines = pc.binary_join_element_wise(joined, "", "\n")
    return data_of(lines)


def data_of(texts: pa.StringArray) -> memoryview:
    """The bytes of all texts, one behind the other. None may be null."""
    size = pc.sum(pc.binary_length(texts)).as_py() or 0
    assert texts.offset == 0
    return memoryview(texts.buffers()[2] or b"")[:size]


def _field(column: LoadedColumn) -> pa.Array:
    texts = column.texts
    if column.binary:
        texts = pc.binary_join_element_wise(r"\\x", texts, "")
    elif pc.any(pc.match_substring_regex(texts, _SPECIAL)).as_py():
        for character, escape in _ESCAPES:
            texts = pc.replace_substring(texts, character, escape)
    return pc.fill_null(texts, r"\N")
