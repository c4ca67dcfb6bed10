"""``[sink.NAME]``: the keys of each kind of sink. A new kind adds its section to ``AnySink``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from sparkwriter.function.section import PythonSection
from sparkwriter.iceberg.section import IcebergSection
from sparkwriter.kit.section import SinkSection
from sparkwriter.sql.section import JdbcSection
from sparkwriter.sqlite.section import SqliteSection

__all__ = ["KINDS", "AnySink", "PythonSection"]

AnySink = Annotated[
    IcebergSection | SqliteSection | JdbcSection | PythonSection, Field(discriminator="kind")
]

KINDS: Mapping[str, type[SinkSection]] = {
    "iceberg": IcebergSection,
    "sqlite": SqliteSection,
    "jdbc": JdbcSection,
    "python": PythonSection,
}
"""By the word in the configuration."""
