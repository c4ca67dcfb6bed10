"""Where the log of MySQL or MariaDB ends, and when all of it is visible to reads.

A commit is in the binary log before reads see it. MySQL tells which transactions are between by
``@@GLOBAL.gtid_owned``: each is in it before it is in the log, and until it is visible. MariaDB
tells in ``Binlog_snapshot_position`` up to where all is visible.
"""

from __future__ import annotations

from collections.abc import Callable

from databases.base.errors import DatabaseRefused
from databases.base.log_end import (
    BinlogEnd,
    LogEnd,
    NoEnd,
    by_domain,
    file_number,
    highest,
    owned,
)

Ask = Callable[[str], list[tuple[object, ...]]]


def log_end(ask: Ask, mariadb: bool, position: Callable[[], str | None]) -> LogEnd:
    """``position``: where the log ends, as ``Moment`` has it."""
    replicates = _replicates(ask, mariadb)
    if why := _commits_otherwise(ask, mariadb):
        return NoEnd(why)
    if mariadb:
        ((server, last),) = ask("SELECT @@server_id, @@GLOBAL.gtid_binlog_pos")
        file, pos = _place(position())
        if not file:
            return NoEnd("the end of its log can't be read: GRANT BINLOG MONITOR")
        found = by_domain(str(last))
        return BinlogEnd(
            str(server), found, file, pos, mariadb=True, executed=str(last), replicates=replicates
        )
    ((server, mode),) = ask("SELECT @@GLOBAL.server_uuid, @@GLOBAL.gtid_mode")
    if mode != "ON":
        return NoEnd("gtid_mode is not ON")
    uuid = str(server).lower()
    # In this order: what ends between is in the second one.
    committing = tuple(owned(_text(ask, "gtid_owned")))
    executed = _text(ask, "gtid_executed")
    last = {"": highest(uuid, executed, committing)}
    file, pos = _place(position())
    return BinlogEnd(uuid, last, file, pos, committing, executed=executed, replicates=replicates)


def shows(ask: Ask, end: LogEnd) -> bool:
    """Whether reads have all that was in the log at its end then."""
    if not isinstance(end, BinlogEnd):
        return False
    if not end.mariadb:
        ((server,),) = ask("SELECT @@GLOBAL.server_uuid")
        left = set(owned(_text(ask, "gtid_owned"))) & set(end.committing)
        return str(server).lower() == end.server and not left
    ((server,),) = ask("SELECT @@server_id")
    found = _values(ask, "STATUS LIKE 'Binlog_snapshot_%'")
    here = file_number(found.get("Binlog_snapshot_file", ""))
    then = file_number(end.file)
    if str(server) != end.server or here is None or then is None or here[0] != then[0]:
        return False
    return (here[1], int(found["Binlog_snapshot_position"])) >= (then[1], end.pos)


def _text(ask: Ask, variable: str) -> str:
    return str(ask(f"SELECT @@GLOBAL.{variable}")[0][0])


def _values(ask: Ask, what: str) -> dict[str, str]:
    return {str(name): str(value) for name, value in ask(f"SHOW GLOBAL {what}")}


def _place(position: str | None) -> tuple[str, int]:
    if position is None:
        return "", 0
    *_, file, pos = position.split(":")
    return file, int(pos)


def _replicates(ask: Ask, mariadb: bool) -> str:
    """A server that applies another one's changes may lack some that the stream has."""
    try:
        rows = ask("SHOW ALL SLAVES STATUS" if mariadb else "SHOW REPLICA STATUS")
    except DatabaseRefused:
        right = "REPLICA MONITOR" if mariadb else "REPLICATION CLIENT"
        return f"whether it replicates another server can't be read: GRANT {right}"
    if rows:
        return "it replicates another server"
    cluster = _values(ask, "VARIABLES LIKE 'wsrep_on'")
    return "it is one of a cluster" if cluster.get("wsrep_on", "OFF") != "OFF" else ""


def _commits_otherwise(ask: Ask, mariadb: bool) -> str:
    """What becomes visible behind the position that tells of it."""
    # What is only prepared is in the log already, and nobody sees it.
    counts = _values(ask, "STATUS LIKE 'Com_xa_%'")
    if not counts or any(count != "0" for count in counts.values()):
        return "it has XA transactions"
    if mariadb and str(ask("SELECT @@GLOBAL.binlog_optimize_thread_scheduling")[0][0]) != "1":
        return "binlog_optimize_thread_scheduling is off"
    return ""
