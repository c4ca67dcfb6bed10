"""Asks a collector's source what it keeps, by one connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from collector.connector.config import Flavor, publication_of, slot_name
from collector.watch import mysql, postgres, publication
from collector.watch.kept import KeptLog, Offset
from collector.wiring import Wiring
from databases.base.database import Database
from databases.postgres.session import timeline_history


class SourceWatch:
    """One thread's at a time. What asks the server raises DatabaseAway, DatabaseRefused."""

    def __init__(self, wiring: Wiring) -> None:
        """Connects at the first question."""
        self._wiring = wiring
        self._database: Database | None = None
        self._flavor: Flavor | None = wiring.section.others_kind

    @property
    def flavor(self) -> Flavor | None:
        """What the server is; None until it has answered."""
        return self._flavor

    def look(
        self,
        offset: Callable[[], Offset | None],
        known_offset: Offset | None,
        identity: str,
        by_file: bool,
    ) -> KeptLog:
        """``known_offset``: as it was before the server is queried; ``offset`` reads it again.
        ``identity``, ``by_file``: as the position was found before (see ``mysql.look``)."""
        database = self._open()
        if database is None:
            return KeptLog()
        if self._flavor is None:
            self._flavor = self._ask_flavor(database)
        if database.kind == "postgresql":
            slot = slot_name(self._wiring.name, self._wiring.section)
            return postgres.look(database.ask, slot, offset, identity, self._history)
        if known_offset is None:
            return KeptLog()
        return mysql.look(database.ask, known_offset, identity, by_file)

    def identity(self) -> str:
        """Which server it is now; empty where that is unknown."""
        database = self._open()
        if database is None:
            return ""
        if database.kind == "postgresql":
            return postgres.identity_now(database.ask)
        return mysql.identity_of(database.ask)

    def publish(
        self, patterns: Sequence[str], late: Callable[[Sequence[str]], None] | None
    ) -> dict[str, str]:
        """Have the publication of PostgreSQL as it should be (see ``publication.keep``); why each
        table that it lacks, lacks."""
        database, wiring = self._open(), self._wiring
        if database is None or database.kind != "postgresql" or wiring.database is None:
            return {}
        configured = wiring.database.publication
        name = publication_of(wiring.name, wiring.section, configured)
        mistaken = publication.without_keys(database, patterns)
        if mistaken and late is not None:
            late(list(mistaken))  # once they are right
        if configured is not None:
            return publication.lacking_lines(database, name, patterns) | mistaken
        return publication.keep(database, name, patterns, late) | mistaken

    def drop_slot(self, slot: str) -> bool:
        """Drop the slot of PostgreSQL, if it is there and nobody reads by it; whether it was."""
        database = self._open()
        if database is None or database.kind != "postgresql":
            return False
        found = database.ask(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            f"WHERE slot_name = '{slot}'"
        )
        return bool(found)

    def _history(self, timeline: int) -> str:
        return timeline_history(self._wiring.login(), timeline)

    def close(self) -> None:
        """End the connection."""
        if self._database is not None:
            self._database.close()

    def _open(self) -> Database | None:
        """None of a database that is no ``[database.NAME]``."""
        if self._database is None and self._wiring.database is not None:
            self._database = self._wiring.open_database()
        return self._database

    @staticmethod
    def _ask_flavor(database: Database) -> Flavor:
        if database.kind == "postgresql":
            return "postgresql"
        ((version,),) = database.ask("SELECT VERSION()")
        return "mariadb" if "mariadb" in str(version).lower() else "mysql"
