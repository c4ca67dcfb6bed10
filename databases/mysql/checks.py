"""What MySQL and MariaDB must be set to, and their position in the binary log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from changes.sql.quoted import quoted
from databases.base.errors import DatabaseRefused
from databases.base.findings import Finding, of_clock, problem, warning
from databases.base.section import DatabaseSection

Ask = Callable[[str], list[tuple[object, ...]]]

_OLDEST = {True: (10, 3), False: (5, 7)}
"""By whether it is MariaDB."""
_SETTINGS = [
    "log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata",
    "binlog_row_value_options", "read_only",
]  # fmt: skip


class CheckedServer(NamedTuple):
    """A server to be checked. ``ahead_us``: of this machine's clock."""

    ask: Ask
    mariadb: bool
    section: DatabaseSection
    ahead_us: int


def grant(right: str, where: str, user: str, host: str = "%") -> str:
    """The statement that gives a right."""
    return f"GRANT {right} ON {where} TO {quoted(user)}@{quoted(host)}"


def of_server(asked: CheckedServer) -> Iterator[Finding]:
    """The server's version, log, role and clock."""
    yield from of_version(asked)
    yield from of_clock(asked.ahead_us)
    settings = settings_of(asked.ask, _SETTINGS)
    yield from _of_role(asked, settings)
    if asked.section.role == "primary":
        yield from of_log(settings)
    if position(asked.ask, asked.mariadb, asked.section.role) is None:
        right = "BINLOG MONITOR" if asked.mariadb else "REPLICATION CLIENT"
        if asked.mariadb and asked.section.role == "replica":
            right = "REPLICA MONITOR"
        given = grant(right, "*.*", asked.section.user)
        yield warning("its position in the log can't be read, times are used instead", given)


def position(ask: Ask, mariadb: bool, role: str) -> str | None:
    """The end of the binary log that the stream's reader reads; None where it does not tell.

    Of a replica it is the primary's, up to which it has applied everything.
    """
    for sql, file, offset, server in _POSITIONS[role]:
        try:
            rows = ask(sql)
        except DatabaseRefused:
            continue  # a word of other versions, or no right to it
        if rows and len(rows[0]) > max(file, offset, server or 0) and rows[0][file]:
            id_ = ask("SELECT @@server_id")[0][0] if server is None else rows[0][server]
            return f"mysql:{id_}:{rows[0][file]}:{rows[0][offset]}"
    return None


_POSITIONS = {
    "primary": (("SHOW BINARY LOG STATUS", 0, 1, None), ("SHOW MASTER STATUS", 0, 1, None)),
    "replica": (("SHOW REPLICA STATUS", 9, 21, 39), ("SHOW SLAVE STATUS", 9, 21, 39)),
}
"""Statements, and the places of file, offset and the log's server in their rows: of a replica those
that the SQL thread has executed."""


def settings_of(ask: Ask, names: Iterable[str]) -> dict[str, str]:
    """The server's settings of these names, in capitals; those that it knows."""
    listed = ", ".join(map(quoted, names))
    rows = ask(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})")
    return {str(name): str(value).upper() for name, value in rows}


def of_version(asked: CheckedServer) -> Iterator[Finding]:
    """Whether it is new enough."""
    ((text,),) = asked.ask("SELECT VERSION()")
    found = re.match(r"(?:5\.5\.5-)?([0-9]+)\.([0-9]+)", str(text))
    oldest = _OLDEST[asked.mariadb]
    if found is None or (int(found[1]), int(found[2])) < oldest:
        name = "MariaDB" if asked.mariadb else "MySQL"
        yield problem(f"version {text}: {name} {oldest[0]}.{oldest[1]} or newer is required")


def of_log(settings: Mapping[str, str]) -> Iterator[Finding]:
    """Whether its log has all that a reader needs."""
    if settings.get("log_bin") != "ON":
        yield problem("log_bin is OFF: there is no change stream; start it with --log-bin")
        return
    if settings.get("binlog_format", "ROW") != "ROW":
        yield problem(
            f"binlog_format is {settings['binlog_format']}, and the stream needs rows",
            "SET GLOBAL binlog_format = 'ROW'",
        )
    if settings.get("binlog_row_image", "FULL") != "FULL":
        yield warning(
            f"binlog_row_image is {settings['binlog_row_image']}: a change carries a part of its"
            " row",
            "SET GLOBAL binlog_row_image = 'FULL'",
        )
    if "PARTIAL_JSON" in settings.get("binlog_row_value_options", ""):
        yield problem(
            "binlog_row_value_options is PARTIAL_JSON: an update carries a part of a JSON document,"
            " and readers of the log leave it out or fail",
            "SET GLOBAL binlog_row_value_options = ''",
        )
    if settings.get("binlog_row_metadata", "FULL") != "FULL":
        yield warning(
            f"binlog_row_metadata is {settings['binlog_row_metadata']}: readers know columns from"
            " their own history alone",
            "SET GLOBAL binlog_row_metadata = 'FULL'",
        )


def replication(ask: Ask) -> list[tuple[object, ...]] | None:
    """What it replicates, as ``SHOW REPLICA STATUS`` has it; None where it does not tell."""
    for sql in ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS"):
        try:
            return ask(sql)
        except DatabaseRefused:
            continue  # a word of other versions, or no right to it
    return None


def _of_role(asked: CheckedServer, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Whether it is what ``role`` says, as far as it tells."""
    threads = replication(asked.ask)
    if asked.section.role == "replica":
        if threads == []:
            yield problem('role is "replica", but it replicates nothing: role = "primary"')
        elif threads and (str(threads[0][10]), str(threads[0][11])) != ("Yes", "Yes"):
            yield problem("its replication has stopped", "START REPLICA")
        elif threads is None:
            right = "REPLICA MONITOR" if asked.mariadb else "REPLICATION CLIENT"
            given = grant(right, "*.*", asked.section.user)
            yield problem("whether it replicates can't be read", given)
    elif threads:
        yield problem(f'role is "primary", but it replicates {threads[0][1]}: role = "replica"')
    elif settings.get("read_only") == "ON":
        yield warning('role is "primary", and read_only is ON')
