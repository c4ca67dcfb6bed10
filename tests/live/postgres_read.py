"""Reads PostgreSQL's tables whole, each value in hex: no text can break a line."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.live.comparison import Found
from tests.live.postgres import Postgres
from tests.live.postgres_published import NAME, Published
from tests.live.postgres_rows import full, mark
from tests.live.postgres_types import KINDS, quoted
from tests.live.program import LiveError
from tests.live.schema import Name
from tests.live.values import Text


def read(server: Postgres, database: str, schemas: tuple[str, ...]) -> dict[Name, Found]:
    """Every table of some schemas, as far as the stream has it. Nobody may write meanwhile.

    Raises LiveError.
    """
    listed = ", ".join(map(quoted, schemas))
    columns = _ask(
        server,
        database,
        "SELECT " + ", ".join(map(_hex, ("nspname", "relname", "attname", "typname")))
        + ", " + _hex("coalesce(attnum = ANY(indkey), false)")
        + " FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
        " JOIN pg_attribute a ON attrelid = c.oid JOIN pg_type t ON t.oid = atttypid"
        " LEFT JOIN pg_index i ON i.indrelid = c.oid AND indisprimary"
        f" WHERE nspname IN ({listed}) AND relkind = 'r' AND attnum > 0 AND NOT attisdropped"
        " ORDER BY nspname, relname, attnum;",
    )  # fmt: skip
    tables: dict[Name, list[tuple[str, str, bool]]] = {}
    for schema, table, column, type_, key in columns:
        found = tables.setdefault((str(schema), str(table)), [])
        found.append((str(column), str(type_), key == "true"))
    shown = published(server, database)
    return {
        name: _table(server, database, name, found, shown.get(name, Published(rows="false")))
        if shown else _table(server, database, name, found, Published())
        for name, found in tables.items()
    }  # fmt: skip


def published(server: Postgres, database: str) -> Mapping[Name, Published]:
    """What the source's publication has of each table; nothing where there is no publication.

    The server says itself which rows and columns these are, under the names of now.
    """
    found = _ask(
        server,
        database,
        "SELECT " + ", ".join(map(_hex, ("schemaname", "tablename", "to_json(attnames)")))
        + f", {_hex('rowfilter')} FROM pg_publication_tables WHERE pubname = '{NAME}';",
    )  # fmt: skip
    return {
        (str(schema), str(table)): Published(tuple(json.loads(columns or "[]")), rows)
        for schema, table, columns, rows in found
    }


def _table(
    server: Postgres,
    database: str,
    name: Name,
    columns: list[tuple[str, str, bool]],
    has: Published,
) -> Found:
    read = [one for one in columns if has.columns is None or one[0] in has.columns]
    shown = ", ".join(_expression(column, type_) for column, type_, _ in read)
    where = "" if has.rows is None else f" WHERE {has.rows}"
    return Found(
        tuple((column, KINDS.get(type_, "text")) for column, type_, _ in read),
        tuple(_ask(server, database, f"SELECT {shown} FROM ONLY {full(name)}{where};")),
        tuple(column for column, _, key in read if key),
    )


def _hex(expression: str) -> str:
    return f"encode(convert_to(({expression})::text, 'UTF8'), 'hex')"


def _expression(column: str, type_: str) -> str:
    """A column's text in hex; of bytes that text is their hex."""
    name = mark(column)
    match type_:
        case "bool" | "bit":
            return _hex(f"{name}::int")
        case "bytea":
            return _hex(f"encode({name}, 'hex')")
        case "bpchar":  # a cast to text drops the blanks at its end
            return _hex(f"CASE WHEN {name} IS NOT NULL THEN concat({name}) END")
        case "timestamptz":
            return _hex(f"{name} AT TIME ZONE 'UTC'")
        case "interval":
            return _hex(f"round(extract(epoch FROM {name}) * 1000000)")
        case "money":
            return _hex(f"{name}::numeric")
        case "_int4" | "_text":
            return _hex(f"to_json({name})")
        case _:
            return _hex(name)


def _ask(server: Postgres, database: str, query: str) -> list[tuple[Text, ...]]:
    answer = server.ask(query, database)
    if answer.error:
        raise LiveError(f"PostgreSQL: {answer.error}")
    return [tuple(map(_text, row)) for row in answer.rows]


def _text(hexed: str) -> Text:
    return None if hexed == "NULL" else bytes.fromhex(hexed).decode()
