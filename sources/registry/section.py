"""``[registry.NAME]``: a schema registry, and how it is queried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from changes.model.registry import DEFAULT_IDS, Registry, RegistryKind, SchemaIds
from settings.section import Section
from settings.units import Seconds


class OAuthSection(Section):
    """``[registry.NAME.oauth]``: a client of an identity provider, by its own credentials."""

    token_url: str
    client_id: str = Field(min_length=1)
    client_secret: str = Field(min_length=1)
    scope: str = ""
    logical_cluster: str = ""
    identity_pool: str = ""

    @field_validator("token_url")
    @classmethod
    def _http(cls, value: str) -> str:
        return _address(value)


class RegistrySection(Section):
    """One registry. It is only ever read."""

    url: str | list[str] = Field(min_length=1)
    kind: RegistryKind = "confluent"
    ids: SchemaIds = DEFAULT_IDS
    """Which of Apicurio's numbers its producers write in four bytes."""
    basic_auth: str = ""
    bearer_token: str = ""
    oauth: OAuthSection | None = None
    tls_ca: str | None = Field(None, min_length=1)
    tls_cert: str | None = Field(None, min_length=1)
    tls_key: str | None = Field(None, min_length=1)
    tls_key_password: str = ""
    timeout_s: Seconds = Field(10.0, gt=0, le=300)
    not_found_s: Seconds = Field(60.0, ge=0)
    check_every_s: Seconds = Field(300.0, ge=1)

    @field_validator("url")
    @classmethod
    def _addresses(cls, value: str | list[str]) -> str | list[str]:
        for each in [value] if isinstance(value, str) else value:
            _address(each)
        return value

    @field_validator("basic_auth")
    @classmethod
    def _with_a_colon(cls, value: str) -> str:
        if value and ":" not in value:
            raise ValueError('"USER:PASSWORD" is required')
        return value

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        problems = list(self._unfit())
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _unfit(self) -> Iterator[str]:
        logins = {
            "basic_auth": self.basic_auth, "bearer_token": self.bearer_token, "oauth": self.oauth,
        }  # fmt: skip
        given = [name for name, value in logins.items() if value]
        if len(given) > 1:
            yield f"{' and '.join(given)} are set: one way to log in is required"
        if self.tls_cert is None and (self.tls_key is not None or self.tls_key_password):
            yield "tls_key: without tls_cert there is nothing that it belongs to"
        if self.kind == "confluent" and "ids" in self.model_fields_set:
            yield 'ids: only kind = "apicurio" has two kinds of them'

    def absolute(self, folder: Path) -> Self:
        """The same with relative paths counted from ``folder``."""
        paths = {key: getattr(self, key) for key in ("tls_ca", "tls_cert", "tls_key")}
        placed = {key: str(folder / path) for key, path in paths.items() if path is not None}
        return self.model_copy(update=placed)

    @property
    def urls(self) -> list[str]:
        """The addresses, in the order in which they are queried."""
        return [self.url] if isinstance(self.url, str) else self.url

    def as_formats_see_it(self, folder: Path) -> Registry:
        """With the folder of its schemas."""
        return Registry(self.kind, folder, self.ids)

    def secrets(self) -> dict[str, str]:
        """What is shown nowhere, by a key that says so."""
        found = {
            "password": self.basic_auth.partition(":")[2],
            "credential": self.basic_auth,
            "token": self.bearer_token,
            "secret": "" if self.oauth is None else self.oauth.client_secret,
            "passphrase": self.tls_key_password,
        }
        return {key: value for key, value in found.items() if value}


def _address(value: str) -> str:
    """Raises ValueError for what is no plain address of a server."""
    url = urlsplit(value)
    if url.scheme not in ("http", "https") or not url.hostname or "," in value:
        raise ValueError(f'{_shown(value)!r} is no address such as "https://registry:8081"')
    if url.username or url.password:
        raise ValueError("a user and a password belong into basic_auth, which is shown nowhere")
    return value


def _shown(value: str) -> str:
    """An address without what may be a password."""
    return value.rpartition("@")[2]
