"""Publications of a source in PostgreSQL: which rows and columns of a table its stream has. Pure.

The filter of a table whose old rows are not sent whole has columns of its key alone, and a list has
all of these: or the server refuses each UPDATE and DELETE.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.live.hostile import FIRST
from tests.live.postgres_rows import full, mark, named
from tests.live.schema import Column, Table

NAME = "live"
"""Of the publication, in each seed's database."""


def is_picked(seed: int) -> bool:
    """Whether a seed's tables are published one by one: of hostile seeds every second."""
    return seed >= FIRST and Random(f"publication {seed}").random() < 0.5


@dataclass(frozen=True, slots=True)
class Published:
    """What a publication has of a table; None: all rows, all columns."""

    columns: tuple[str, ...] | None = None
    rows: str | None = None


def added(table: Table, found: Published) -> str:
    """The statement that publishes a table, without those that inherit from it."""
    columns = "" if found.columns is None else f" ({named(found.columns)})"
    rows = "" if found.rows is None else f" WHERE ({found.rows})"
    return f"ALTER PUBLICATION {NAME} ADD TABLE ONLY {full(table.name)}{columns}{rows}"


def drawn(rng: Random, table: Table, is_whole: bool) -> Published:
    """Some columns, some rows, or all. ``is_whole``: its old rows are sent whole."""
    rows = _condition(rng, table, is_whole) if rng.random() < 0.6 else None
    if is_whole or rng.random() < 0.5:
        return Published(rows=rows)
    others = [column.name for column in table.others]
    kept = {*table.key, *rng.sample(others, rng.randint(0, len(others)))}
    return Published(tuple(c.name for c in table.columns if c.name in kept), rows)


def _condition(rng: Random, table: Table, is_whole: bool) -> str:
    column = table.column(rng.choice(table.key))
    if is_whole and table.others and rng.random() < 0.7:
        column = rng.choice(table.others)
    return _of_column(rng, column)


def _of_column(rng: Random, column: Column) -> str:
    """Of few operators: each is immutable, as the server wants them."""
    name, sql = mark(column.name), column.type.sql
    able = [f"{name} IS NOT NULL"] if column.nullable else []
    if sql in ("smallint", "integer", "bigint"):
        able += [f"{name} > 15", f"{name} % 2 = 0", f"{name} <> 7 OR {name} IS NULL"]
    elif sql.startswith(("numeric", "real", "double")):
        able += [f"{name} >= 0"]
    elif sql == "boolean":
        able += [name, f"{name} IS NOT TRUE"]
    elif sql == "text" or sql.startswith("varchar"):
        able += [f"{name} > 'k2'", f"length({name}) <> 2", f"NOT ({name} = 'k7')"]
    return rng.choice(able or [f"{name} IS NOT NULL"])
