"""What a file of SQLite keeps beside its tables: of each target columns, marks, version.

One row a target, changed in the same transaction as the target's rows: that is the whole of exactly
once here.
"""

from __future__ import annotations

import sqlite3

from changes.model.errors import LostRace
from changes.model.model import TargetName
from changes.sql.quoted import quoted
from offsets.fence import Marks
from sparkwriter.kit.marks_table.table_description import Made, Row, entry_of
from sparkwriter.kit.store import Absent

LEDGER = "__binlogd_targets"

_CREATE = f"""
CREATE TABLE IF NOT EXISTS {LEDGER} (
    target TEXT PRIMARY KEY, version INTEGER NOT NULL, marks TEXT NOT NULL, freed TEXT, made TEXT
) STRICT
"""


class SqliteLedger:
    """The ledger of one open file. Used inside the transactions of its owner."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute(_CREATE)

    def look(self, target: TargetName) -> Row | Absent:
        """What it says of a target."""
        found = self._connection.execute(
            f"SELECT version, marks, made FROM {LEDGER} WHERE target = ?", (table_name(target),)
        ).fetchone()
        if found is None:
            return Absent()
        version, marks, text = found
        return entry_of(target, version, marks, text)

    def check(self, seen: Row) -> None:
        """Raise LostRace unless the target is as it was seen."""
        here = self.look(seen.target)
        version = None if isinstance(here, Absent) else here.version
        if version != seen.version:
            raise LostRace(f"version {seen.version} was seen, it is {version} meanwhile")

    def put(self, target: TargetName, marks: Marks, made: Made | None) -> None:
        """Have a target show marks, and a table or none."""
        self._connection.execute(
            f"INSERT INTO {LEDGER} (target, version, marks, made) VALUES (?, 1, ?, ?) ON CONFLICT"
            " DO UPDATE SET version = version + 1, marks = excluded.marks, made = excluded.made",
            (table_name(target), marks.text(), None if made is None else made.text()),
        )

    def version(self, target: TargetName) -> str:
        """The version that a target has, empty where the ledger has no row of it."""
        found = self._connection.execute(
            f"SELECT version FROM {LEDGER} WHERE target = ?", (table_name(target),)
        ).fetchone()
        return "" if found is None else str(found[0])

    def forget(self, target: TargetName) -> None:
        """Show nothing of a target."""
        self._connection.execute(f"DELETE FROM {LEDGER} WHERE target = ?", (table_name(target),))

    def free(self, target: TargetName, renaming: str) -> None:
        """Note which renaming may take the name."""
        self._connection.execute(
            f"INSERT INTO {LEDGER} (target, version, marks, freed) VALUES (?, 1, '{{}}', ?)"
            " ON CONFLICT DO UPDATE SET freed = excluded.freed",
            (table_name(target), renaming),
        )

    def freed(self, target: TargetName) -> str | None:
        """What ``free`` noted."""
        found = self._connection.execute(
            f"SELECT freed FROM {LEDGER} WHERE target = ?", (table_name(target),)
        ).fetchone()
        return None if found is None else found[0]


def table_name(target: TargetName) -> str:
    """The table's name in the file. Its first dot ends the namespace, whatever that holds."""
    namespace = target.namespace.replace("%", "%25").replace(".", "%2e")
    return f"{namespace}.{target.table}"


def quote(name: str) -> str:
    """A name as an identifier, whatever it holds."""
    return quoted(name, '"')
