"""``[sink.NAME]``: the keys of each kind of sink. A new kind adds its section to ``AnySink``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field

from settings.section import Section
from settings.units import Seconds


class SinkSection(Section):
    """What every sink has. Targets begin with its name."""

    ways: ClassVar[tuple[str, ...]] = ()
    """What ``write`` may be, of the sink and of a route to it; none: the sink knows one way."""

    layout: ClassVar[tuple[str, ...]] = ()
    """Which keys of a route say how a table's files are laid out, where the sink has files."""

    tags: ClassVar[bool] = False
    """Whether former versions of its tables can be named, as cuts do."""

    needs_spark: ClassVar[bool] = False
    """Whether it is written with Spark."""

    kind: str
    write_timeout_s: Seconds = Field(1800.0, gt=0)

    @property
    def transactions(self) -> bool:
        """Whether several of its tables can change in one transaction."""
        return False

    def route_options(self, asked: Mapping[str, str]) -> dict[str, str]:
        """What a route asks of the sink, by key. Raises ValueError for what it does not know."""
        for key in asked:
            if key != "write" and key not in self.layout:
                raise ValueError(f"{key}: a sink of kind {self.kind} has nothing like it")
        write = asked.get("write")
        if write is not None and write not in self.ways:
            known = ", ".join(self.ways)
            allowed = f"allowed: {known}" if known else f"a sink of kind {self.kind} has no choice"
            raise ValueError(f"write: {write!r}; {allowed}")
        return dict(asked)

    def absolute(self, folder: Path) -> Self:
        """The same with relative paths counted from ``folder``."""
        return self

    def settings(self) -> Mapping[str, str]:
        """What says where it is, by key: shown in the plan, looked through for secrets."""
        return {}

    def warnings(self) -> Iterator[str]:
        """What a file of an earlier version must say of its ``url``."""
        yield from ()

    def owns(self, name: str, setting: str) -> str | None:
        """The section into which one of Spark's settings belongs, if it is the sink's own."""
        return None
