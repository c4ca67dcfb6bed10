"""Opens the database of a section, or of a table's schema in a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from daemon.config.config import Config
from daemon.config.rotation import current_password
from daemon.databases.mysql import MySqlDatabase
from daemon.databases.port import Database
from daemon.databases.postgresql import PostgreSqlDatabase
from daemon.databases.sections import DatabaseSection

Open = Callable[[str, DatabaseSection, Callable[[], str]], Database]
"""Of what messages call it, the section, and what gives its password."""

ADAPTERS: Mapping[str, Open] = {
    "mysql": MySqlDatabase,
    "postgresql": PostgreSqlDatabase,
}
"""By the kind that a section's url names."""


def open_database(config: Config, name: str) -> Database:
    """The database of ``[database.NAME]``. Connects at its first question. Any thread; what it
    gives is one thread's at a time. Each connection takes the password as its file has it then."""
    section = config.database[name]
    password = partial(current_password, config, name)
    return ADAPTERS[section.address.kind](f"database.{name}", section, password)
