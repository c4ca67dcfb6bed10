"""What a server or a source has that nobody planned for: settings, row images, names. Pure.

Settings are those of binlogd's own user alone: they concern neither readers nor statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

FIRST = 1000
"""Seeds from here on have sources of such a kind; those before are as they were when they were
kept."""

NAMES = ("a\u00a0b", "\uff41\uff42", "\uff08x\uff09", "€", "x\u3000y", "\u01c6", "\u00a0")
"""Of tables and columns: blanks and letters of Unicode that are neither to a server."""

MARIADB: Mapping[str, str] = {
    "sql_select_limit": "5", "tx_isolation": "'READ-UNCOMMITTED'", "time_zone": "'+05:30'",
    "sql_mode": "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH'",
    "group_concat_max_len": "8", "sql_auto_is_null": "1", "div_precision_increment": "0",
    "character_set_results": "latin1",
}  # fmt: skip
POSTGRES: Mapping[str, str] = {
    "datestyle": "'SQL, DMY'", "intervalstyle": "sql_standard", "bytea_output": "escape",
    "extra_float_digits": "-10", "timezone": "'Asia/Kolkata'", "search_path": "pg_temp",
    "row_security": "on", "array_nulls": "off", "transform_null_equals": "on",
    "standard_conforming_strings": "off", "default_transaction_isolation": "'serializable'",
}  # fmt: skip


def init_connect() -> str:
    """A statement of MariaDB that each session of a user without many rights begins with."""
    pairs = ", ".join(f"{name} = {value}" for name, value in MARIADB.items())
    text = f"SET SESSION {pairs}".replace("'", "''")
    return f"SET GLOBAL init_connect = '{text}'"


def of_role(role: str) -> Sequence[str]:
    """Statements of PostgreSQL, by which each session of a role begins so."""
    return [f"ALTER ROLE {role} SET {name} = {value}" for name, value in POSTGRES.items()]


def row_image(seed: int, able: Sequence[str]) -> str:
    """The row image of a seed's sessions, of those that its reader takes."""
    return Random(f"image {seed}").choice(able) if seed >= FIRST else "FULL"
