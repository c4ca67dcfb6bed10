"""What MySQL and MariaDB lack to be followed: rights, the binary log, keys.

A row image that lacks columns is a problem here: Debezium writes NULL for what is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from changes.model.model import TableName
from changes.sql.quoted import quoted
from databases.base.errors import DatabaseRefused
from databases.base.findings import Finding, of_clock, problem, warning
from databases.base.port import SourceTable, matching
from databases.mysql.checks import (
    Ask,
    CheckedServer,
    grant,
    of_log,
    of_version,
    replication,
    settings_of,
)

LEAST_KEPT_S = 86_400
"""What is purged sooner leaves a collector that stopped in the evening without a way on."""

KEPT_S = 604_800
"""The recommended value."""

_SETTINGS = (
    "log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata",
    "binlog_row_value_options", "read_only", "server_id", "gtid_mode", "binlog_expire_logs_seconds",
    "expire_logs_days", "log_slave_updates", "log_replica_updates",
)  # fmt: skip

_GTID = (
    "SET GLOBAL enforce_gtid_consistency = ON",
    "SET GLOBAL gtid_mode = OFF_PERMISSIVE",
    "SET GLOBAL gtid_mode = ON_PERMISSIVE",
    "SET GLOBAL gtid_mode = ON",
)
"""Each is one step of the server's; no other order is taken."""


class Account(NamedTuple):
    """Who asks, as the server knows it, and its rights to everything."""

    user: str
    host: str
    rights: frozenset[str]

    def lacks(self, *names: str) -> bool:
        """Whether none of these, which are one right's names, is given."""
        return not self.rights & {"ALL PRIVILEGES", *names}

    def grant(self, right: str, where: str = "*.*") -> str:
        """The statement that gives a right."""
        return grant(right, where, self.user, self.host)


def account_of(ask: Ask, *, mariadb: bool) -> Account:
    """Raises what questions raise. Rights by roles count where the session has these roles."""
    ((name,),) = ask("SELECT CURRENT_USER()")
    user, _, host = str(name).rpartition("@")
    roles = "NONE" if mariadb else str(ask("SELECT CURRENT_ROLE()")[0][0])
    # MariaDB shows what the session's role gives by itself.
    of = "" if roles == "NONE" else f" FOR CURRENT_USER() USING {roles}"
    lines = [str(row[0]) for row in ask(f"SHOW GRANTS{of}")]
    found = (re.match(r"GRANT (.+?) ON \*\.\* TO ", line) for line in lines)
    rights = {right.strip() for one in found if one for right in one[1].split(",")}
    return Account(user, host, frozenset(rights))


def of_server(asked: CheckedServer, account: Account) -> Iterator[Finding]:
    """The server's version, clock, rights, log and role."""
    settings = settings_of(asked.ask, _SETTINGS)
    yield from of_version(asked)
    yield from of_clock(asked.ahead_us)
    yield from _of_rights(account, mariadb=asked.mariadb)
    yield from of_log(settings)
    if settings.get("log_bin") != "ON":
        return
    yield from _of_reading(settings)
    yield from _of_role(asked, account, settings)
    yield from _of_purge(settings)


def _of_rights(account: Account, *, mariadb: bool) -> Iterator[Finding]:
    if account.lacks("REPLICATION SLAVE", "REPLICATION REPLICA"):
        yield problem("its log can't be read", account.grant("REPLICATION SLAVE"))
    if account.lacks("REPLICATION CLIENT", "BINLOG MONITOR"):
        right = "BINLOG MONITOR" if mariadb else "REPLICATION CLIENT"
        yield problem("its position in the log can't be read", account.grant(right))
    if account.lacks("RELOAD", "FLUSH_TABLES", "LOCK TABLES"):
        yield problem(
            "the collector can't hold its tables for the moment in which it reads their "
            "definitions and its first position",
            account.grant("RELOAD"),
        )


def _of_reading(settings: Mapping[str, str]) -> Iterator[Finding]:
    """What a reader of whole rows, by positions, needs beside what all readers need."""
    if settings.get("binlog_row_image", "FULL") != "FULL":
        yield problem(
            f"binlog_row_image is {settings['binlog_row_image']}: the collector takes columns that "
            "a change does not carry for NULL (sessions that are open keep it)",
            "SET GLOBAL binlog_row_image = 'FULL'",
        )
    if settings.get("server_id") == "0":
        yield problem("server_id is 0: it has no readers", "SET GLOBAL server_id = 1")
    if settings.get("gtid_mode", "ON") != "ON":
        done = {"OFF": 0, "OFF_PERMISSIVE": 2, "ON_PERMISSIVE": 3}.get(settings["gtid_mode"], 0)
        yield warning(
            f"gtid_mode is {settings['gtid_mode']}: positions are files and offsets, so the "
            "collector can't go on at another server after a fail-over",
            *_GTID[done:],
        )


