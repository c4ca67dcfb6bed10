"""Which failed commits let their files go: a wrong yes would take them from under a table."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from sparkwriter.iceberg.publish import never_lands, why

ICEBERG = "org.apache.iceberg.exceptions."
REFUSED = ICEBERG + "CommitFailedException"
UNKNOWN = ICEBERG + "CommitStateUnknownException"
STORAGE = ICEBERG + "RuntimeIOException"
SQL = "org.apache.iceberg.jdbc.UncheckedSQLException"


class Thrown:
    """A Java exception of these classes, the outermost first."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def getClass(self) -> Thrown:
        """Java's."""
        return self

    def getName(self) -> str:
        """Java's."""
        return self.names[0]

    def getSimpleName(self) -> str:
        """Java's."""
        return self.names[0].rpartition(".")[2]

    def getMessage(self) -> str:
        """Java's."""
        return "as it is"

    def getCause(self) -> Thrown | None:
        """Java's."""
        return Thrown(*self.names[1:]) if self.names[1:] else None


class Failed(Exception):
    """As pyspark raises it, with Java's exception behind it."""

    def __init__(self, text: str, *names: str) -> None:
        super().__init__(text)
        self._origin = Thrown(*names)


ARGUMENT = "java.lang.IllegalArgumentException"
UNSORTED = "Expected sorted"
FULL = "[SQLITE_FULL] Insertion failed because database is full"
JSON = "Failed to write json to file: /w/t/metadata/1.metadata.json"


@pytest.mark.parametrize(
    "error",
    [
        Failed("main moved", REFUSED),
        Failed(f"{STORAGE}: {JSON}", STORAGE, "java.io.IOException"),
        Failed("Failed to create file: /w/t/metadata/1.metadata.json", STORAGE),
        Failed(f"Unknown failure … {FULL}", SQL, "org.sqlite.SQLiteException"),
        Failed("[SQLITE_READONLY_DBMOVED] …", SQL, "org.sqlite.SQLiteException"),
        Failed(f"[BUG] {UNSORTED} snapshot log entries.", ARGUMENT),
        Failed("Invalid update timestamp 1: before last snapshot log entry at 2", ARGUMENT),
    ],
)
def test_what_surely_did_not_land(error: Exception) -> None:
    """The catalog said no, the file it would name could not be written, SQLite took nothing, or
    Iceberg made no metadata."""
    assert never_lands(error)


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError(f"connection reset while … {FULL} {JSON}"),
        Failed("read timed out", ICEBERG + "RESTException", "java.net.SocketTimeoutException"),
        Failed("no word", UNKNOWN),
        Failed(f"{JSON} {FULL}", UNKNOWN, STORAGE),
        Failed(f"{FULL}", REFUSED, UNKNOWN),
        Failed(f"{UNSORTED} snapshot log entries.", ICEBERG + "ServiceFailureException"),
        Failed(f"{UNSORTED} snapshot log entries.", UNKNOWN, ARGUMENT),
        Failed("I/O error", SQL, "org.sqlite.SQLiteException"),
        Failed("[SQLITE_IOERR_FSYNC] …", SQL, "org.sqlite.SQLiteException"),
        Failed("connection to the database broke", SQL, "org.postgresql.util.PSQLException"),
    ],
)
def test_what_may_land_yet(error: Exception) -> None:
    """No reply, one that does not know, a sync that failed behind a write, a database far away."""
    assert not never_lands(error)


def test_a_clock_behind_is_named() -> None:
    """Iceberg's own words speak of a bug."""
    behind = Failed(f"[BUG] {UNSORTED} snapshot log entries.", ARGUMENT)
    assert why(behind).startswith("this machine's clock stands before the table's last commit")
    assert why(behind).endswith("(IllegalArgumentException: as it is)")
    assert why(Failed("main moved", REFUSED)) == "CommitFailedException: as it is"
