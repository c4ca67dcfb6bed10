"""What a file of SQLite keeps beside its tables: of each target columns, marks, version.

One row a target, changed in the same transaction as the target's rows: that is the whole of exactly
once here.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from actors.contract.ports import LostRace
from changes.model import Mode, TableName, TargetName
from offsets.fence import Marks
from sparkwriter.kit.store import Absent, Existing
from sparkwriter.sql.ddl_plan import LakeField
from sparkwriter.sql.schema import LakeColumn, StoredTable

LEDGER = "__binlogd_targets"

_CREATE = f"""
CREATE TABLE IF NOT EXISTS {LEDGER} (
    target TEXT PRIMARY KEY, version INTEGER NOT NULL, marks TEXT NOT NULL, freed TEXT, made TEXT
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Made:
    """A table as the ledger describes it. The fields' ids only tell old ones from new."""

    fields: tuple[LakeField, ...]
    mode: Mode
    keys: tuple[str, ...]
    kept: tuple[str, ...] = ()
    differs: str | None = None
    source: TableName | None = None
    dropped: str | None = None
    rebuilt: str | None = None
    """The name under which it was filled, before it took its present one."""

    def text(self) -> str:
        """As the ledger keeps it."""
        return json.dumps(
            {
                "fields": [[field.name, field.type] for field in self.fields],
                "mode": self.mode.value,
                "keys": self.keys,
                "kept": self.kept,
                "differs": self.differs,
                "source": self.source,
                "dropped": self.dropped,
                "rebuilt": self.rebuilt,
            },
            ensure_ascii=False,
        )

    @classmethod
    def parse(cls, text: str) -> Made:
        """Read back what ``text`` wrote."""
        said: dict[str, Any] = json.loads(text)
        source = said["source"]
        return cls(
            tuple(LakeField(at, name, type_) for at, (name, type_) in enumerate(said["fields"])),
            Mode(said["mode"]),
            tuple(said["keys"]),
            tuple(said["kept"]),
            said["differs"],
            None if source is None else TableName(*source),
            said["dropped"],
            said["rebuilt"],
        )


Row = Existing[Made]


class Ledger:
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
        if text is None:
            return Absent(Marks.parse(marks))
        made = Made.parse(text)
        columns = tuple(LakeColumn(field.name, field.type) for field in made.fields)
        return Existing(
            target,
            made,
            StoredTable(columns, made.mode, made.keys),
            Marks.parse(marks),
            str(version),
            dropped=made.dropped,
            differs=made.differs,
            source=made.source,
        )

    def check(self, seen: Row) -> None:
        """Raise LostRace unless the target is as it was seen."""
        here = self.look(seen.target)
        version = None if isinstance(here, Absent) else here.version
        if version != seen.version:
            raise LostRace(f"version {seen.version} was seen, it is {version} meanwhile")

    def put(self, target: TargetName, marks: Marks, made: Made | None) -> str:
        """Have a target show marks, and a table or none. Gives its new version."""
        (version,) = self._connection.execute(
            f"INSERT INTO {LEDGER} (target, version, marks, made) VALUES (?, 1, ?, ?) ON CONFLICT"
            " DO UPDATE SET version = version + 1, marks = excluded.marks, made = excluded.made"
            " RETURNING version",
            (table_name(target), marks.text(), None if made is None else made.text()),
        ).fetchone()
        return str(version)

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
    return '"' + name.replace('"', '""') + '"'
