"""Detects a CREATE TABLE that Debezium took for nothing: it knows a table of that name.

Debezium's history of the schema does not say that ``ALTER TABLE t RENAME TO u`` took the name
``t`` away (``RENAME TABLE`` does). A connector that starts again so knows ``t`` still, passes over
a later CREATE TABLE of it, and reads the new table's rows by the former table's columns. The
statement's record has no ``tableChanges`` then. It has none either where the connector sends it a
second time, and where MySQL logs a CREATE TABLE IF NOT EXISTS of a table that is there (MariaDB
logs none).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from changes.model.model import Ddl

_GAP = r"(?:\s|/\*.*?\*/|--\s[^\n]*\n|#[^\n]*\n)"
_CREATES = re.compile(
    rf"{_GAP}*CREATE{_GAP}+TABLE{_GAP}+(IF{_GAP}+NOT{_GAP}+EXISTS\b)?",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_CONNECTORS = frozenset(("mysql", "mariadb"))
_PASSED_OVER = (
    "CREATE TABLE that Debezium passed over, since it knows a former table of that name, renamed "
    "away by ALTER TABLE: it reads the new rows by the former columns, until its history of the "
    "schema is rebuilt (binlogd collector reset, which loads the tables),"
)
_MAYBE = (
    "CREATE TABLE that Debezium passed over: it is sent again, or the table was there before; else "
    "its rows are read by the columns of a former table of that name, renamed away by ALTER TABLE"
)


def is_ignored_create(connector: str | None, ddl: str, changes: bytes) -> bool:
    """Whether a record of the stream is such a statement; ``changes``: its ``tableChanges``."""
    if connector not in _CONNECTORS or b"".join(changes.split()) != b"[]":
        return False
    return creates(ddl)


def creates(ddl: str) -> bool:
    """Whether it is a CREATE TABLE that replaces none."""
    return _CREATES.match(ddl) is not None


def not_followed(found: Sequence[Ddl], connector: str | None) -> tuple[Ddl, ...]:
    """Such a statement's parts: refused where the target's table was renamed away."""
    return tuple(ddl if ddl.refused else _doubtful(ddl, connector) for ddl in found)


def _doubtful(ddl: Ddl, connector: str | None) -> Ddl:
    created = _CREATES.match(ddl.sql)
    optional = created is not None and bool(created[1]) and connector == "mysql"
    return replace(ddl, unread=_MAYBE, refused_if_gone=_PASSED_OVER, unless_stored=optional)
