"""A handler that keeps rows and marks in a file of SQLite, in one transaction: exactly once."""

from __future__ import annotations

import pickle
import sqlite3
from typing import Any


def opened(context: Any) -> sqlite3.Connection:
    connection = sqlite3.connect(context.settings["file"], isolation_level=None)
    connection.execute("PRAGMA busy_timeout = 10000")
    for text in (
        "rows (target TEXT, key BLOB, row BLOB, version INTEGER, PRIMARY KEY (target, key))",
        "marks (target TEXT PRIMARY KEY, marks TEXT)",
        "calls (target TEXT, version INTEGER)",
    ):
        connection.execute(f"CREATE TABLE IF NOT EXISTS {text}")
    return connection


def apply(batch: Any, context: Any) -> None:
    connection = opened(context)
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO calls VALUES (?, ?)", (context.target, context.version))
        for part in batch:
            for at, row in enumerate(part.to_pylist()):
                put(connection, context, at, row)
        note(connection, context)


def put(connection: sqlite3.Connection, context: Any, at: int, row: dict[str, Any]) -> None:
    if context.mode == "append":
        key = pickle.dumps((row["_partition"], row["_offset"], row["_index"]))
    else:
        op = row.pop("_op")
        key = pickle.dumps(tuple(row[name] for name in context.keys))
        connection.execute("DELETE FROM rows WHERE target = ? AND key = ?", (context.target, key))
        if op == "D":
            return
    values = (context.target, key, pickle.dumps(row), context.version)
    connection.execute("INSERT INTO rows VALUES (?, ?, ?, ?)", values)


def statement(context: Any, kind: str, to: str | None) -> None:
    connection = opened(context)
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if kind == "rename":
            connection.execute("UPDATE rows SET target = ? WHERE target = ?", (to, context.target))
        else:
            connection.execute("DELETE FROM rows WHERE target = ?", (context.target,))
        note(connection, context)


def note(connection: sqlite3.Connection, context: Any) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO marks VALUES (?, ?)", (context.target, context.marks)
    )
