"""The kinds of steps for MariaDB, and how often each comes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tests.live import mariadb_ddl as ddl
from tests.live import mariadb_odd as odd
from tests.live.mariadb_rows import rows
from tests.live.schema import Maker

KINDS: Mapping[Maker, float] = {
    rows: 60, ddl.create: 8, ddl.alter: 14, ddl.truncate: 3, ddl.drop: 3, ddl.rename_table: 3,
    odd.several_renames: 1, odd.online: 1, odd.lossy: 0.5, odd.spelled_oddly: 4,
    odd.harmless: 4, odd.another_charset: 0.5, odd.copied: 2,
    # These stop a pipeline by rule, and with it what a seed could still find.
    odd.swap: 0.2, odd.partitions: 0.2, odd.ignore_unique: 0.2, odd.another_key: 0.2,
    odd.database: 0.2,
}  # fmt: skip
