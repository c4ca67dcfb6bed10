"""Statements for MariaDB on tables and their columns. Pure; rarer ones are in mariadb_odd.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tests.live.hostile import NAMES
from tests.live.mariadb_rows import full, mark, named
from tests.live.mariadb_types import BY_SQL, KEY_TYPES, TYPES, WIDER
from tests.live.schema import Column, Name, Schema, Step, Table, Type

TABLE_NAMES = (
    "orders", "a b", "a_b", "Mixed", "t-1", "select", "ü", "数据", "x.y", "it's", "p$q", "n1", "n2",
)  # fmt: skip
COLUMN_NAMES = (
    "c1", "c2", "c3", "c4", "Amount", "a b", "a_b", "select", "ü", "数据", "x.y", "p$q", "it's",
    "op",
)  # fmt: skip
MOST_TABLES = 7
MOST_COLUMNS = 12


class Session:
    """One session's database, and how it spells a table's name."""

    def __init__(self, rng: Random, schema: Schema) -> None:
        self._rng = rng
        self.database = rng.choice(schema.databases)

    @property
    def use(self) -> str:
        """The statement that chooses the database."""
        return f"USE {mark(self.database)}"

    def spell(self, name: Name) -> str:
        """Whole, or without the database where that is the session's."""
        if name[0] == self.database and self._rng.random() < 0.7:
            return mark(name[1])
        return full(name)

    def spell_all(self, *names: Name) -> list[str]:
        """The names of one statement: nearly always all whole or none. Where both are mixed no
        message tells the session's database, and the pipeline stops."""
        if self._rng.random() < 0.03:
            return list(map(self.spell, names))
        bare = {name[0] for name in names} == {self.database} and self._rng.random() < 0.7
        return [mark(name[1]) if bare else full(name) for name in names]


def spare_name(rng: Random, schema: Schema, names: Sequence[str] | None = None) -> Name | None:
    """A name that no table has."""
    if names is None:
        names = TABLE_NAMES + NAMES if schema.hostile else TABLE_NAMES
    free = [
        (database, table)
        for database in schema.databases
        for table in names
        if not schema.has((database, table))
    ]
    return rng.choice(free) if free else None


def spare_column(rng: Random, table: Table, names: Sequence[str] | None = None) -> str | None:
    """A name that no column of a table has, in any case."""
    if names is None:
        names = COLUMN_NAMES + NAMES if table.hostile else COLUMN_NAMES
    taken = {column.name.lower() for column in table.columns}
    free = [name for name in names if name.lower() not in taken]
    return rng.choice(free) if free else None


def new_column(rng: Random, name: str, type_: Type | None = None) -> Column:
    """A column of any type, nullable or not, with a default or without."""
    type_ = type_ or rng.choice(TYPES)
    no_default = type_.sql.startswith(("TEXT", "MEDIUMTEXT", "BLOB", "JSON"))
    default = None if no_default or rng.random() < 0.5 else default_of(rng, type_)
    nullable = rng.random() < 0.6
    if rng.random() < 0.9:  # else the column is refused where the table has rows
        if type_.sql.startswith("TIMESTAMP"):  # which depends on the session's zone
            default = None
        nullable = nullable or (default is None and type_.sql.startswith(("DATE", "TIMESTAMP")))
    return Column(name, type_, nullable, default)


def default_of(rng: Random, type_: Type) -> str:
    """A literal for DEFAULT: not the empty one of bytes, see LEFT_OUT."""
    literal = type_.literal(rng)
    return "''" if literal == "x''" else literal


def declared(column: Column) -> str:
    """A column as CREATE and ALTER declare it."""
    null = " NULL" if column.nullable else " NOT NULL"
    default = "" if column.default is None else f" DEFAULT {column.default}"
    if column.default is None and column.nullable:
        default = " DEFAULT NULL"
    return f"{mark(column.name)} {column.type.sql}{null}{default}"


def new_table(rng: Random, name: Name, hostile: bool) -> Table:
    """A table with a key of one column or two, first or amid the others."""
    able = COLUMN_NAMES + NAMES if hostile else COLUMN_NAMES
    names = rng.sample(able, rng.randint(1, 6))
    lowered = {n.lower(): n for n in names}
    others = [new_column(rng, n) for n in lowered.values()]
    keys = [Column("id", rng.choice(KEY_TYPES), nullable=False)]
    if rng.random() < 0.25:
        keys.append(Column("id2", rng.choice(KEY_TYPES), nullable=False))
    columns = [*keys, *others] if rng.random() < 0.7 else [*others, *keys]
    return Table(name, tuple(columns), tuple(column.name for column in keys), hostile)


def created(table: Table, spelled: str) -> str:
    """The statement that makes a table."""
    parts = [declared(column) for column in table.columns]
    parts.append(f"PRIMARY KEY ({named(table.key)})")
    return f"CREATE TABLE {spelled} ({', '.join(parts)})"


