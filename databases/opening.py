"""Opens the database of a section, or of a table's schema in a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from databases.base.database import Database
from databases.base.errors import DatabaseRefused
from databases.base.log_end import LogEnd, NoEnd
from databases.base.port import Moment
from databases.base.section import DatabaseSection
from databases.base.url import Login
from settings.rotation import SecretSettings, current_password


class Databases(SecretSettings, Protocol):
    """What is read of a configuration."""

    @property
    def database(self) -> Mapping[str, DatabaseSection]:
        """By their names."""
        ...


Open = Callable[[str, DatabaseSection, Callable[[], Login]], Database]
"""Of what messages call it, the section, and what gives its login."""


# A client is imported where a database is opened: a configuration that has none does without.


def _mysql(name: str, section: DatabaseSection, login: Callable[[], Login]) -> Database:
    from databases.mysql.database import MySqlDatabase

    return MySqlDatabase(name, section, login)


def _postgresql(name: str, section: DatabaseSection, login: Callable[[], Login]) -> Database:
    from databases.postgres.database import PostgreSqlDatabase

    return PostgreSqlDatabase(name, section, login)


ADAPTERS: Mapping[str, Open] = {"mysql": _mysql, "postgresql": _postgresql}
"""By the kind that a section's url names."""


def open_database(config: Databases, name: str) -> Database:
    """The database of ``[database.NAME]``. Connects at its first question. Any thread; what it
    gives is one thread's at a time. Each connection takes the password as its file has it then."""
    section = config.database[name]

    def login() -> Login:
        return section.login(current_password(config, name))

    return ADAPTERS[section.address.kind](f"database.{name}", section, login)


# Primaries: a replica is read once its position shows that it has what its primary had.


class Primary:
    """The primary of a database that a job reads, which may be that database itself.

    One connection of its own for a replica's, opened at the first question. One thread's.
    """

    def __init__(self, config: Databases, name: str, database: Database) -> None:
        """``database``: the open one of the section ``name``. It stays the caller's."""
        self._name, self._read = name, database
        section = config.database[name].primary
        self._primary = None if section is None else open_database(config, section)

    def close(self) -> None:
        """End the connection that is its own."""
        if self._primary is not None:
            self._primary.close()

    def moment(self) -> Moment:
        """The primary's now: all that was read before is at or below it."""
        return (self._primary or self._read).moment()

    def log_end(self) -> LogEnd:
        """Where the primary's log is now: all that was read before is in it."""
        return (self._primary or self._read).log_end()

    def shows(self, end: LogEnd) -> bool:
        """Whether reads see all that was in the primary's log at that end. What a replica lacks of
        that, ``shown`` tells of a position that comes after it."""
        if self._primary is not None:
            return not isinstance(end, NoEnd)
        return self._read.shows(end)

    def position(self) -> str:
        """What a read of the replica must have, to have all that is in the log now. Empty where the
        primary itself is read. Raises DatabaseRefused where it does not tell."""
        if self._primary is None:
            return ""
        return self._position_of(self._primary.moment())

    def shown(self, position: str) -> bool:
        """Whether what is read has all up to a position of ``position()``.

        Raises DatabaseRefused where positions can't be compared.
        """
        if self._primary is None or not position:
            return True
        wanted, here = _place(position), _place(self._position_of(self._read.moment()))
        if wanted[0] != here[0]:
            raise DatabaseRefused(
                f"database.{self._name}: its position is in another log ({here[0]}) than its "
                f"primary's ({wanted[0]}): it must replicate that server itself"
            )
        return here[1] >= wanted[1]

    def _position_of(self, moment: Moment) -> str:
        if moment.position is None:
            raise DatabaseRefused(
                f"database.{self._name} is a replica, and positions can't be read, so what it "
                "lacks is unknown: `binlogd check-config --connect` names the right"
            )
        return moment.position


def _place(position: str) -> tuple[str, tuple[int, int]]:
    """The log, and the place in it."""
    kind, server, *place = position.split(":")
    if kind == "lsn":
        return f"{kind}:{server}", (int(place[0]), 0)
    file, _, number = place[0].rpartition(".")
    return f"{kind}:{server}:{file}", (int(number), int(place[1]))
