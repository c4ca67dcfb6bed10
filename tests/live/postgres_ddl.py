"""Statements for PostgreSQL on tables and their columns, none of which is in the stream. Pure."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.live.mariadb_ddl import (
    COLUMN_NAMES,
    MOST_COLUMNS,
    MOST_TABLES,
    TABLE_NAMES,
    spare_column,
    spare_name,
)
from tests.live.postgres_published import added, drawn
from tests.live.postgres_rows import full, mark, named
from tests.live.postgres_types import BY_SQL, KEY_TYPES, TYPES, WIDER
from tests.live.schema import Column, Name, Schema, Step, Table

TABLES = [name for name in TABLE_NAMES if name.isascii()]
COLUMNS = [name for name in COLUMN_NAMES if name.isascii()]
"""Others are left out: see LEFT_OUT."""


def _new_column(rng: Random, name: str) -> Column:
    type_ = rng.choice(TYPES)
    default = type_.literal(rng) if rng.random() < 0.5 else None
    return Column(name, type_, rng.random() < 0.6, default)


def _declared(column: Column) -> str:
    null = "" if column.nullable else " NOT NULL"
    default = "" if column.default is None else f" DEFAULT {column.default}"
    return f"{mark(column.name)} {column.type.sql}{null}{default}"


def _new_table(rng: Random, name: Name) -> Table:
    names = rng.sample(COLUMNS, rng.randint(1, 6))
    keys = [Column("id", rng.choice(KEY_TYPES), nullable=False)]
    if rng.random() < 0.25:
        keys.append(Column("id2", rng.choice(KEY_TYPES), nullable=False))
    others = [_new_column(rng, name) for name in names]
    columns = [*keys, *others] if rng.random() < 0.7 else [*others, *keys]
    return Table(name, tuple(columns), tuple(column.name for column in keys))


def _created(rng: Random, table: Table, is_whole: bool) -> tuple[str, ...]:
    """The table; half of them tell their old rows whole, or all."""
    parts = [_declared(column) for column in table.columns]
    parts.append(f"PRIMARY KEY ({named(table.key)})")
    name = full(table.name)
    made = f"CREATE TABLE {name} ({', '.join(parts)})"
    whole = f"ALTER TABLE {name} REPLICA IDENTITY FULL"
    return (made, whole) if rng.random() < 0.5 or is_whole else (made,)


def create(rng: Random, schema: Schema) -> Step | None:
    name = spare_name(rng, schema, TABLES)
    if name is None or len(schema.tables) >= MOST_TABLES:
        return None
    table = _new_table(rng, name)
    made = _created(rng, table, schema.whole)
    if schema.published:
        made, table = _published(rng, table, made)
    return Step("create", made, (name,), schema.put(table))


def _published(rng: Random, table: Table, made: tuple[str, ...]) -> tuple[tuple[str, ...], Table]:
    """All in one transaction; now and then nothing is published of a table."""
    if rng.random() < 0.1:
        return made, table
    found = drawn(rng, table, is_whole=any("IDENTITY FULL" in text for text in made))
    return ("BEGIN", *made, added(table, found), "COMMIT"), replace(table, listed=found.columns)


def truncate(rng: Random, schema: Schema) -> Step | None:
    if not schema.tables:
        return None
    some = rng.sample(schema.tables, min(len(schema.tables), rng.choice((1, 1, 2))))
    only = "ONLY " if any(table.related for table in some) else ""
    text = f"TRUNCATE {', '.join(only + full(table.name) for table in some)}"
    return Step("truncate", (text,), tuple(table.name for table in some), schema)


def inherited(rng: Random, schema: Schema) -> Step | None:
    """A child of a table, with the same columns: what asks for the parent sees its rows, too."""
    able = [table for table in schema.tables if not table.related]
    name = spare_name(rng, schema, TABLES)
    if not able or name is None or len(schema.tables) >= MOST_TABLES:
        return None
    parent = replace(rng.choice(able), related=True)
    child = replace(parent, name=name)
    text = (
        f"CREATE TABLE {full(name)} (PRIMARY KEY ({named(child.key)}))"
        f" INHERITS ({full(parent.name)})"
    )
    whole = f"ALTER TABLE {full(name)} REPLICA IDENTITY FULL"
    made: tuple[str, ...] = (text, whole) if schema.whole else (text,)
    if schema.published:
        made, child = _published(rng, child, made)
    return Step("inherited", made, (parent.name, name), schema.put(parent, child))


def row_security(rng: Random, schema: Schema) -> Step | None:
    """Rows are hidden from whoever is neither the owner nor allowed to pass it by."""
    if not schema.tables:
        return None
    table = rng.choice(schema.tables)
    text = f"ALTER TABLE {full(table.name)} ENABLE ROW LEVEL SECURITY"
    return Step("row_security", (text,), (table.name,), schema)


def alter(rng: Random, schema: Schema) -> Step | None:
    """One clause: a column that comes, goes, is renamed, widened, or gets another default."""
    if not schema.tables:
        return None
    table = rng.choice(schema.tables)
    if table.related:
        return None
    made = rng.choice((_add, _add, _drop, _rename, _widen, _default))(rng, table)
    if made is None:
        return None
    clause, now = made
    text = f"ALTER TABLE {full(table.name)} {clause}"
    return Step("alter", (text,), (table.name,), schema.put(now))


def _add(rng: Random, table: Table) -> tuple[str, Table] | None:
    name = spare_column(rng, table, COLUMNS)
    if name is None or len(table.columns) >= MOST_COLUMNS:
        return None
    column = _new_column(rng, name)
    if not column.nullable and column.default is None:
        column = replace(column, nullable=True)  # refused where the table has rows
    after = replace(table, columns=(*table.columns, column))
    return f"ADD COLUMN {_declared(column)}", after


def _drop(rng: Random, table: Table) -> tuple[str, Table] | None:
    if len(table.others) < 2:
        return None
    column = rng.choice(table.others)
    return f"DROP COLUMN {mark(column.name)}", table.with_column(column.name, None)


def _rename(rng: Random, table: Table) -> tuple[str, Table] | None:
    name = spare_column(rng, table, COLUMNS)
    if name is None or not table.others:
        return None
    column = rng.choice(table.others)
    text = f"RENAME COLUMN {mark(column.name)} TO {mark(name)}"
    return text, table.with_column(column.name, replace(column, name=name))


def _widen(rng: Random, table: Table) -> tuple[str, Table] | None:
    able = [column for column in table.others if column.type.sql in WIDER]
    if not able:
        return None
    column = rng.choice(able)
    new = replace(column, type=BY_SQL[rng.choice(WIDER[column.type.sql])])
    text = f"ALTER COLUMN {mark(column.name)} TYPE {new.type.sql}"
    return text, table.with_column(column.name, new)


def _default(rng: Random, table: Table) -> tuple[str, Table] | None:
    if not table.others:
        return None
    column = rng.choice(table.others)
    new = replace(column, default=column.type.literal(rng))
    text = f"ALTER COLUMN {mark(column.name)} SET DEFAULT {new.default}"
    return text, table.with_column(column.name, new)
