"""Reads MariaDB's tables whole, each value in hex: no text can break a line."""

from __future__ import annotations

from tests.live.comparison import Found
from tests.live.mariadb import MariaDb
from tests.live.mariadb_rows import full, mark
from tests.live.mariadb_types import quoted
from tests.live.program import LiveError
from tests.live.schema import Name
from tests.live.values import Text

_KINDS = {
    "tinyint": "number", "smallint": "number", "mediumint": "number", "int": "number",
    "bigint": "number", "decimal": "number", "bit": "number", "year": "number",
    "float": "single", "double": "double", "char": "text", "varchar": "text", "tinytext": "text",
    "text": "text", "mediumtext": "text", "longtext": "text", "enum": "text", "set": "set",
    "uuid": "text", "binary": "padded", "varbinary": "bytes", "tinyblob": "bytes", "blob": "bytes",
    "mediumblob": "bytes", "longblob": "bytes", "date": "date", "datetime": "moment",
    "timestamp": "moment", "time": "time",
}  # fmt: skip


def read(server: MariaDb, databases: tuple[str, ...]) -> dict[Name, Found]:
    """Every table of some databases. Nobody may write meanwhile. Raises LiveError."""
    listed = ", ".join(map(quoted, databases))
    columns = _ask(
        server,
        "SELECT HEX(table_schema), HEX(table_name), HEX(column_name), HEX(data_type),"
        " HEX(CAST(column_key = 'PRI' AS CHAR))"
        " FROM information_schema.columns JOIN information_schema.tables"
        " USING (table_schema, table_name)"
        f" WHERE table_schema IN ({listed}) AND table_type = 'BASE TABLE'"
        " ORDER BY table_schema, table_name, ordinal_position",
    )
    tables: dict[Name, list[tuple[str, str, bool]]] = {}
    for database, table, column, type_, key in columns:
        name = (str(database), str(table))
        tables.setdefault(name, []).append((str(column), str(type_), key == "1"))
    return {name: _table(server, name, found) for name, found in tables.items()}


def _table(server: MariaDb, name: Name, columns: list[tuple[str, str, bool]]) -> Found:
    kinds = {column: _KINDS.get(type_, "text") for column, type_, _ in columns}
    shown = ", ".join(_expression(column, kind) for column, kind in kinds.items())
    rows = _ask(server, f"SELECT {shown} FROM {full(name)}")
    return Found(
        tuple(kinds.items()),
        tuple(rows),
        tuple(column for column, _, key in columns if key),
    )


def _expression(column: str, kind: str) -> str:
    """A column's text in hex; of bytes that text is their hex."""
    name = mark(column)
    match kind:
        case "number":
            return f"HEX(CAST({name} + 0 AS CHAR))"
        case "single":  # six digits are shown of a FLOAT, not all that it has
            return f"HEX(CAST(CAST({name} AS DOUBLE) AS CHAR))"
        case "bytes" | "padded":
            return f"HEX(HEX({name}))"
        case "date" | "moment":  # 0000-00-00, which a lossy MODIFY makes, comes as NULL
            zero = f"MONTH({name}) = 0 OR DAYOFMONTH({name}) = 0"
            return f"IF({zero}, NULL, HEX(CONVERT(CAST({name} AS CHAR) USING utf8mb4)))"
        case _:
            return f"HEX(CONVERT(CAST({name} AS CHAR) USING utf8mb4))"


def _ask(server: MariaDb, query: str) -> list[tuple[Text, ...]]:
    answer = server.ask(f"SET time_zone = '+00:00'; {query}")
    if answer.error:
        raise LiveError(f"MariaDB: {answer.error}")
    return [tuple(map(_text, row)) for row in answer.rows]


def _text(hexed: str) -> Text:
    """What the client shows for NULL is no hex."""
    return None if hexed == "NULL" else bytes.fromhex(hexed).decode()
