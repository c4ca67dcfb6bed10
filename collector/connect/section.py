"""``[connect]``: the worker of Kafka Connect that binlogd starts for its collectors."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field

from settings.section import Section


class ConnectSection(Section):
    """``kafka``: settings of its Kafka clients in Java's words, over those of ``[kafka]``.
    ``plugins``: a folder with connectors of Debezium's that binlogd does not bring."""

    heap_mb: int = Field(512, ge=256, le=32_768)
    group: str = Field("binlogd-connect", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")
    plugins: str | None = Field(None, min_length=1)
    kafka: dict[str, str] = Field(default_factory=dict)

    def absolute(self, folder: Path) -> Self:
        """The same with relative paths counted from ``folder``."""
        plugins = None if self.plugins is None else str(folder / self.plugins)
        return self.model_copy(update={"plugins": plugins})
