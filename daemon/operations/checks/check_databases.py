"""The databases of a configuration: for its check and its plan."""

from __future__ import annotations

import time
from collections.abc import Iterator

from actors.runtime.jars import JarsError
from changes.model.model import TableName
from changes.routes.routing import Route
from daemon.config.config import Config
from databases.base.database import Database
from databases.base.errors import DatabaseAway, DatabaseRefused
from databases.base.port import Findings
from databases.opening import open_database
from settings.counted import counted
from sparkwriter.sinks import sinks_of

MOST_TABLES = 200
"""So many tables of a pipeline are looked at: each takes some questions."""


def missing_drivers(config: Config) -> Iterator[str]:
    """Drivers that Spark needs and this machine lacks. One line each; none where no sink uses
    Spark: then binlogd reads databases itself."""
    if not any(sink.catalog() is not None for sink in sinks_of(config).values()):
        return
    from sparkwriter.spark_sessions import driver_jars  # pyspark: not always installed

    try:
        driver_jars(config)
    except JarsError as error:
        yield str(error)


def planned(config: Config) -> Iterator[str]:
    """What is configured, without secrets."""
    for name, database in config.database.items():
        url = config.redactor.text(database.url)
        most = f"at most {counted(database.connections, 'connection')}"
        yield f"database {name}: {url} ({database.role}), {most}"


def check_databases(config: Config) -> Findings:
    """Ask each database what it is, and about the tables that a pipeline would have of it."""
    problems, warnings = [], []
    for name in config.database:
        database = open_database(config, name)
        try:
            found = database.check(_tables(config, name, database), _now_us)
        except (DatabaseAway, DatabaseRefused) as error:
            problems.append(str(error))
        else:
            problems += [f"database.{name}: {line}" for line in found.problems]
            warnings += [f"database.{name}: {line}" for line in found.warnings]
        finally:
            database.close()
    return Findings(tuple(problems), tuple(warnings))


def _tables(config: Config, name: str, database: Database) -> list[TableName]:
    """The tables of a database that a route of a pipeline takes."""
    found: list[TableName] = []
    there = database.tables("*")
    for pipeline in config.pipeline:
        routes = config.routes(pipeline)
        found += [
            table
            for table in there
            if config.database_of(pipeline, table.database) == name and _taken(routes, table)
        ]
    return list(dict.fromkeys(found))[:MOST_TABLES]


def _taken(routes: list[Route], table: TableName) -> bool:
    return any(route.takes(table) for route in routes)


def _now_us() -> int:
    return time.time_ns() // 1000
