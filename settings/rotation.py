"""Reads secrets of sinks and databases again while the daemon runs: files and credentials are
rotated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self, TypeVar

from settings.secrets import Redactor
from settings.section import Section

SectionT = TypeVar("SectionT", bound=Section, covariant=True)


class SinkSettings(Protocol):
    """A sink's section."""

    def settings(self) -> Mapping[str, str]:
        """What says where it is, by key."""
        ...


class WithPassword(Protocol):
    """A database's section."""

    @property
    def password(self) -> str:
        """Empty without one."""
        ...


class Rereadable(Protocol):
    """A configuration whose secrets can be read again. Any thread."""

    @property
    def referring_settings(self) -> frozenset[str]:
        """The dotted names of settings that hold a ``${file:…}`` or ``${credential:…}``."""
        ...

    @property
    def secrets(self) -> frozenset[str]:
        """All secrets."""
        ...

    @property
    def redactor(self) -> Redactor:
        """What keeps them out of all output."""
        ...

    def again(self) -> Self | None:
        """What its file says now; None without a file, or where that can't be read at the time."""
        ...


class SecretSettings(Rereadable, Protocol):
    """Its sinks and databases."""

    @property
    def sink(self) -> Mapping[str, SinkSettings]:
        """The sinks by their names."""
        ...

    @property
    def database(self) -> Mapping[str, WithPassword]:
        """The databases by their names."""
        ...


class RotatedSettings:
    """The settings of one sink as one writer uses them. Called on the writer's thread.

    Only settings that hold a ``${file:…}`` or ``${credential:…}`` are read again: whatever else was
    changed in the file takes a restart.
    """

    def __init__(self, config: SecretSettings, settings: Mapping[str, str], sink: str) -> None:
        """``settings`` as of ``SinkSection.settings``."""
        self._config = config
        self._sink = sink
        self._first = dict(settings)
        self._used = dict(settings)

    def take(self) -> dict[str, str]:
        """Those that differ from the start's, as their files have them now."""
        self._used = self._now()
        return {key: value for key, value in self._used.items() if value != self._first[key]}

    def outdated(self) -> bool:
        """Whether a secret has changed since ``take``."""
        return self._now() != self._used

    def _now(self) -> dict[str, str]:
        """What can't be read at the time is as it was used last."""
        referring = self._config.referring_settings
        rotated = {key for key in self._first if f"sink.{self._sink}.{key}" in referring}
        fresh = self._config.again() if rotated else None
        if fresh is None:
            return self._used
        self._config.redactor.learn(fresh.secrets)
        section = fresh.sink.get(self._sink)
        found = {} if section is None else section.settings()
        return {key: found.get(key, self._used[key]) if key in rotated else self._used[key]
                for key in self._first}  # fmt: skip


class RegistryConfiguration(Rereadable, Protocol[SectionT]):
    """Its schema registries."""

    @property
    def registry(self) -> Mapping[str, SectionT]:
        """The registries by their names."""
        ...


def current_registry(config: RegistryConfiguration[SectionT], registry: str) -> SectionT:
    """A registry's section with its secrets as their files or credentials have them now."""
    first, at = config.registry[registry], f"registry.{registry}."
    referring = {key.removeprefix(at) for key in config.referring_settings if key.startswith(at)}
    fresh = config.again() if referring else None
    section = None if fresh is None else fresh.registry.get(registry)
    if fresh is None or section is None:
        return first
    config.redactor.learn(fresh.secrets)
    keys = {key.partition(".")[0] for key in referring}
    return first.model_copy(update={key: getattr(section, key) for key in keys})


def current_password(config: SecretSettings, database: str) -> str:
    """A database's password as its file or credential has it now; else as at the start."""
    first = config.database[database].password
    refers = f"database.{database}.password" in config.referring_settings
    fresh = config.again() if refers else None
    if fresh is None:
        return first
    config.redactor.learn(fresh.secrets)
    section = fresh.database.get(database)
    return first if section is None else section.password