def create(rng: Random, schema: Schema) -> Step | None:
    name = spare_name(rng, schema)
    if name is None or len(schema.tables) >= MOST_TABLES:
        return None
    session, table = Session(rng, schema), new_table(rng, name, schema.hostile)
    return Step(
        "create", (session.use, created(table, session.spell(name))), (name,), schema.put(table)
    )


def drop(rng: Random, schema: Schema) -> Step | None:
    """One table, or two; then as often as not one of them is made again at once."""
    if len(schema.tables) < 3:
        return None
    session = Session(rng, schema)
    gone = rng.sample(schema.tables, rng.choice((1, 1, 2)))
    word = rng.choice(("DROP TABLE", "DROP TABLE IF EXISTS", "drop  table"))
    names = session.spell_all(*(t.name for t in gone))
    statements = [session.use, f"{word} {', '.join(names)}"]
    after = schema.without(*(t.name for t in gone))
    if rng.random() < 0.5:
        again = new_table(rng, gone[0].name, schema.hostile)
        statements.append(created(again, session.spell(again.name)))
        after = after.put(again)
    return Step("drop", tuple(statements), tuple(t.name for t in gone), after)


def truncate(rng: Random, schema: Schema) -> Step | None:
    if not schema.tables:
        return None
    session, table = Session(rng, schema), rng.choice(schema.tables)
    word = rng.choice(("TRUNCATE TABLE", "TRUNCATE"))
    return Step(
        "truncate", (session.use, f"{word} {session.spell(table.name)}"), (table.name,), schema
    )


def rename_table(rng: Random, schema: Schema) -> Step | None:
    """To a free name, in the other database as well."""
    if not schema.tables or (name := spare_name(rng, schema)) is None:
        return None
    session, table = Session(rng, schema), rng.choice(schema.tables)
    old, new = session.spell_all(table.name, name)
    text = rng.choice((f"RENAME TABLE {old} TO {new}", f"ALTER TABLE {old} RENAME TO {new}"))
    after = schema.without(table.name).put(replace(table, name=name))
    return Step("rename_table", (session.use, text), (table.name, name), after)


def alter(rng: Random, schema: Schema) -> Step | None:
    """One to three clauses on the columns of a table, each on a column of its own."""
    if not schema.tables:
        return None
    session, table = Session(rng, schema), rng.choice(schema.tables)
    clauses, now, touched = [], table, set(table.key)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        made = rng.choice(_CLAUSES)(rng, now, touched)
        if made is not None:
            clause, now = made
            clauses.append(clause)
    if not clauses:
        return None
    text = f"ALTER TABLE {session.spell(table.name)} {', '.join(clauses)}"
    return Step("alter", (session.use, text), (table.name,), schema.put(now))


def _add(rng: Random, table: Table, touched: set[str]) -> tuple[str, Table] | None:
    name = spare_column(rng, table)
    if name is None or name in touched or len(table.columns) >= MOST_COLUMNS:
        return None
    touched.add(name)
    column = new_column(rng, name)
    place = rng.choice(("", "", " FIRST", f" AFTER {mark(table.key[0])}"))
    word = rng.choice(("ADD COLUMN", "ADD", "ADD COLUMN IF NOT EXISTS"))
    after = replace(table, columns=(*table.columns, column))
    return f"{word} {declared(column)}{place}", after


def _untouched(rng: Random, table: Table, touched: set[str]) -> Column | None:
    free = [column for column in table.others if column.name not in touched]
    if not free:
        return None
    column = rng.choice(free)
    touched.add(column.name)
    return column


def _drop(rng: Random, table: Table, touched: set[str]) -> tuple[str, Table] | None:
    column = _untouched(rng, table, touched)
    if column is None or len(table.others) < 2:
        return None
    word = rng.choice(("DROP COLUMN", "DROP"))
    return f"{word} {mark(column.name)}", table.with_column(column.name, None)


def _rename(rng: Random, table: Table, touched: set[str]) -> tuple[str, Table] | None:
    column, name = _untouched(rng, table, touched), spare_column(rng, table)
    if column is None or name is None or name in touched:
        return None
    touched.add(name)
    new = replace(column, name=name)
    text = rng.choice(
        (f"RENAME COLUMN {mark(column.name)} TO {mark(name)}",
         f"CHANGE COLUMN {mark(column.name)} {declared(new)}")
    )  # fmt: skip
    return text, table.with_column(column.name, new)


def _widen(rng: Random, table: Table, touched: set[str]) -> tuple[str, Table] | None:
    column = _untouched(rng, table, touched)
    if column is None or column.type.sql not in WIDER:
        return None
    new = replace(column, type=BY_SQL[rng.choice(WIDER[column.type.sql])], default=None)
    return f"MODIFY COLUMN {declared(new)}", table.with_column(column.name, new)


def _default(rng: Random, table: Table, touched: set[str]) -> tuple[str, Table] | None:
    column = _untouched(rng, table, touched)
    if column is None or column.default is None:
        return None
    default = default_of(rng, column.type)
    text = f"ALTER COLUMN {mark(column.name)} SET DEFAULT {default}"
    return text, table.with_column(column.name, replace(column, default=default))


_CLAUSES = (_add, _add, _add, _drop, _rename, _widen, _default)
