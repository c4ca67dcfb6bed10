"""Tables of a user's own in the sink, made before the first row of a source's table comes.

What they are like is the fuzz's of ``tests/own_tables``; most of their columns hold what is sent,
or nearly every table would be refused by name and none be equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Protocol

from tests.live.schema import Table
from tests.own_tables.tables import Kind, OwnTable, Sent, own_table

SHARE = 0.5
"""Of the source's new tables, so many have a target that was there before."""
ODD = 0.02
"""How often a column is of any type, or has an attribute."""
TRIES = 30
"""A server refuses some tables: so many are tried."""
_WIDER = tuple(
    (re.compile(narrow), wide)
    for narrow, wide in (
        (r"\bsmallint\b", "integer"), (r"\bvarchar\(40\)", "text"), (r"\bjson\b", "text"),
        (r"(?:\"[^\"]*\"\.)?\"[^\"]*\"_\"[^\"]*\"_t\b", "text"), (r"\bSMALLINT\b", "INT"),
        (r"\bTINYINT\b(?!\(1\))", "INT"), (r"\b(?:INT|BIGINT) UNSIGNED\b", "BIGINT"),
        (r"\bENUM\('sad'(?:[^()'\"]|'[^']*')*\)", "LONGTEXT"),
        (r"\bVAR(CHAR|BINARY)\(40\)", r"VAR\1(400)"),
    )
)  # fmt: skip
"""Columns that take not every value that is sent, and what they are in four tables of five."""

_WORDS: Mapping[str, str] = {
    "tinyint(1)": "int", "tinyint": "int", "smallint": "int", "mediumint": "int", "int": "int",
    "integer": "int", "bigint": "long", "float": "float", "real": "float", "double": "double",
    "boolean": "boolean", "bit(1)": "boolean", "bit": "binary", "binary": "binary",
    "varbinary": "binary", "blob": "binary", "bytea": "binary", "date": "date",
    "datetime": "timestamp", "timestamptz": "timestamptz", "year": "int", "money": "decimal(38, 2)",
    "interval": "long",
}  # fmt: skip


class Maker(Protocol):
    """A sink that can have such tables."""

    kind: Kind

    def mark(self, name: str) -> str:
        """Quote a name."""

    def make_own(self, table: Table, own: OwnTable) -> str:
        """Make it; gives the error that the server answered, or nothing."""

    def catalogue(self) -> list[str]:
        """All types that a column can have there."""


def word(sql: str, zoned_timestamp: bool) -> str:
    """The lake's word for a source's type, as far as it matters here: text where it is unknown."""
    low = sql.lower()
    if found := re.match(r"(?:decimal|numeric)\((\d+),(\d+)\)", low):
        return f"decimal({found[1]}, {found[2]})"
    if low == "bigint unsigned":
        return "decimal(20, 0)"
    if low == "int unsigned":
        return "long"
    if low.startswith("timestamp") and low != "timestamptz":
        return "timestamptz" if zoned_timestamp else "timestamp"
    if low in _WORDS:
        return _WORDS[low]
    return _WORDS.get(re.split(r"[ (]", low)[0], "string") if not low.endswith("[]") else "string"


def make(rng: Random, table: Table, zoned_timestamp: bool, sink: Maker) -> bool:
    """Perhaps make one for a table of the source; whether there is one now."""
    if rng.random() > SHARE or not table.key:
        return False
    sent = [Sent(sink.mark(c.name), word(c.type.sql, zoned_timestamp)) for c in table.streamed]
    key = [sink.mark(name) for name in table.key]
    database, name = map(sink.mark, table.name)
    catalogue = sink.catalogue()
    is_narrow = rng.random() < 0.2
    for _ in range(TRIES):
        own = own_table(rng, sink.kind, database, name, sent, key, catalogue, ODD)
        if not sink.make_own(table, own if is_narrow else wider(own, sent)):
            return True
    return False


def wider(own: OwnTable, sent: Sequence[Sent]) -> OwnTable:
    """The same with columns that take all that is sent."""
    create = own.create
    for one in sent:
        if one.type == "timestamptz":
            create = create.replace(f"{one.name} DATETIME(6)", f"{one.name} TIMESTAMP(6)")
    for narrow, wide in _WIDER:
        create = narrow.sub(wide, create)
    return replace(own, before=(), create=create)
