"""Transactions of rows for PostgreSQL: inserts, updates, deletes, keys that move. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from tests.live.mariadb_rows import value
from tests.live.schema import Column, Name, Schema, Step, Table


def mark(name: str) -> str:
    """A quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def full(name: Name) -> str:
    """A table's whole name."""
    return f"{mark(name[0])}.{mark(name[1])}"


def named(columns: Iterable[str]) -> str:
    """A list of columns."""
    return ", ".join(map(mark, columns))


def _where(rng: Random, table: Table) -> str:
    column = table.column(table.key[0])
    low, high = column.type.literal(rng), column.type.literal(rng)
    test = rng.choice((f"= {low}", f"IN ({low}, {high})", f"BETWEEN {low} AND {high}"))
    return f" WHERE {mark(column.name)} {test}"


def _insert(rng: Random, table: Table) -> str:
    columns = [c for c in table.columns if c.name in table.key or _given(rng, c)]
    keys = {tuple(table.column(k).type.literal(rng) for k in table.key) for _ in range(_count(rng))}
    rows = []
    for key in sorted(keys):  # one INSERT may not meet a key twice
        found = dict(zip(table.key, key, strict=True))
        values = (found.get(column.name) or value(rng, column) for column in columns)
        rows.append(f"({', '.join(values)})")
    text = f"INSERT INTO {full(table.name)} ({named(c.name for c in columns)})"
    text += f" VALUES {', '.join(rows)} ON CONFLICT"
    others = [c.name for c in columns if c.name not in table.key]
    if not others or rng.random() < 0.5:
        return f"{text} DO NOTHING"
    changed = mark(rng.choice(others))
    return f"{text} ({named(table.key)}) DO UPDATE SET {changed} = excluded.{changed}"


def _count(rng: Random) -> int:
    return rng.choice((1, 1, 2, 5, 20))


def _given(rng: Random, column: Column) -> bool:
    return (not column.nullable and column.default is None) or rng.random() < 0.8


def _update(rng: Random, table: Table) -> str | None:
    if not table.others:
        return None
    changed = rng.sample(table.others, rng.randint(1, min(3, len(table.others))))
    pairs = ", ".join(f"{mark(c.name)} = {value(rng, c)}" for c in changed)
    return f"UPDATE {full(table.name)} SET {pairs}{_where(rng, table)}"


def _move(rng: Random, table: Table) -> str | None:
    """One row to a key that no row has."""
    column = table.column(rng.choice(table.key))
    old, new = column.type.literal(rng), column.type.literal(rng)
    name, key = full(table.name), mark(column.name)
    return (
        f"UPDATE {name} SET {key} = {new} WHERE {key} = {old}"
        f" AND NOT EXISTS (SELECT FROM {name} AS o WHERE o.{key} = {new})"
    )


def _delete(rng: Random, table: Table) -> str:
    where = "" if rng.random() < 0.05 else _where(rng, table)
    return f"DELETE FROM {full(table.name)}{where}"


_VERBS: tuple[Callable[[Random, Table], str | None], ...] = (
    _insert, _insert, _insert, _update, _update, _move, _delete,
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
