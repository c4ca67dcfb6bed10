"""The kinds of sink: ``[sink.NAME]`` of each, and how one becomes a sink.

A new kind is a folder beside these, and its section's line in ``_SECTIONS``. What the section asks
for is made by ``adapter.py`` beside it, which has ``make_sink(name, section, config)``: imported
only where sinks are looked at, because some need Java or a database's client.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Union, get_args

from pydantic import Field

from sparkwriter.function.section import PythonSection
from sparkwriter.iceberg.section import IcebergSection
from sparkwriter.kit.section import SinkSection
from sparkwriter.sql.section import JdbcSection
from sparkwriter.sqlite.section import SqliteSection

if TYPE_CHECKING:
    from settings.rotation import SecretSettings
    from sparkwriter.kit.port import Sink

__all__ = ["KINDS", "AnySink", "PythonSection", "make_sink"]

_SECTIONS: tuple[type[SinkSection], ...] = (
    IcebergSection,
    SqliteSection,
    JdbcSection,
    PythonSection,
)

KINDS: Mapping[str, type[SinkSection]] = {
    get_args(section.model_fields["kind"].annotation)[0]: section for section in _SECTIONS
}
"""By the word in the configuration."""

if TYPE_CHECKING:
    AnySink = SinkSection
else:
    AnySink = Annotated[Union[_SECTIONS], Field(discriminator="kind")]  # noqa: UP007


def make_sink(name: str, section: SinkSection, config: SecretSettings) -> Sink:
    """The sink that a section describes."""
    folder = type(section).__module__.rpartition(".")[0]
    made: Sink = import_module(f"{folder}.adapter").make_sink(name, section, config)
    return made
