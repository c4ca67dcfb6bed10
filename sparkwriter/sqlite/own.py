"""Whether a table of the file is still the one that binlogd made.

Its columns have no type, so that no value is turned into another. Somebody else's table of the name
may have types, which do so (a text 007 becomes the number 7), collations, by which two keys are
one, other columns in between, or triggers that let a row go.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

from sparkwriter.ledgered.made import Made
from sparkwriter.ledgered.sqlite_ledger import quote

_NAME = r"""(?:"(?:[^"]|"")*"|'(?:[^']|'')*'|`(?:[^`]|``)*`|\[[^\]]*\]|[^\s"'`\[]+)"""
_AFTER = re.compile(rf"CREATE\s+TRIGGER\s+{_NAME}(?:\s*\.\s*{_NAME})?\s+AFTER\s", re.IGNORECASE)


def statement(name: str, made: Made) -> str:
    """The statement that makes a table."""
    columns = ", ".join(quote(field.name) for field in made.fields)
    return f"CREATE TABLE {quote(name)} ({columns})"


def unlike(connection: sqlite3.Connection, name: str, made: Made) -> Iterator[str]:
    """Why the table can't be written. One line each; nothing where there is none."""
    found = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE tbl_name = ? AND type IN ('table',"
        " 'trigger')",
        (name,),
    ).fetchall()
    for type_, its_name, sql in found:
        if type_ == "table" and sql != statement(name, made):
            yield (
                "its table was made or altered by somebody else, and may store other values than "
                "are written: binlogd tables rebuild makes one of binlogd's own"
            )
        elif type_ == "trigger" and not _AFTER.match(sql):
            yield (
                f"its trigger {its_name} runs BEFORE a row is written, and may let it go: make it "
                "AFTER, or drop it"
            )
