"""``[sink.NAME]``: the keys of each kind of sink. A new kind adds its section to ``AnySink``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from sparkwriter.kit.section import SinkSection


class SqliteSection(SinkSection):
    """``kind = "sqlite"``: a file on this machine."""

    kind: Literal["sqlite"]
    path: Path = Field(strict=False)

    def absolute(self, folder: Path) -> Self:
        """The file's path counts from the configuration's folder."""
        return self.model_copy(update={"path": folder / self.path})

    @property
    def transactions(self) -> bool:
        """It is a database."""
        return True

    def settings(self) -> Mapping[str, str]:
        """The file."""
        return {"path": str(self.path)}
