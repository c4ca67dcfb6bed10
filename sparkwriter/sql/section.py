"""``[sink.NAME]``: the keys of each kind of sink. A new kind adds its section to ``AnySink``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from sparkwriter.kit.section import SinkSection


class JdbcSection(SinkSection):
    """``kind = "jdbc"``: PostgreSQL, MySQL or MariaDB. ``url`` as of
    ``sparkwriter.sql.base.url``."""

    kind: Literal["jdbc"]
    url: str
    user: str | None = None
    password: str | None = None
    ledger_schema: str = Field("binlogd", min_length=1)
    unstorable: Literal["refuse", "null"] = "refuse"

    def settings(self) -> Mapping[str, str]:
        """Where it is, and as whom."""
        said = {"url": self.url, "user": self.user, "password": self.password}
        return {key: value for key, value in said.items() if value is not None}
