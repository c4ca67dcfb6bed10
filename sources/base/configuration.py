"""What a source reads of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from changes.model.model import FormatOptions
from sources.base.section import StartSection
from sources.base.topic_selection import TopicSelection

Setting = str | int | float | bool
"""A value of a setting of Kafka's client."""


class Places(Protocol):
    """``[daemon]``."""

    @property
    def state_dir(self) -> Path:
        """Where the daemon keeps its files."""
        ...


class ReadingSection(Protocol):
    """``[pipeline.NAME]``: where it reads, and where it starts."""

    @property
    def kafka(self) -> Mapping[str, Setting]:
        """Settings of Kafka's client that differ from the daemon's."""
        ...

    @property
    def start(self) -> StartSection:
        """Where reading begins."""
        ...

    @property
    def format(self) -> str:
        """The name of the messages' format."""
        ...

    def format_options(self) -> FormatOptions:
        """The options for the format."""
        ...


class Configuration(Protocol):
    """The configuration as a source sees it."""

    @property
    def daemon(self) -> Places:
        """See ``Places``."""
        ...

    @property
    def pipeline(self) -> Mapping[str, ReadingSection]:
        """The pipelines by their names."""
        ...

    def topics_of(self, pipeline: str) -> TopicSelection:
        """Which topics a pipeline reads."""
        ...

    def group(self, pipeline: str) -> str:
        """A pipeline's consumer group."""
        ...

    @property
    def kafka(self) -> Mapping[str, Setting]:
        """Settings of Kafka's client."""
        ...

    @property
    def kafka_hint(self) -> str:
        """What to add to "nobody answers": why that may be, and what leads out."""
        ...

    def kafka_of(self, pipeline: str) -> Mapping[str, Setting]:
        """The client's settings for a pipeline."""
        ...

    def queue_kbytes(self, pipeline: str) -> int:
        """How much a pipeline's client fetches ahead."""
        ...
