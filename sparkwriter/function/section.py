"""``[sink.NAME]``: the keys of each kind of sink. A new kind adds its section to ``AnySink``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from settings.section import flatten
from settings.units import Bytes
from sparkwriter.kit.section import SinkSection


class PythonSection(SinkSection):
    """``kind = "python"``: a function of the user's, ``module:function``, in a process of its own.

    ``path``: folders where its module is looked for. ``state``: where marks and rejected rows are.
    """

    kind: Literal["python"]
    entry: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    path: list[str] = Field(default_factory=list)
    state: Path = Field(strict=False)
    memory_bytes: Bytes = Field(1 << 30, ge=64 << 20)
    settings_: dict[str, Any] = Field(default_factory=dict, alias="settings")

    def absolute(self, folder: Path) -> Self:
        """Paths count from the configuration's folder."""
        found = [str(folder / one) for one in self.path]
        return self.model_copy(update={"path": found, "state": folder / self.state})

    def settings(self) -> Mapping[str, str]:
        """The function, and what the user set for it."""
        own = {f"settings.{key}": str(value) for key, value in flatten(self.settings_).items()}
        return {"entry": self.entry, **own}
