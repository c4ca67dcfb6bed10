"""The session variables of each database server: which ones every session of binlogd sets, to what,
and why the others may be as the server, its role or its database has them. Pure.

A server's defaults decide what a SELECT gives (``sql_select_limit``, ``row_security``,
``tx_isolation``), what a text means (``time_zone``, ``sql_mode``) and what a write does
(``foreign_key_checks``). So a variable is *pinned* here, or the tests name it with a reason
(``tests/databases/base/settings_left.py``). Sessions that read a source, sessions that write a sink
and those of Spark's tasks are all set up by this module. Variables that a server of another version
lacks are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from changes.sql.quoted import quoted

Server = Literal["postgresql", "mysql", "mariadb"]

MARK = "binlogd.session"
"""A variable of PostgreSQL's that holds a text of the session's own: where it is not there, the
settings are not either."""

MYSQL_MARK = "@binlogd_session"
"""The same of MySQL and MariaDB."""

POOLED = (
    "a statement ran in another session than the one whose settings were made: a pooler between "
    "binlogd and the server gives each transaction any session (pool_mode = transaction). Name the "
    "server itself, or a pool whose sessions last (pool_mode = session)"
)

_ROWS = "18446744073709551615"

_POSTGRESQL = {
    "search_path": "pg_catalog",
    # A query that a policy would filter is an error then.
    "row_security": "off",
    # A scan of a GIN index would give a random part of its rows.
    "gin_fuzzy_search_limit": "0",
    # Damaged pages would be read as empty ones.
    "zero_damaged_pages": "off",
    "ignore_checksum_failure": "off",
    "transform_null_equals": "off",
    "client_encoding": "UTF8",
    "client_min_messages": "warning",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "lc_numeric": "C",
    "lc_time": "C",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "array_nulls": "on",
    "xmlbinary": "base64",
    "xmloption": "content",
    "standard_conforming_strings": "on",
    "quote_all_identifiers": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
}
_POSTGRESQL_READING = {"default_transaction_read_only": "on", "lock_timeout": "0"}
_POSTGRESQL_WRITING = {
    # Otherwise foreign keys are not checked, and triggers do not run.
    "session_replication_role": "origin",
    "default_table_access_method": "heap",
}

_MYSQL = {
    "sql_select_limit": _ROWS,
    "max_join_size": _ROWS,
    "sql_big_selects": "ON",
    "sql_auto_is_null": "OFF",
    "sql_safe_updates": "OFF",
    "autocommit": "ON",
    "completion_type": "NO_CHAIN",
    "tx_isolation": "READ-COMMITTED",
    "transaction_isolation": "READ-COMMITTED",
    "character_set_client": "utf8mb4",
    "character_set_connection": "utf8mb4",
    "character_set_results": "utf8mb4",
    "collation_connection": "utf8mb4_bin",
    "time_zone": "+00:00",
    "lc_time_names": "en_US",
    "default_week_format": "0",
    "div_precision_increment": "4",
    "group_concat_max_len": "1048576",
    "max_sort_length": "1024",
    "old": "OFF",
    "old_mode": "",
    # A SELECT from a table with versions would show a former state.
    "system_versioning_asof": "DEFAULT",
    "query_cache_type": "OFF",
    "wsrep_dirty_reads": "OFF",
    "use_secondary_engine": "OFF",
}
_MYSQL_READING = {
    "sql_mode": "",
    "tx_read_only": "ON",
    "transaction_read_only": "ON",
    "information_schema_stats_expiry": "0",
}
_MYSQL_WRITING = {
    # Nothing is rounded, cut or made zero without an error; 0 does not request a number of an
    # AUTO_INCREMENT; a backslash escapes.
    "sql_mode": "NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION",
    "foreign_key_checks": "ON",
    "unique_checks": "ON",
    "check_constraint_checks": "ON",
    "sql_if_exists": "OFF",
    "innodb_strict_mode": "ON",
    # The ledger is of no use in a table without transactions.
    "default_storage_engine": "InnoDB",
    "explicit_defaults_for_timestamp": "ON",
    "sql_generate_invisible_primary_key": "OFF",
    "system_versioning_insert_history": "OFF",
    "system_versioning_alter_history": "ERROR",
}


def reading(server: Server) -> dict[str, str]:
    """What a session that reads sets, each value as the server shows it."""
    if server == "postgresql":
        return _POSTGRESQL | _POSTGRESQL_READING
    return _MYSQL | _MYSQL_READING


def writing(server: Server) -> dict[str, str]:
    """What a session that writes sets, each value as the server shows it."""
    if server == "postgresql":
        return _POSTGRESQL | _POSTGRESQL_WRITING
    return _MYSQL | _MYSQL_WRITING


def set_postgresql(settings: Mapping[str, str], mark: str = "") -> str:
    """The statements of PostgreSQL that set those which the server knows and has otherwise, and
    the session's mark: one message, so that all are in one session, whatever stands between.

    A variable that differs, and that the user may not set, is an error of the server's, which names
    it.
    """
    pairs = ", ".join(f"({quoted(name)}, {quoted(value)})" for name, value in settings.items())
    made = (
        "SET search_path = pg_catalog; "
        f"SELECT set_config(s.name, s.value, false) FROM (VALUES {pairs}) AS s(name, value)"
        " WHERE current_setting(s.name, true) <> s.value"
    )
    return f"{made}; SELECT set_config('{MARK}', {quoted(mark)}, false)" if mark else made


def mark_of_postgresql() -> str:
    """The query of the session's mark."""
    return f"SELECT current_setting('{MARK}', true)"


def unlimited_mysql() -> str:
    """The first statement of a session with MySQL or MariaDB: without it, answers may be cut."""
    first = ("sql_select_limit", "max_join_size", "sql_big_selects")
    return "SET " + ", ".join(f"SESSION {name} = {_value(_MYSQL[name])}" for name in first)


def show_mysql(settings: Mapping[str, str]) -> str:
    """The query of the names and values that the server knows of these."""
    names = ", ".join(map(quoted, settings))
    return f"SHOW SESSION VARIABLES WHERE Variable_name IN ({names})"


def set_mysql(settings: Mapping[str, str], known: Mapping[str, str], mark: str) -> str:
    """The statement of MySQL that sets those which are otherwise in ``known``, which is what
    ``show_mysql`` gave, and the session's mark."""
    wrong = differing(settings, known)
    made = [f"SESSION {name} = {_value(value)}" for name, value in wrong.items()]
    return "SET " + ", ".join([*made, f"{MYSQL_MARK} = {quoted(mark)}"])


def set_all_mysql(settings: Mapping[str, str], known: Mapping[str, str]) -> str:
    """The statement of MySQL that sets all that the server knows, for a connection that can't be
    queried first."""
    made = (f"SESSION {name} = {_value(v)}" for name, v in settings.items() if name in known)
    return f"SET {', '.join(made)}"


def differing(settings: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """The settings that ``known`` has otherwise."""
    return {
        name: value
        for name, value in settings.items()
        if name in known and _plain(known[name]) != _plain(value)
    }


def _plain(shown: str) -> str:
    """Numbers have zeros behind the point, or not."""
    whole, point, rest = shown.partition(".")
    number = bool(point) and (whole + rest).isdigit()
    return f"{whole}.{rest.rstrip('0')}".rstrip(".") if number else shown


def _value(value: str) -> str:
    plain = value.replace(".", "", 1)
    return value if plain.isdigit() or value == "DEFAULT" else quoted(value)
