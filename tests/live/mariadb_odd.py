"""Rarer statements for MariaDB: exchanged tables, partitions, lossy changes, odd ways to write.

Pure.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.live.mariadb_ddl import (
    MOST_TABLES,
    Session,
    declared,
    new_column,
    spare_column,
    spare_name,
)
from tests.live.mariadb_rows import mark, named
from tests.live.mariadb_types import TYPES
from tests.live.schema import Name, Schema, Step, Table


def _one(rng: Random, schema: Schema) -> tuple[Session, Table] | None:
    if not schema.tables:
        return None
    return Session(rng, schema), rng.choice(schema.tables)


def swap(rng: Random, schema: Schema) -> Step | None:
    """Two tables exchange their names, across databases as well."""
    spare = spare_name(rng, schema)
    if len(schema.tables) < 2 or spare is None:
        return None
    session = Session(rng, schema)
    one, two = rng.sample(schema.tables, 2)
    a, b, c = session.spell_all(one.name, two.name, spare)
    after = schema.put(replace(one, name=two.name), replace(two, name=one.name))
    text = f"RENAME TABLE {a} TO {c}, {b} TO {a}, {c} TO {b}"
    return Step("swap", (session.use, text), (one.name, two.name), after)


def several_renames(rng: Random, schema: Schema) -> Step | None:
    """Two tables get other names in one statement: one moves, one takes the name it left."""
    spare = spare_name(rng, schema)
    if len(schema.tables) < 2 or spare is None:
        return None
    session = Session(rng, schema)
    one, two = rng.sample(schema.tables, 2)
    a, b, c = session.spell_all(one.name, two.name, spare)
    after = schema.without(one.name, two.name)
    after = after.put(replace(one, name=spare), replace(two, name=one.name))
    text = f"RENAME TABLE {a} TO {c}, {b} TO {a}"
    return Step("several_renames", (session.use, text), (one.name, two.name, spare), after)


def online(rng: Random, schema: Schema) -> Step | None:
    """As gh-ost changes a table: a copy with another column takes its place."""
    chosen = _one(rng, schema)
    if chosen is None:
        return None
    session, table = chosen
    column = spare_column(rng, table)
    if column is None:
        return None
    ghost: Name = (table.name[0], f"_{table.name[1]}_gho")
    gone: Name = (table.name[0], f"_{table.name[1]}_del")
    new = replace(new_column(rng, column), nullable=True)
    g, t, d = session.spell_all(ghost, table.name, gone)
    listed = named(c.name for c in table.columns)
    statements = (
        session.use, f"CREATE TABLE {g} LIKE {t}", f"ALTER TABLE {g} ADD COLUMN {declared(new)}",
        f"INSERT INTO {g} ({listed}) SELECT {listed} FROM {t}",
        f"RENAME TABLE {t} TO {d}, {g} TO {t}",
        f"DROP TABLE {d}",
    )  # fmt: skip
    after = schema.put(replace(table, columns=(*table.columns, new)))
    return Step("online", statements, (table.name, ghost, gone), after)


def lossy(rng: Random, schema: Schema) -> Step | None:
    """A column gets any other type; without strict mode the server makes the values fit."""
    chosen = _one(rng, schema)
    if chosen is None or not chosen[1].others:
        return None
    session, table = chosen
    column = rng.choice(table.others)
    new = replace(column, type=rng.choice(TYPES), default=None, nullable=True)
    mode = ("SET sql_mode = ''",) if rng.random() < 0.5 else ()
    text = f"ALTER TABLE {session.spell(table.name)} MODIFY {declared(new)}"
    after = schema.put(table.with_column(column.name, new))
    return Step("lossy", (session.use, *mode, text), (table.name,), after)


def spelled_oddly(rng: Random, schema: Schema) -> Step | None:
    """A column is added by a statement that is written as few people write it."""
    chosen = _one(rng, schema)
    if chosen is None:
        return None
    session, table = chosen
    name = spare_column(rng, table)
    if name is None:
        return None
    column = new_column(rng, name)
    where, what = session.spell(table.name), declared(column)
    text = rng.choice((
        f"SET STATEMENT max_statement_time = 100 FOR ALTER TABLE {where} ADD COLUMN {what}",
        f"ALTER TABLE {where} ADD COLUMN ({what})",
        f"/* one */ alter /* two */ table\n{where}\nadd\n{what}",
        f"ALTER TABLE {where} ADD COLUMN {what} /*!50000 COMMENT 'DROP COLUMN id' */",
        f"ALTER ONLINE TABLE {where} ADD COLUMN {what}",
        f"ALTER TABLE IF EXISTS {where} ADD COLUMN {what}, ALGORITHM=COPY",
        f"ALTER TABLE {where} WAIT 5 ADD COLUMN {what} COMMENT 'DROP COLUMN id; ('",
    ))  # fmt: skip
    after = schema.put(replace(table, columns=(*table.columns, column)))
    return Step("spelled_oddly", (session.use, text), (table.name,), after)


def partitions(rng: Random, schema: Schema) -> Step | None:
    """A table is partitioned by its key, and the partitions are taken away again."""
    chosen = _one(rng, schema)
    if chosen is None:
        return None
    session, table = chosen
    where = session.spell(table.name)
    column = table.column(table.key[0])
    by_key = f"ALTER TABLE {where} PARTITION BY KEY ({mark(column.name)}) PARTITIONS 3"
    statements = [session.use, by_key]
    if column.type.sql in ("INT", "BIGINT"):
        ranges = "PARTITION p0 VALUES LESS THAN (20), PARTITION p1 VALUES LESS THAN MAXVALUE"
        statements[1] = f"ALTER TABLE {where} PARTITION BY RANGE ({mark(column.name)}) ({ranges})"
        statements += rng.sample([
            f"ALTER TABLE {where} TRUNCATE PARTITION p0",
            f"ALTER TABLE {where} REBUILD PARTITION p1",
            f"ALTER TABLE {where} DROP PARTITION p0",
        ], rng.choice((0, 0, 1)))  # fmt: skip
    if rng.random() < 0.5:
        statements.append(f"ALTER TABLE {where} REMOVE PARTITIONING")
    return Step("partitions", tuple(statements), (table.name,), schema)


def harmless(rng: Random, schema: Schema) -> Step | None:
    """Statements that change neither rows nor columns."""
    chosen = _one(rng, schema)
    if chosen is None or not chosen[1].others:
        return None
    session, table = chosen
    where = session.spell(table.name)
    view = mark(f"view of {table.name[1]}")
    text = rng.choice((
        f"ALTER TABLE {where} COMMENT = 'DROP TABLE x'", f"ALTER TABLE {where} ENGINE = InnoDB",
        f"ALTER TABLE {where} AUTO_INCREMENT = 100, FORCE", f"OPTIMIZE TABLE {where}",
        f"ANALYZE TABLE {where}", f"CREATE OR REPLACE VIEW {view} AS SELECT 1 AS `TRUNCATE`",
        f"ALTER TABLE {where} ADD INDEX i{rng.randrange(10**9)} ({named(table.key)})",
        f"ALTER TABLE {where} ROW_FORMAT = DYNAMIC", "FLUSH TABLES",
    ))  # fmt: skip
    return Step("harmless", (session.use, text), (table.name,), schema)


def ignore_unique(rng: Random, schema: Schema) -> Step | None:
    """A unique index for which the server deletes rows, none of which is in the binary log."""
    chosen = _one(rng, schema)
    if chosen is None:
        return None
    session, table = chosen
    able = [
        c for c in table.others if not c.type.sql.startswith(("TEXT", "MEDIUM", "BLOB", "JSON"))
    ]
    if not able:
        return None
    name = mark(rng.choice(able).name)
    text = f"ALTER IGNORE TABLE {session.spell(table.name)} ADD UNIQUE u1 ({name})"
    statements = (session.use, text, f"ALTER TABLE {session.spell(table.name)} DROP INDEX u1")
    return Step("ignore_unique", statements, (table.name,), schema)


def another_charset(rng: Random, schema: Schema) -> Step | None:
    """Texts are converted; what the new character set lacks becomes a question mark."""
    chosen = _one(rng, schema)
    if chosen is None:
        return None
    session, table = chosen
    where = session.spell(table.name)
    statements = (
        session.use, "SET sql_mode = ''", f"ALTER TABLE {where} CONVERT TO CHARACTER SET latin1",
        f"ALTER TABLE {where} CONVERT TO CHARACTER SET utf8mb4",
    )  # fmt: skip
    return Step("another_charset", statements, (table.name,), schema)


def another_key(rng: Random, schema: Schema) -> Step | None:
    """The key loses its second column, or gets one; refused where rows would then be equal."""
    chosen = _one(rng, schema)
    if chosen is None:
        return None
    session, table = chosen
    numbers = [c.name for c in table.others if not c.nullable and "INT" in c.type.sql]
    if len(table.key) == 2:
        key: tuple[str, ...] = table.key[:1]
    elif numbers:
        key = (*table.key, rng.choice(numbers))
    else:
        return None
    where = session.spell(table.name)
    text = f"ALTER TABLE {where} DROP PRIMARY KEY, ADD PRIMARY KEY ({named(key)})"
    return Step(
        "another_key", (session.use, text), (table.name,), schema.put(replace(table, key=key))
    )


def copied(rng: Random, schema: Schema) -> Step | None:
    """A table that another one's rows fill."""
    chosen, name = _one(rng, schema), spare_name(rng, schema)
    if chosen is None or name is None or len(schema.tables) >= MOST_TABLES:
        return None
    session, table = chosen
    old, new = session.spell_all(table.name, name)
    statements = (
        session.use,
        f"CREATE TABLE {new} LIKE {old}",
        f"INSERT INTO {new} SELECT * FROM {old}",
    )
    return Step("copied", statements, (table.name, name), schema.put(replace(table, name=name)))


def database(rng: Random, schema: Schema) -> Step | None:
    """A database goes with all its tables, and is made again. Not at once: it ends a pipeline."""
    if not schema.tables:
        return None
    name = rng.choice(schema.databases)
    gone = tuple(table.name for table in schema.tables if table.name[0] == name)
    statements = (f"DROP DATABASE {mark(name)}", f"CREATE DATABASE {mark(name)}")
    return Step("database", statements, gone, schema.without(*gone))
