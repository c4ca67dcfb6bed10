"""What an error of a database asks for, in one vocabulary for reads and writes. Pure.

Jobs know two kinds: a question that is repeated later (DatabaseAway), and one that is given up
(DatabaseRefused). A sink looks at the cause: it also tells a row that waits for another one from a
table that can't take it.
"""

from __future__ import annotations

import re
from enum import Enum


class Cause(Enum):
    """What an error asks for."""

    AWAY = "away"
    """Another connection, later: this one has ended, or the server ends."""
    SERVER = "server"
    """The same, once the server is repaired: a login, a database that is missing, a fault inside
    it. A stream waits for that; a job ends with the line."""
    READ_ONLY = "read only"
    """Another connection, later: none of the server's tables can be written, whichever it is."""
    LATER = "later"
    """The same again, later: a lock, a deadlock, a full disk, a limit of time or memory."""
    OTHER_ROW = "other row"
    """The same again, later: a foreign key's row of another table is not there yet, or still."""
    UNIQUE = "unique"
    """A row with the same unique values is there."""
    REFUSED = "refused"
    """It can't be done, however often it is tried."""


class DatabaseError(Exception):
    """An error of a database: one line."""

    def __init__(self, text: str, cause: Cause) -> None:
        super().__init__(" ".join(text.split()))
        self.cause = cause

    @property
    def ends_session(self) -> bool:
        """Whether the next call needs another connection."""
        return self.cause in (Cause.AWAY, Cause.SERVER, Cause.READ_ONLY)


class DatabaseAway(DatabaseError):
    """No answer now: no connection, a limit of time or of rights that may pass. Ask again later."""

    def __init__(self, text: str, cause: Cause = Cause.AWAY) -> None:
        super().__init__(text, cause)


class DatabaseRefused(DatabaseError):
    """The query can't be answered, however often it is repeated: one line that says why."""

    def __init__(self, text: str, cause: Cause = Cause.REFUSED) -> None:
        super().__init__(text, cause)


def database_error(cause: Cause, text: str) -> DatabaseError:
    """The error of a cause, of the kind that jobs know."""
    if cause in (Cause.AWAY, Cause.READ_ONLY, Cause.LATER, Cause.OTHER_ROW):
        return DatabaseAway(text, cause)
    return DatabaseRefused(text, cause)


MYSQL_FULL = frozenset((1021, 1030, 1037, 1038, 1041, 1114, 1135))
"""What MySQL or MariaDB lacks for a while: room on a disk or in a table, memory, threads."""

_FULL = re.compile(
    r"(?i)\b(errcode|errno|got error):? 28(?![0-9])|no space left on device|the table '.*' is full",
    re.ASCII,
)

_MYSQL = {
    Cause.UNIQUE: {1062, 1586},
    Cause.OTHER_ROW: {1216, 1217, 1451, 1452},
    # Locks, disks, memory, statements that were killed.
    Cause.LATER: MYSQL_FULL
    | {1180, 1205, 1206, 1213, 1317, 1412, 1568, 1969, 3024, 3058, 3101, 3572, 3675},
    # Logins; 1105 is an error that has no number of its own.
    Cause.SERVER: {1045, 1105, 1129, 1130, 1698},
    Cause.READ_ONLY: {1290, 1792, 1836},
    Cause.AWAY: {1040, 1042, 1043, 1053, 1077, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1203,
                 1226, 1927, 3032, 3168, 4031},
}  # fmt: skip
_CLIENT = range(2000, 3000)
"""Numbers of the client's own: connections that are not to be had, or end."""

_POSTGRESQL = {
    "23505": Cause.UNIQUE,
    **dict.fromkeys(("23503", "23001"), Cause.OTHER_ROW),  # the second from PostgreSQL 18 on
    **dict.fromkeys(("08", "57P", "53300"), Cause.AWAY),
    # Sessions that the server ends: one that is idle amid a transaction, or one that takes long.
    **dict.fromkeys(("25P03", "25P04"), Cause.AWAY),
    "25006": Cause.READ_ONLY,
    **dict.fromkeys(("28", "3D", "55", "XX"), Cause.SERVER),
    **dict.fromkeys(("40", "53", "55006", "55P03", "57", "58"), Cause.LATER),
}
"""By the beginning of SQLSTATE; the longest decides."""


def tells_of_full_disk(text: str) -> bool:
    """Whether an error, whatever its number, says that a file can't be written for want of room."""
    return _FULL.search(text) is not None


def cause_of_mysql(number: int | None, text: str) -> Cause:
    """By the number of the server or client; None and 0: the client had none to tell."""
    if not number or number in _CLIENT:
        return Cause.LATER if tells_of_full_disk(text) else Cause.AWAY
    found = (cause for cause, numbers in _MYSQL.items() if number in numbers)
    return next(found, Cause.LATER if tells_of_full_disk(text) else Cause.REFUSED)


def cause_of_postgresql(state: str | None, of_connection: bool) -> Cause:
    """By SQLSTATE; without one the client tells whether the error is of the connection."""
    if state is None:
        return Cause.AWAY if of_connection else Cause.REFUSED
    for length in (5, 3, 2):
        if (cause := _POSTGRESQL.get(state[:length])) is not None:
            return cause
    return Cause.REFUSED
