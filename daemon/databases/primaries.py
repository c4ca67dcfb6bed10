"""Primaries: a replica is read once its position shows that it has what its primary had."""

from __future__ import annotations

from daemon.config.config import Config
from daemon.databases.opening import open_database
from daemon.databases.port import Database, DatabaseRefused, Moment


class Primary:
    """The primary of a database that a job reads, which may be that database itself.

    One connection of its own for a replica's, opened at the first question. One thread's.
    """

    def __init__(self, config: Config, name: str, database: Database) -> None:
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

    def position(self) -> str:
        """What a read of the replica must have, to have all that is in the log now. Empty where the
        primary itself is read. Raises DatabaseRefused where it does not tell."""
        if self._primary is None:
            return ""
        return self._told(self._primary.moment())

    def shown(self, position: str) -> bool:
        """Whether what is read has all up to a position of ``position()``.

        Raises DatabaseRefused where positions can't be compared.
        """
        if self._primary is None or not position:
            return True
        wanted, here = _place(position), _place(self._told(self._read.moment()))
        if wanted[0] != here[0]:
            raise DatabaseRefused(
                f"database.{self._name}: its position is in another log ({here[0]}) than its "
                f"primary's ({wanted[0]}): it must replicate that server itself"
            )
        return here[1] >= wanted[1]

    def _told(self, moment: Moment) -> str:
        if moment.position is None:
            raise DatabaseRefused(
                f"database.{self._name} is a replica, and positions can't be read, so that nobody "
                "knows what it lacks: `binlogd check-config --connect` names the right"
            )
        return moment.position


def _place(position: str) -> tuple[str, tuple[int, int]]:
    """The log, and the place in it."""
    kind, server, *place = position.split(":")
    if kind == "lsn":
        return f"{kind}:{server}", (int(place[0]), 0)
    file, _, number = place[0].rpartition(".")
    return f"{kind}:{server}:{file}", (int(number), int(place[1]))
