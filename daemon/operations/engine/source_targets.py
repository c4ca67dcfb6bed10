"""Finds the tables of a source's databases, and the targets that they lead to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from changes.model.model import Mode, TableName, TargetName
from changes.routes.routing import RouteConflict, Router, TargetRoute
from daemon.config.pipeline_config import PipelineConfig

NOT = "!"
"""Before a pattern: what it matches is left out."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A target, the source's table that it is of, that one's database by its section's name, and
    the route between them."""

    target: TargetName
    table: TableName
    database: str
    route: TargetRoute


@dataclass(frozen=True, slots=True)
class Chosen:
    """``refused``: by target why it can't be compared. ``left_out``: names of tables and targets
    that an exclusion matches."""

    tables: tuple[Compared, ...]
    refused: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()


def chosen(pipeline: PipelineConfig, patterns: Sequence[str]) -> Chosen:
    """What the patterns choose: of targets (``lake.shop.*``), or of the source's tables
    (``shop.order_*``), without those of ``!PATTERN``. Raises DatabaseAway, DatabaseRefused."""
    router = pipeline.router()
    wanted = [pattern for pattern in patterns if not pattern.startswith(NOT)]
    unwanted = [pattern.removeprefix(NOT) for pattern in patterns if pattern.startswith(NOT)]
    tables: list[Compared] = []
    refused: list[tuple[str, str]] = []
    left_out: list[str] = []
    for database, table in _tables(pipeline):
        try:
            routes = router.targets(table)
        except RouteConflict as conflict:
            refused.append((str(table), str(conflict)))
            continue
        for route in routes:
            names = (str(route.name), str(table))
            if _any(names, unwanted):
                left_out += names
            elif _any(names, wanted):
                why = unfit(router, table, route)
                if why is None:
                    one = Compared(route.name, table, database, route)
                    tables.append(one)
                else:
                    refused.append((str(route.name), why))
    tables.sort(key=lambda one: str(one.target))
    return Chosen(tuple(tables), tuple(refused), tuple(left_out))


def named(pipeline: PipelineConfig, target: str, table: str) -> Compared:
    """A target that was chosen before. Raises ValueError where it is not what it was."""
    schema, _, name = table.partition(".")
    source = TableName(schema, name)
    database = pipeline.database_of(schema)
    if database is None:
        raise ValueError(f"pipeline {pipeline.name} has no database for {table} any more")
    router = pipeline.router()
    for route in router.targets(source):
        if str(route.name) == target and (why := unfit(router, source, route)) is None:
            return Compared(route.name, source, database, route)
        if str(route.name) == target:
            raise ValueError(why)
    raise ValueError(f"no route leads {table} to it any more")


def unmatched(patterns: Iterable[str], found: Chosen) -> list[str]:
    """The patterns that match nothing, exclusions among them."""
    names = [name for one in found.tables for name in (str(one.target), str(one.table))]
    names += [name for name, _ in found.refused]
    return [
        pattern
        for pattern in patterns
        if not _any(
            found.left_out if pattern.startswith(NOT) else names, [pattern.removeprefix(NOT)]
        )
    ]


def _any(names: Iterable[str], patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def unfit(router: Router, table: TableName, route: TargetRoute) -> str | None:
    """Why rows of the target are no rows of the table; None: they are."""
    if route.mode is Mode.APPEND:
        return "it is a changelog: its rows are what happened, not what is"
    if router.merges(table, route.name):
        return "several tables of the source lead to it"
    if route.shape.history:
        return "it keeps a history: the database has no former versions of its rows"
    return None


def _tables(pipeline: PipelineConfig) -> Iterator[tuple[str, TableName]]:
    for name in pipeline.databases:
        database = pipeline.open_database(name)
        try:
            for table in database.tables("*"):
                if pipeline.database_of(table.database) == name:
                    yield name, table
        finally:
            database.close()
