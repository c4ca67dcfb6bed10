"""Servers that give every new session settings by which reads and writes would go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.databases.base.servers import Server

EVIL = "evil, pg_catalog"
"""A schema before PostgreSQL's own, whose functions and operators would be taken for these."""

ROLE = {
    "search_path": EVIL, "gin_fuzzy_search_limit": "1", "transform_null_equals": "on",
    "client_encoding": "LATIN1", "TimeZone": "Asia/Kathmandu", "DateStyle": "German, DMY",
    "IntervalStyle": "iso_8601", "lc_numeric": "C.UTF-8", "lc_time": "C.UTF-8",
    "extra_float_digits": "-15", "bytea_output": "escape", "array_nulls": "off",
    "xmlbinary": "hex", "xmloption": "document", "standard_conforming_strings": "off",
    "quote_all_identifiers": "on", "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on", "default_transaction_read_only": "off",
    "row_security": "on", "lock_timeout": "1ms", "client_min_messages": "error",
    "default_table_access_method": "nothing",
}  # fmt: skip
"""What a role of PostgreSQL may be given without a superuser."""

SUPER = {
    "zero_damaged_pages": "on",
    "ignore_checksum_failure": "on",
    "session_replication_role": "replica",
}
"""What a superuser alone may give it, and take away again."""

GLOBAL = {
    "sql_select_limit": "5", "max_join_size": "5", "sql_auto_is_null": "ON",
    "sql_safe_updates": "ON", "autocommit": "OFF", "completion_type": "'CHAIN'",
    "character_set_client": "latin1", "character_set_connection": "latin1",
    "character_set_results": "latin1", "time_zone": "'-11:00'", "lc_time_names": "'de_DE'",
    "default_week_format": "3", "div_precision_increment": "0", "group_concat_max_len": "4",
    "max_sort_length": "64", "sql_mode": "'ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'",
    "foreign_key_checks": "OFF", "unique_checks": "OFF", "default_storage_engine": "MyISAM",
}  # fmt: skip
OF_MARIADB = {
    "tx_isolation": "'READ-UNCOMMITTED'", "tx_read_only": "OFF", "check_constraint_checks": "OFF",
    "old_mode": "'ZERO_DATE_TIME_CAST'", "sql_if_exists": "ON", "wsrep_dirty_reads": "ON",
    "system_versioning_asof": "'2001-01-01'", "system_versioning_insert_history": "ON",
    "system_versioning_alter_history": "KEEP", "innodb_strict_mode": "OFF",
    "explicit_defaults_for_timestamp": "OFF",
}  # fmt: skip
OF_MYSQL = {
    "transaction_isolation": "'READ-UNCOMMITTED'", "transaction_read_only": "OFF",
    "information_schema_stats_expiry": "86400",
    "explicit_defaults_for_timestamp": "OFF",
}  # fmt: skip
TOUCHED = "SET sql_select_limit = 3, autocommit = 0, character_set_results = latin1"
"""What every connection begins with, where the server says so (init_connect)."""


@contextmanager
def hostile(server: Server, role: str) -> Iterator[None]:
    """Every session of the role, or of anybody, begins with these settings meanwhile."""
    if server.kind == "postgresql":
        server.run([f'ALTER ROLE {role} SET "{k}" = {_value(k, v)}' for k, v in ROLE.items()])
        try:
            yield
        finally:
            server.run([f"ALTER ROLE {role} RESET ALL"])
        return
    given = GLOBAL | (OF_MARIADB if server.kind == "mariadb" else OF_MYSQL)
    server.run([
        *(f"SET GLOBAL {name} = {value}" for name, value in given.items()),
        f"SET GLOBAL init_connect = '{TOUCHED}'",
    ])  # fmt: skip
    try:
        yield
    finally:
        defaults = [f"SET GLOBAL {name} = DEFAULT" for name in given]
        server.run(["SET GLOBAL init_connect = ''", *defaults])


def _value(name: str, value: str) -> str:
    return value if name == "search_path" else f"'{value}'"
