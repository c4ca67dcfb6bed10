"""The kinds of steps for MariaDB, and how often each comes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tests.live import mariadb_ddl as ddl
from tests.live import mariadb_odd as odd
from tests.live.mariadb_rows import rows
from tests.live.schema import Maker

KINDS: Mapping[Maker, int] = {
    rows: 60, ddl.create: 8, ddl.alter: 14, ddl.truncate: 3, ddl.drop: 3, ddl.rename_table: 3,
    odd.swap: 1, odd.several_renames: 1, odd.online: 1, odd.lossy: 1, odd.spelled_oddly: 4,
    odd.partitions: 1, odd.harmless: 4, odd.ignore_unique: 1, odd.another_charset: 1,
    odd.another_key: 1, odd.copied: 2, odd.database: 1,
}  # fmt: skip
