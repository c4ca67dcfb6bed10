"""Transactions of rows for MariaDB: inserts, updates, deletes, keys that move. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from tests.live.schema import Column, Name, Schema, Step, Table


def mark(name: str) -> str:
    """An identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"


def full(name: Name) -> str:
    """A table's whole name."""
    return f"{mark(name[0])}.{mark(name[1])}"


def named(columns: Iterable[str]) -> str:
    """A list of columns."""
    return ", ".join(map(mark, columns))


def value(rng: Random, column: Column) -> str:
    """A literal for a column; now and then NULL, or its default."""
    if column.nullable and rng.random() < 0.15:
        return "NULL"
    if column.default is not None and rng.random() < 0.2:
        return "DEFAULT"
    return column.type.literal(rng)


def _insert(rng: Random, table: Table) -> str:
    columns = [c for c in table.columns if c.name in table.key or _given(rng, c)]
    rows = ", ".join(
        "(" + ", ".join(value(rng, column) for column in columns) + ")"
        for _ in range(rng.choice((1, 1, 2, 5, 20)))
    )
    verb = rng.choice(("INSERT IGNORE INTO", "REPLACE INTO", "INSERT INTO"))
    text = f"{verb} {full(table.name)} ({named(c.name for c in columns)}) VALUES {rows}"
    others = [c for c in columns if c.name not in table.key]
    if verb != "INSERT INTO":
        return text
    changed = rng.choice(others).name if others else table.columns[0].name
    return f"{text} ON DUPLICATE KEY UPDATE {mark(changed)} = VALUES({mark(changed)})"


def _given(rng: Random, column: Column) -> bool:
    """Whether an insert names a column: one that must be named, always."""
    return (not column.nullable and column.default is None) or rng.random() < 0.8


def _where(rng: Random, table: Table) -> str:
    if not table.key:
        return " LIMIT 2"
    column = table.column(table.key[0])
    low, high = column.type.literal(rng), column.type.literal(rng)
    test = rng.choice((f"= {low}", f"IN ({low}, {high})", f"BETWEEN {low} AND {high}"))
    return f" WHERE {mark(column.name)} {test}"


def _update(rng: Random, table: Table) -> str | None:
    if not table.others:
        return None
    changed = rng.sample(table.others, rng.randint(1, min(3, len(table.others))))
    pairs = ", ".join(f"{mark(c.name)} = {value(rng, c)}" for c in changed)
    return f"UPDATE {full(table.name)} SET {pairs}{_where(rng, table)}"


def _move(rng: Random, table: Table) -> str | None:
    if not table.key:
        return None
    column = table.column(rng.choice(table.key))
    return (
        f"UPDATE IGNORE {full(table.name)} SET {mark(column.name)} = {column.type.literal(rng)}"
        f"{_where(rng, table)}"
    )


def _delete(rng: Random, table: Table) -> str:
    where = "" if rng.random() < 0.05 else _where(rng, table)
    return f"DELETE FROM {full(table.name)}{where}"


def _copy(rng: Random, table: Table) -> str | None:
    """Rows into each other's places, by way of one statement over the table itself."""
    if len(table.key) != 1 or not table.others:
        return None
    column = mark(rng.choice(table.others).name)
    name, key = full(table.name), mark(table.key[0])
    return f"UPDATE {name} AS l JOIN {name} AS r ON l.{key} < r.{key} SET l.{column} = r.{column}"


_VERBS: tuple[Callable[[Random, Table], str | None], ...] = (
    _insert, _insert, _insert, _update, _update, _move, _delete, _copy,
)  # fmt: skip


def rows(rng: Random, schema: Schema) -> Step | None:
    """A transaction over some tables; one in ten is rolled back, one in ten has a savepoint."""
    if not schema.tables:
        return None
    statements, about = ["BEGIN"], []
    for _ in range(rng.randint(1, 6)):
        table = rng.choice(schema.tables)
        statement = rng.choice(_VERBS)(rng, table)
        if statement is None:
            continue
        if rng.random() < 0.1:
            statements += ["SAVEPOINT s", statement, "ROLLBACK TO s"]
        else:
            statements.append(statement)
        about.append(table.name)
    statements.append("ROLLBACK" if rng.random() < 0.1 else "COMMIT")
    return Step("rows", tuple(statements), tuple(dict.fromkeys(about)), schema)
