"""``[collector.NAME]``: a connector of Debezium that binlogd has running, and what it reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from changes.model.names import is_expression
from collector.connector.owned import why_owned
from settings.secrets import looks_secret
from settings.section import Section
from settings.units import Seconds

OthersKind = Literal["sqlserver", "oracle", "db2"]
"""Databases that ``[database.NAME]`` has no part in: no load, no verification, no watch."""

REFERENCE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*:[^${}]+")
"""A secret as Connect's own providers know it, without ``${`` and ``}``."""

_OTHERS = re.compile(r"(sqlserver|oracle|db2)://([^/:?#@]+):([0-9]{1,5})/([^/?#]+)")
_TOPIC = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class CollectorSection(Section):
    """One connector. ``topics``: one topic in the source's order, one a group of tables, or one a
    table. Without ``connect`` it runs in the worker that binlogd starts."""

    database: str | None = None
    url: str | None = None
    user: str = ""
    password: str = ""
    topics: Literal["one", "groups", "tables"] = "one"
    topic: str | None = None
    groups: dict[str, list[str]] = Field(default_factory=dict)
    tables: list[str] | None = Field(None, min_length=1)
    heartbeat_s: Seconds = Field(10.0, ge=1, le=3600)
    heartbeat_statement: str | None = Field(None, min_length=1)
    server_id: int | None = Field(None, ge=1, le=2**32 - 1)
    slot: str | None = None
    on_lost_position: Literal["stop", "load"] = "stop"
    connect: str | None = None
    connect_auth: str = ""
    connect_ca: str | None = Field(None, min_length=1)
    references: dict[str, str] = Field(default_factory=dict)
    config: dict[str, str | int | float | bool] = Field(default_factory=dict)

    @field_validator("url")
    @classmethod
    def _of_others(cls, value: str | None) -> str | None:
        if value is not None and _OTHERS.fullmatch(value) is None:
            raise ValueError(
                "is not KIND://HOST:PORT/DATABASE, KIND being sqlserver, oracle or db2: MySQL, "
                'MariaDB and PostgreSQL are a [database.NAME], and database = "NAME" names it'
            )
        return value

    @field_validator("topic")
    @classmethod
    def _name_of_a_topic(cls, value: str | None) -> str | None:
        if value is not None and _TOPIC.fullmatch(value) is None:
            raise ValueError("a name is letters, digits, - and _, 100 at most, no - or _ first")
        return value

    @field_validator("slot")
    @classmethod
    def _name_of_a_slot(cls, value: str | None) -> str | None:
        if value is not None and re.fullmatch(r"[a-z0-9_]{1,63}", value) is None:
            raise ValueError("a slot's name is small letters, digits and _, 63 at most")
        return value

    @field_validator("connect")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        found = None if value is None else urlsplit(value)
        if found is not None and (found.scheme not in ("http", "https") or not found.hostname):
            raise ValueError('is no address such as "https://connect:8083"')
        if found is not None and (found.username or found.password):
            raise ValueError("a user and a password belong into connect_auth, shown nowhere")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Self:
        problems = [
            *self._unfit_source(), *self._unfit_topics(), *self._unfit_connect(),
            *self._unfit_config(),
        ]  # fmt: skip
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _unfit_source(self) -> Iterator[str]:
        if (self.database is None) == (self.url is None):
            yield 'either database = "NAME", of a [database.NAME], or url is required'
        if self.url is None and (self.user or self.password):
            yield "user, password: those of [database.NAME] are taken"
        if self.url is not None and not self.user:
            yield "user: is required with url"
        if self.url is not None and self.on_lost_position == "load":
            yield f"on_lost_position: no table of {self.others_kind} can be loaded"

    def _unfit_topics(self) -> Iterator[str]:
        if (self.topics == "groups") != bool(self.groups):
            yield 'groups: topics = "groups" and [collector.NAME.groups] belong together'
        for name in self.groups:
            if _TOPIC.fullmatch(name) is None:
                yield f"groups.{name}: a name is letters, digits, - and _"
        for pattern in (*(self.tables or ()), *(p for g in self.groups.values() for p in g)):
            if is_expression(pattern):
                yield f"pattern {pattern!r}: stars are taken here, no regular expression"
            elif "." not in pattern and pattern != "*":
                yield f"pattern {pattern!r} matches no table; write database.table"

    def _unfit_connect(self) -> Iterator[str]:
        if self.connect is None and (self.connect_auth or self.connect_ca or self.references):
            yield "connect_auth, connect_ca, references: only with connect"
        if self.connect_auth and ":" not in self.connect_auth:
            yield 'connect_auth: "USER:PASSWORD" is required'
        for name, reference in self.references.items():
            if REFERENCE.fullmatch(reference) is None:
                yield f"references.{name}: PROVIDER:PATH:KEY is required, without ${{}}"
        if self.connect is not None and "database.password" not in self.references:
            yield (
                'references: "database.password" is required: in a Connect cluster that exists a '
                "plain password would be shown, so name it by a provider of that cluster: "
                'references = { "database.password" = "file:/etc/shop.properties:password" }'
            )

    def _unfit_config(self) -> Iterator[str]:
        for name in self.config:
            if (why := why_owned(name)) is not None:
                yield f"config.{name}: is set by binlogd itself: {why}"
            elif self.connect is not None and looks_secret(name):
                yield (
                    f"config.{name}: would be shown by Connect: references = {{ "
                    f'"{name}" = "PROVIDER:PATH:KEY" }} names it by a provider of that cluster'
                )

    @property
    def others_kind(self) -> OthersKind | None:
        """The kind of a database that is no ``[database.NAME]``."""
        return None if self.url is None else _parts(self.url)[0]

    @property
    def others_address(self) -> tuple[str, int, str]:
        """Host, port and database of such a one."""
        assert self.url is not None
        return _parts(self.url)[1:]

    @property
    def is_embedded(self) -> bool:
        """Whether it runs in the worker that binlogd starts."""
        return self.connect is None

    def secret_options(self) -> dict[str, str]:
        """Of ``config`` the options that hold a secret, as their names show."""
        return {name: str(value) for name, value in self.config.items() if looks_secret(name)}

    def absolute(self, folder: Path) -> Self:
        """The same with relative paths counted from ``folder``."""
        ca = None if self.connect_ca is None else str(folder / self.connect_ca)
        return self.model_copy(update={"connect_ca": ca})

    def secrets(self) -> dict[str, str]:
        """What is shown nowhere, by a key that says so."""
        found = {
            "password": self.password,
            "credential": self.connect_auth,
            "secret": self.connect_auth.partition(":")[2],
        }
        return {key: value for key, value in found.items() if value}


def _parts(url: str) -> tuple[OthersKind, str, int, str]:
    found = _OTHERS.fullmatch(url)
    assert found is not None
    kind: OthersKind = found[1]  # type: ignore[assignment]
    return kind, found[2], int(found[3]), found[4]
