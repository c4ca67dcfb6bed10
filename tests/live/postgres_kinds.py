"""The kinds of steps for PostgreSQL, and how often each comes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tests.live import postgres_ddl as ddl
from tests.live.postgres_rows import rows
from tests.live.schema import Maker

KINDS: Mapping[Maker, float] = {
    rows: 60, ddl.create: 8, ddl.alter: 5, ddl.truncate: 3,
}  # fmt: skip
HOSTILE: Mapping[Maker, float] = {ddl.inherited: 3, ddl.row_security: 2}
"""Those that seeds have in addition from ``hostile.FIRST`` on."""
