"""``[database.NAME]``: a source's own database, which jobs read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from databases.base.url import DatabaseUrl, Login, parse_url
from settings.section import Section
from settings.units import Seconds


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
    tls: Literal["off", "required", "verified"] | None = None
    """Without it verified, but off on this machine."""
    tls_ca: str | None = Field(None, min_length=1)
    connections: int = Field(2, ge=1, le=64)
    rows_per_s: int | None = Field(None, ge=1)
    rows_per_day: int | None = Field(None, ge=1)
    statement_timeout_s: Seconds = Field(3600.0, gt=0)

    @field_validator("url")
    @classmethod
    def _known(cls, value: str) -> str:
        if len(parse_url(value).hosts) > 1:
            raise ValueError("names several servers: one is read")
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
    def address(self) -> DatabaseUrl:
        """The parts of ``url``."""
        return parse_url(self.url)

    def login(self, password: str | None = None) -> Login:
        """How it is connected with; ``password``: instead of the section's own."""
        own = self.password if password is None else password
        logins = self.address.logins(self.user, own, self.tls, self.tls_ca, before="off")
        return next(iter(logins))

    def warnings(self) -> Iterator[str]:
        """What a file of an earlier version must say of ``url``, and what is not looked at."""
        address = self.address
        lines = address.says_no_tls(self.tls), address.unread_ca(self.tls, self.tls_ca)
        yield from (line for line in lines if line is not None)


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
