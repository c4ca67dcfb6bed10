"""What the sink remembers of a handler's targets, in a file of SQLite: marks, columns, generations.

The ledger is that of the SQLite sink; a handler's rows are elsewhere.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from actors.runtime.files import make_private_file, make_private_folder
from changes.model.errors import LostRace, SinkUnavailable
from changes.model.model import TargetName
from sparkwriter.kit.marks_table.sqlite_ledger import SqliteLedger, table_name
from sparkwriter.kit.marks_table.table_description import Entry, Forgets, Frees, Row, Shows
from sparkwriter.kit.store import Absent

BUSY_S = 10.0

_GENERATIONS = """
CREATE TABLE IF NOT EXISTS __binlogd_generations (
    target TEXT PRIMARY KEY, generation INTEGER NOT NULL
) STRICT
"""


class HandlerLedger:
    """One writer's connection to the file. Raises SinkUnavailable."""

    def __init__(self, folder: Path) -> None:
        path = folder / "ledger.db"
        try:
            make_private_folder(folder)
            if not path.exists():
                make_private_file(path)
            self._connection = sqlite3.connect(
                path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = wal")
            self._connection.execute("PRAGMA synchronous = full")
            self._connection.execute(_GENERATIONS)
            self._ledger = SqliteLedger(self._connection)
        except (OSError, sqlite3.Error) as error:
            raise SinkUnavailable(f"{path}: {error}") from error

    def look(self, target: TargetName) -> Row | Absent:
        """What it says of a target."""
        return self._ledger.look(target)

    def freed(self, target: TargetName) -> str | None:
        """See ``TableStore.freed``."""
        return self._ledger.freed(target)

    def check(self, seen: Sequence[Row], absent: TargetName | None) -> None:
        """Raise LostRace where a target is not as it was seen."""
        for row in seen:
            self._ledger.check(row)
        if absent is not None and not isinstance(self._ledger.look(absent), Absent):
            raise LostRace(f"{absent} is there meanwhile")

    def put(
        self,
        entries: Sequence[Entry],
        seen: Sequence[Row],
        absent: TargetName | None,
        anew: Sequence[TargetName],
    ) -> str:
        """All entries in one transaction; targets in ``anew`` get a higher generation.
        Returns the version of the first entry's target. Raises LostRace."""
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self.check(seen, absent)
            for target in anew:
                self._raise_generation(target)
            for entry in entries:
                match entry:
                    case Shows(target, marks, made):
                        self._ledger.put(target, marks, made)
                    case Forgets(target):
                        self._ledger.forget(target)
                    case Frees(target, renaming):
                        self._ledger.free(target, renaming)
            return self._ledger.version(entries[0].target)

    def generation(self, target: TargetName) -> int:
        """How often the target was started again."""
        found = self._connection.execute(
            "SELECT generation FROM __binlogd_generations WHERE target = ?", (table_name(target),)
        ).fetchone()
        return 0 if found is None else int(found[0])

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def _raise_generation(self, target: TargetName) -> None:
        self._connection.execute(
            "INSERT INTO __binlogd_generations VALUES (?, 1)"
            " ON CONFLICT DO UPDATE SET generation = generation + 1",
            (table_name(target),),
        )
