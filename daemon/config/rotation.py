"""Reads secrets of sinks and databases again while the daemon runs: files and credentials are
rotated."""

from __future__ import annotations

from collections.abc import Mapping

from daemon.config.config import Config
from daemon.config.file import ConfigError, load


class RotatedSettings:
    """The settings of one sink as one writer uses them. Called on the writer's thread.

    Only settings that hold a ``${file:…}`` or ``${credential:…}`` are read again: whatever else was
    changed in the file takes a restart.
    """

    def __init__(self, config: Config, settings: Mapping[str, str], sink: str) -> None:
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
        file, referring = self._config.file, self._config.referring_settings
        rotated = {key for key in self._first if f"sink.{self._sink}.{key}" in referring}
        if file is None or not rotated:
            return self._used
        try:
            fresh = load(file)
        except ConfigError:
            return self._used
        self._config.redactor.learn(fresh.secrets)
        section = fresh.sink.get(self._sink)
        found = {} if section is None else section.settings()
        return {key: found.get(key, self._used[key]) if key in rotated else self._used[key]
                for key in self._first}  # fmt: skip


def current_password(config: Config, database: str) -> str:
    """A database's password as its file or credential has it now; else as at the start."""
    first = config.database[database].password
    if config.file is None or f"database.{database}.password" not in config.referring_settings:
        return first
    try:
        fresh = load(config.file)
    except ConfigError:
        return first
    config.redactor.learn(fresh.secrets)
    section = fresh.database.get(database)
    return first if section is None else section.password
