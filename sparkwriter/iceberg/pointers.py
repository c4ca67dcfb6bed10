"""The pointers of a JDBC catalog: one row a table, so that several move in one SQL transaction.

The connection is made as the catalog makes its own, with its driver and its properties. What of
Iceberg's classes is used here is not public; ``binlogd check-config`` tries it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import structlog
from py4j.protocol import Py4JError

from changes.model.errors import SinkAway
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.session.java_api import Java, JavaFailure, java_class, reason

log: Any = structlog.get_logger(__name__)

_MOVE = (
    "UPDATE iceberg_tables SET metadata_location = ? , previous_metadata_location = ?"
    " WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?"
)
_NO_VIEW = " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
"""Behind it, where the catalog's table says what a row is of."""


_LOCKED = frozenset({"55P03", "57014"})
"""PostgreSQL's SQLSTATE where a lock was waited for in vain: by its own bound, or by ours."""
_LOCK_WAIT = "1205"
"""MySQL's and MariaDB's number for the same by their own bound."""
_ROLLED_BACK, _UNKNOWN = "40", "40003"
"""SQLSTATE's class of what was taken back for another transaction, and the one in it that does not
know."""


class Pointer(NamedTuple):
    """A table's metadata as the catalog shows it, and what it is to show, in a file of its own."""

    table: LakeTable
    base: Java
    made: Java
    place: str


def written(table: LakeTable, base: Java, made: Java) -> Pointer:
    """Write the metadata into a file that no pointer names yet. Raises one of JavaFailure."""
    version = int(table.operations.currentVersion()) + 1
    place = _invoke(table, table.operations, "writeNewMetadata", made, version)
    return Pointer(table, base, made, str(place))


def move(connection: Java, pointer: Pointer, wait_s: float) -> bool:
    """Within the connection's transaction; False where the table no longer shows its base, or
    another transaction was faster with it.

    ``wait_s``: how long another's lock is waited for. Raises one of JavaFailure.
    """
    operations = pointer.table.operations
    version = str(_field(pointer.table, operations, "schemaVersion").name())
    name = _field(pointer.table, operations, "tableIdentifier")
    before = str(pointer.base.metadataFileLocation())
    values = (
        pointer.place,
        before,
        str(_field(pointer.table, operations, "catalogName")),
        str(name.namespace().toString()),
        str(name.name()),
        before,
    )
    statement = connection.prepareStatement(_MOVE if version == "V0" else _MOVE + _NO_VIEW)
    try:
        if wait_s < math.inf:
            statement.setQueryTimeout(max(1, math.ceil(wait_s)))
        for at, value in enumerate(values, start=1):
            statement.setString(at, value)
        return bool(statement.executeUpdate() == 1)
    except JavaFailure as error:
        if was_rolled_back(error):
            return False
        raise
    finally:
        statement.close()


def was_rolled_back(error: BaseException) -> bool:
    """Whether the server has taken the transaction back for another one's sake: a deadlock, or a
    change that can't be put in order with it."""
    state = _sql(error, "getSQLState")
    return state.startswith(_ROLLED_BACK) and state != _UNKNOWN


def is_locked(error: BaseException) -> bool:
    """Whether a row's lock was waited for in vain. SQLite has one for all: never there."""
    timed_out = java_class(error) == "java.sql.SQLTimeoutException"
    locked = _sql(error, "getSQLState") in _LOCKED
    return timed_out or locked or _sql(error, "getErrorCode") == _LOCK_WAIT


def _sql(error: BaseException, what: str) -> str:
    """What a driver's exception tells beside its message; empty where it is none of a driver's."""
    try:
        return str(getattr(error.java_exception, what)() or "")  # type: ignore[attr-defined]
    except (AttributeError, Py4JError):
        return ""


@contextmanager
def transaction(table: LakeTable) -> Iterator[Java]:
    """A connection to the table's catalog; what is not committed is taken back. Raises SinkAway
    where there is none, and one of JavaFailure."""
    try:
        pool = _field(table, table.operations, "connections")
        connection = _invoke(table, pool, "newClient")
    except JavaFailure as error:
        raise SinkAway(f"no connection to the catalog: {reason(error)}") from error
    try:
        connection.setAutoCommit(False)
        yield connection
    except BaseException:
        _quietly(connection.rollback)
        raise
    finally:
        _quietly(connection.close)


def moved(pointer: Pointer) -> None:
    """What Iceberg does behind its own commit: the next look asks the catalog, and metadata that
    the table no longer remembers goes."""
    table = pointer.table
    try:
        _invoke(table, table.operations, "requestRefresh")
        io = table.operations.io()
        util = table.jvm.org.apache.iceberg.CatalogUtil
        util.deleteRemovedMetadataFiles(io, pointer.base, pointer.made)
    except JavaFailure as error:
        log.warning("metadata_left_behind", reason=reason(error))


def _quietly(act: Any) -> None:
    """What it says does not change what has happened."""
    try:
        act()
    except JavaFailure as error:
        log.debug("connection_not_closed", reason=reason(error))


def _field(table: LakeTable, of: Java, name: str) -> Java:
    return table.jvm.org.apache.commons.lang3.reflect.FieldUtils.readField(of, name, True)


def _invoke(table: LakeTable, of: Java, name: str, *arguments: object) -> Java:
    given = table.jvm.java.util.ArrayList()
    for argument in arguments:
        given.add(argument)
    reflect = table.jvm.org.apache.commons.lang3.reflect.MethodUtils
    return reflect.invokeMethod(of, True, name, given.toArray())
