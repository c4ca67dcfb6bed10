"""``[sink.NAME]``: the keys of each kind of sink. A new kind adds its section to ``AnySink``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from databases.base.url import BadUrl, parse_url
from sparkwriter.kit.section import SinkSection


class JdbcSection(SinkSection):
    """``kind = "jdbc"``: PostgreSQL, MySQL or MariaDB. ``url`` as of ``databases.base.url``."""

    kind: Literal["jdbc"]
    url: str
    user: str | None = None
    password: str | None = None
    tls: Literal["off", "required", "verified"] | None = None
    """Without it verified, but off on this machine."""
    tls_ca: str | None = Field(None, min_length=1)
    ledger_schema: str = Field("binlogd", min_length=1)
    unstorable: Literal["refuse", "null"] = "refuse"

    @property
    def transactions(self) -> bool:
        """It is a database."""
        return True

    def settings(self) -> Mapping[str, str]:
        """Where it is, and as whom."""
        keys = ("url", "user", "password", "tls", "tls_ca")
        return {key: value for key in keys if (value := getattr(self, key)) is not None}

    def warnings(self) -> Iterator[str]:
        """What a file of an earlier version must say of ``url``, and what is not looked at."""
        with suppress(BadUrl):
            url = parse_url(self.url)
            lines = url.says_no_tls(self.tls), url.unread_ca(self.tls, self.tls_ca)
            yield from (line for line in lines if line is not None)

    def absolute(self, folder: Path) -> Self:
        """The same with relative paths counted from ``folder``."""
        ca = None if self.tls_ca is None else str(folder / self.tls_ca)
        return self.model_copy(update={"tls_ca": ca})
