"""Types of tables whose messages name none, from the database that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from changes.model.model import TableName
from daemon.cli.init.look import SeenTopic
from daemon.config.config import Config
from databases.base.database import Database
from databases.base.errors import DatabaseRefused
from databases.opening import open_database
from databases.streamed import as_streamed

Types = Mapping[str, Mapping[str, str]]
"""By table the types of its columns, in the configuration's words; a text needs none."""

NAME = "source"
"""The section of the database."""

_WORDS = {"long": "bigint", "decimal(20, 0)": "bigint unsigned"}
_TYPED = {"postgresql": "debezium-json"}
"""Formats whose streams have a database's own types."""


def types_of(config: Config, topics: Iterable[SeenTopic]) -> tuple[Types, list[str]]:
    """Those of ``[database.source]``, and why a table has none: one line each. Raises DatabaseAway,
    DatabaseRefused where it can't be queried."""
    found: dict[str, Mapping[str, str]] = {}
    notes: list[str] = []
    database = open_database(config, NAME)
    try:
        for topic in topics:
            for name in (name for name, seen in topic.tables.items() if seen.texts):
                try:
                    found[name] = _of_table(config, database, name, topic.format or "")
                except DatabaseRefused as error:
                    notes.append(f"{name}: {error}")
    finally:
        database.close()
    return {name: types for name, types in found.items() if types}, notes


def _of_table(config: Config, database: Database, name: str, format_: str) -> Mapping[str, str]:
    """Only what the stream's own texts can be read as."""
    schema, _, table = name.partition(".")
    source = database.describe(TableName(schema, table))
    kind = config.database[NAME].address.kind
    own = as_streamed(source, kind, _TYPED.get(kind, "canal-json"))
    types: dict[str, str] = {}
    for one in own.columns:
        if one.type == "string":
            continue
        words = types | {one.column.name: _WORDS.get(one.type, one.type)}
        refused = as_streamed(source, kind, format_, tuple(words.items())).refused
        if not any(f", column {one.column.name}: " in line for line in refused):
            types = words
    return types
