"""The query for what a table stores of some keys. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from changes.model import KeyBound
from sparkwriter.sql.plan import between, quote
from sparkwriter.sql.schema import StoredTable

PLACE = "__binlogd_n"
"""Of a key that is looked up: which one it is."""


def stored_sql(
    stored: StoredTable,
    bounds: Sequence[KeyBound],
    columns: Sequence[str],
    table: str,
    source: str,
) -> str:
    """The query for what ``table`` has of the keys in ``source``, with their places.

    Both are quoted. ``bounds`` of the keys, ``columns`` are the table's.
    """
    within = {bound.column.lower(): bound for bound in bounds}
    keys = {key.lower() for key in stored.keys}
    terms = []
    for column in stored.columns:
        if (lower := column.name.lower()) in keys:
            bounded = between(column, within.get(lower))
            equals = "<=>" if bounded is None else "="
            terms.append(f"t.{quote(column.name)} {equals} s.{quote(column.name)}")
            terms += [] if bounded is None else [bounded]
    chosen = ", ".join([f"s.{quote(PLACE)}", *(f"t.{quote(name)}" for name in columns)])
    return (
        f"SELECT /*+ BROADCAST(s) */ {chosen}\nFROM {source} s\n"
        f"JOIN {table} t ON {' AND '.join(terms)}"
    )
