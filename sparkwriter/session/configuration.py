"""The configuration as the Spark session sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from databases.base.section import DatabaseSection
from sparkwriter.session.section import SparkSection


class Places(Protocol):
    """``[daemon]``: folders, and how many writers there are."""

    @property
    def state_dir(self) -> Path:
        """Where the daemon keeps its files."""
        ...

    @property
    def staging_dir(self) -> str:
        """Where batches are staged, as configured."""
        ...

    @property
    def staging_folder(self) -> Path:
        """Where this process stages."""
        ...

    @property
    def staging_is_shared(self) -> bool:
        """Whether Spark's executors reach ``staging_dir``."""
        ...

    @property
    def staging_uri(self) -> str | None:
        """Where staged files are copied for executors."""
        ...

    @property
    def writers(self) -> int:
        """How many there are of a sink."""
        ...


class SparkConfiguration(Protocol):
    """The configuration as the session sees it."""

    @property
    def daemon(self) -> Places:
        """See ``Places``."""
        ...

    @property
    def spark(self) -> SparkSection:
        """See ``SparkSection``."""
        ...

    @property
    def database(self) -> Mapping[str, DatabaseSection]:
        """The databases that jobs read."""
        ...

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be in any output."""
        ...
