"""Opens the database of a section, or of a table's schema in a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from daemon.config.config import Config
from daemon.databases.mysql import MySqlDatabase
from daemon.databases.port import Database
from daemon.databases.postgresql import PostgreSqlDatabase
from daemon.databases.sections import DatabaseSection

ADAPTERS: Mapping[str, Callable[[str, DatabaseSection], Database]] = {
    "mysql": MySqlDatabase,
    "postgresql": PostgreSqlDatabase,
}
"""By the kind that a section's url names."""


def open_database(config: Config, name: str) -> Database:
    """The database of ``[database.NAME]``. Connects at its first question. Any thread; what it
    gives is one thread's at a time."""
    section = config.database[name]
    return ADAPTERS[section.address.kind](name, section)
