"""Tables as a person declares them in a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bench.compare.job import TableSpec

_POSTGRES_TYPES = {"bigint(20)": "bigint", "int(11)": "integer", "decimal(10,2)": "numeric(10,2)",
                   "datetime": "timestamp"}  # fmt: skip
_MARIADB_TYPES = {"datetime": "datetime(6)"}
"""Times to the microsecond, for binlogd takes no column that would round what a record may hold."""


def created(database: str, namespace: str, tables: Iterable[TableSpec]) -> Iterator[str]:
    """The statements that make a namespace with these tables."""
    postgres = database == "postgresql"
    yield f"CREATE {'SCHEMA' if postgres else 'DATABASE'} {namespace}"
    types: Mapping[str, str] = _POSTGRES_TYPES if postgres else _MARIADB_TYPES
    for table in tables:
        columns = ", ".join(
            f"{column.name} {types.get(column.mysql, column.mysql)}" for column in table.columns
        )
        yield f"CREATE TABLE {namespace}.{table.name} ({columns}, PRIMARY KEY ({table.key[0]}))"


def dropped(database: str, namespace: str) -> str:
    """The statement that takes all of it away."""
    if database == "postgresql":
        return f"DROP SCHEMA {namespace} CASCADE"
    return f"DROP DATABASE {namespace}"