def _of_purge(settings: Mapping[str, str]) -> Iterator[Finding]:
    seconds = int(settings.get("binlog_expire_logs_seconds", "0"))
    by_seconds = "binlog_expire_logs_seconds" in settings
    seconds = seconds or int(float(settings.get("expire_logs_days", "0")) * 86_400)
    if 0 < seconds < LEAST_KEPT_S:
        yield warning(
            f"its log is kept for {seconds} s: a collector that is away for longer has lost its "
            "place, and every table is loaded again",
            f"SET GLOBAL binlog_expire_logs_seconds = {KEPT_S}"
            if by_seconds
            else f"SET GLOBAL expire_logs_days = {KEPT_S // 86_400}",
        )


def _of_role(
    asked: CheckedServer, account: Account, settings: Mapping[str, str]
) -> Iterator[Finding]:
    """A replica's own log is read: it must hold what the replica applies."""
    threads = replication(asked.ask)
    if threads is None and asked.mariadb and not account.lacks("BINLOG MONITOR"):
        yield warning("whether it is a replica is not known", account.grant("REPLICA MONITOR"))
    if not threads:
        if settings.get("read_only") == "ON":
            yield warning("read_only is ON, and it replicates nothing: nobody changes it")
        return
    own = settings.get("log_replica_updates", settings.get("log_slave_updates", "ON"))
    if own != "ON":
        yield problem(
            f"it is a replica of {threads[0][1]}, and its log lacks what it applies: start it with "
            "--log-slave-updates, or name the primary"
        )
    yield warning(f"it is a replica of {threads[0][1]}: tables follow it as far as it is")


# What the log leaves out, by schema.

_STATUS = ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")


def left_out(ask: Ask, schemas: Collection[str]) -> Iterator[Finding]:
    """Schemas whose changes the server does not write into its log."""
    for sql in _STATUS:
        try:
            rows = ask(sql)
        except DatabaseRefused:
            continue  # a word of other versions, or no right to it, which is reported by itself
        only, never = (_names(row) for row in rows[0][2:4]) if rows else ((), ())
        for schema in schemas:
            if schema in never or (only and schema not in only):
                option = "binlog-ignore-db" if schema in never else "binlog-do-db"
                yield problem(
                    f"its log has no change of {schema}: start the server without {option}"
                )
        return


def _names(listed: object) -> tuple[str, ...]:
    return tuple(name.strip() for name in str(listed or "").split(",") if name.strip())


# Tables.


def of_schemas(
    account: Account, patterns: Iterable[str], tables: Sequence[TableName]
) -> Iterator[Finding]:
    """Patterns that match no table: the server does not show what the user may not read."""
    for pattern in patterns:
        schema = pattern.partition(".")[0]
        if not matching(pattern, tables):
            plain = not re.search(r"[*?\[]", schema)
            where = f"{quoted(schema, '`')}.*" if plain else "*.*"
            yield problem(
                f"no table is called {pattern}, or none that this user may read",
                account.grant("SELECT", where),
            )


def unreadable(account: Account, table: TableName, why: str) -> Finding:
    """A table that can't be described."""
    name = f"{quoted(table.database, '`')}.{quoted(table.table, '`')}"
    if "denied" in why:
        return problem(f"{table} can't be read whole", account.grant("SELECT", name))
    return problem(why)


def of_table(ask: Ask, table: SourceTable) -> Iterator[Finding]:
    """What keeps it from being equal: its key, and changes that no log has."""
    name = f"{quoted(table.name.database, '`')}.{quoted(table.name.table, '`')}"
    if not table.keys:
        yield problem(
            f"{table.name} has no key: it is left out, as its rows can't be told apart. A key of "
            "its own is better than this",
            f"ALTER TABLE {name} ADD COLUMN binlogd_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
        )
    ((_, made, *_),) = ask(f"SHOW CREATE TABLE {name}")
    if re.search(r"^\) ENGINE=MEMORY\b", str(made), re.MULTILINE):
        yield warning(
            f"{table.name} is in memory: a restart of the server empties it by a statement, which "
            "the collector does not read"
        )
    for parent, rules in _FOREIGN_KEY.findall(str(made)):
        if acting := ", ".join(_ACTING.findall(rules)):
            yield warning(
                f"{table.name}: changes of {parent} change its rows by a foreign key ({acting}), "
                "which the log does not have: verifications find the difference"
            )


_FOREIGN_KEY = re.compile(
    r"^ +CONSTRAINT .+? FOREIGN KEY \(.+?\) REFERENCES ((?:`(?:[^`]|``)+`\.?)+) \(.+?\)(.*)$",
    re.MULTILINE,
)
_ACTING = re.compile(r"ON (?:DELETE|UPDATE) (?:CASCADE|SET NULL|SET DEFAULT)")
