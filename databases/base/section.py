"""``[database.NAME]``: a source's own database, which jobs read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from settings.section import Section

_URL = re.compile(
    r"jdbc:(mysql|mariadb|postgresql)://(\[[0-9A-Fa-f:.]+\]|[^/:\s?#@\[\]]+)"
    r"(?::(\d{1,5}))?(?:/([^/?#\s]*))?"
)
_PORTS = {"mysql": 3306, "mariadb": 3306, "postgresql": 5432}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is. ``kind``: mysql (MariaDB, too) or postgresql."""

    kind: Literal["mysql", "postgresql"]
    host: str
    port: int
    database: str


class DatabaseSection(Section):
    """One database server. Sessions are read-only; nothing is ever written."""

    is_source: ClassVar[bool] = True
    """Whether a stream brings its tables' changes."""

    url: str
    user: str = Field(min_length=1)
    password: str = ""
    publication: str | None = Field(None, min_length=1)
    """Of PostgreSQL: the one that the stream's reader reads."""
    role: Literal["primary", "replica"] = "primary"
    primary: str | None = None
    """Of a replica: the section of the server whose log is the stream."""
    tls: Literal["off", "required", "verified"] = "off"
    tls_ca: str | None = Field(None, min_length=1)
    connections: int = Field(2, ge=1, le=64)
    rows_per_s: int | None = Field(None, ge=1)
    rows_per_day: int | None = Field(None, ge=1)
    statement_timeout_s: float = Field(3600.0, gt=0, strict=False)

    @field_validator("url")
    @classmethod
    def _known(cls, value: str) -> str:
        found = _URL.fullmatch(value)
        if found is None:
            raise ValueError(
                "jdbc:mysql://, jdbc:mariadb:// or jdbc:postgresql://, then host, :port and"
                " /database; user, password and tls are keys of their own, and options behind ?"
                " are not taken"
            )
        if found[1] == "postgresql" and not found[4]:
            raise ValueError("a database's name is wanted: jdbc:postgresql://HOST/DATABASE")
        if found[3] is not None and not 0 < int(found[3]) < 65536:
            raise ValueError(f"{found[3]} is no port")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.publication is not None and self.address.kind != "postgresql":
            raise ValueError("publication: PostgreSQL alone has publications")
        return self

    def absolute(self, folder: Path) -> Self:
        """The same with relative paths counted from ``folder``."""
        ca = None if self.tls_ca is None else str(folder / self.tls_ca)
        return self.model_copy(update={"tls_ca": ca})

    @property
    def address(self) -> Address:
        """The parts of ``url``."""
        found = _URL.fullmatch(self.url)
        assert found is not None
        kind: Literal["mysql", "postgresql"]
        kind = "postgresql" if found[1] == "postgresql" else "mysql"
        port = int(found[3] or _PORTS[found[1]])
        return Address(kind, found[2].strip("[]"), port, found[4] or "")


class TargetSection(DatabaseSection):
    """A sink's server, whose tables are compared: what it publishes is nobody's here."""

    is_source: ClassVar[bool] = False


def unfit_primary(section: DatabaseSection, all_: Mapping[str, DatabaseSection]) -> str | None:
    """Why a replica can't be shown to have what its primary has; None where it can, or is none."""
    if section.role == "primary":
        return None if section.primary is None else 'primary: only with role = "replica"'
    if section.primary is None:
        return (
            "role: a replica is read once it is shown to have what its primary has: set "
            'primary = "NAME", of a [database.NAME] that is asked for its position alone'
        )
    primary = all_.get(section.primary)
    if primary is None or primary.role != "primary":
        return f"primary: there is no database {section.primary!r} whose role is primary"
    if primary.address.kind != section.address.kind:
        return f"primary: {section.primary} is another kind of database"
    return None
