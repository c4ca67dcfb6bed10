"""What a route may ask of an Iceberg sink beside what every sink does. Pure: imports no Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, field_validator

from changes.routes.shaping.layout import Sort, Transform, sorts_of, transforms_of
from settings.section import Section, flatten
from settings.units import Bytes, Seconds
from sparkwriter.kit.section import SinkSection

_OURS = (
    "binlogd.",
    "encryption.",
    "format-version",
    "gc.enabled",
    "write.delete.",
    "write.format.",
    "write.merge.",
    "write.update.",
    "write.delete-format.",
)
"""What properties begin with that binlogd's own files and deletions depend on."""


_JDBC_CATALOG = "org.apache.iceberg.jdbc.JdbcCatalog"


class Write(Enum):
    """How a batch gets into a keyed table. What the table then shows is the same."""

    MERGE = "merge"
    """The stored rows are looked up: quickest to read."""
    EQUALITY = "equality"
    """Rows and the keys that they replace are laid beside the stored ones: quickest to write."""


def write_of(options: Mapping[str, str]) -> Write:
    """How it is to be written; a batch that can't be written so goes by MERGE."""
    return Write(options.get("write", Write.MERGE.value))


class FileLayout(NamedTuple):
    """How a table's files are laid out, and what its properties are."""

    partitions: tuple[Transform, ...] = ()
    order: tuple[Sort, ...] = ()
    properties: Mapping[str, str] = {}


NO_LAYOUT = FileLayout()
"""Neither partitions nor an order."""


def layout_of(options: Mapping[str, str]) -> FileLayout:
    """What a route asks of a table's files."""
    return FileLayout(
        transforms_of(json.loads(options.get("partition_by", "[]"))),
        sorts_of(json.loads(options.get("sort_by", "[]"))),
        properties_of(options),
    )


def properties_of(options: Mapping[str, str]) -> dict[str, str]:
    """The table properties that a route asks for."""
    return dict(json.loads(options.get("table_properties", "{}")))


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise ValueError for a property that is binlogd's own to set."""
    for name in properties:
        if not name.strip():
            raise ValueError("table_properties: a name is empty")
        if any(name.lower().startswith(own) for own in _OURS):
            raise ValueError(f"table_properties: {name} is binlogd's own to set")


class MaintenanceSection(Section):
    """``[sink.NAME.maintenance]``: when a table's history is cut, and from which age another
    machine's branch is dead."""

    expire_snapshots_older_than_s: Seconds = Field(3600.0, ge=0)
    retain_last: int = Field(10, ge=1)
    interval_s: Seconds = Field(300.0, ge=0)
    foreign_branches_older_than_s: Seconds = Field(86400.0, ge=3600)
    expire_tombstones_older_than_s: Seconds = Field(604800.0, ge=0)


class CompactionSection(Section):
    """``[sink.NAME.compaction]``: when files of a table are put together, and how much of that is
    done between two batches.

    ``max_deletes``: a reader never applies so many files of deletions to one file of rows, nor
    ``max_deleted_keys`` deleted keys, once compaction has caught up. ``small_files``: so many are
    put together. ``file_bytes``: the size of a file. ``round_bytes``: what is rewritten at most
    before the next batch has its turn; at least one file is.
    """

    enabled: bool = True
    max_deletes: int = Field(16, ge=1)
    max_deleted_keys: int = Field(1_000_000, ge=1)
    small_files: int = Field(32, ge=2)
    file_bytes: Bytes = Field(128 << 20, ge=1 << 20)
    round_bytes: Bytes = Field(256 << 20, ge=1 << 20)


class IcebergSection(SinkSection):
    """``kind = "iceberg"``. ``catalog`` passes through to Iceberg's catalog."""

    ways = ("merge", "equality")
    layout = ("partition_by", "sort_by", "table_properties")
    tags = True
    needs_spark = True

    kind: Literal["iceberg"]
    catalog: dict[str, str]
    write: Literal["merge", "equality"] = "merge"
    maintenance: MaintenanceSection = Field(default_factory=MaintenanceSection)
    compaction: CompactionSection = Field(default_factory=CompactionSection)

    @property
    def transactions(self) -> bool:
        """Where the catalog keeps its pointers in a database."""
        if "catalog-impl" in self.catalog:
            return self.catalog["catalog-impl"] == _JDBC_CATALOG
        return self.catalog.get("type", "").lower() == "jdbc"

    @field_validator("catalog", mode="before", json_schema_input_type=dict[str, Any])
    @classmethod
    def _flat(cls, value: Any) -> Any:
        return flatten(value) if isinstance(value, dict) else value

    def route_options(self, asked: Mapping[str, str]) -> dict[str, str]:
        """The sink's own way where the route names none."""
        check_properties(properties_of(asked))
        return super().route_options({"write": self.write, **asked})

    def absolute(self, folder: Path) -> Self:
        """Make a local warehouse and an SQLite file independent of the working directory."""
        made = dict(self.catalog)
        warehouse = made.get("warehouse", "")
        if warehouse and "://" not in warehouse and not warehouse.startswith("file:"):
            made["warehouse"] = str(folder / warehouse)
        prefix = "jdbc:sqlite:"
        uri = made.get("uri", "")
        if uri.startswith(prefix) and not uri.startswith(prefix + "file:"):
            made["uri"] = prefix + str(folder / uri.removeprefix(prefix))
        return self.model_copy(update={"catalog": made})

    def settings(self) -> Mapping[str, str]:
        """The catalog's properties."""
        return {f"catalog.{key}": value for key, value in self.catalog.items()}

    def owns(self, name: str, setting: str) -> str | None:
        """Spark's catalog of the sink's name."""
        own = f"{setting}.".startswith(f"spark.sql.catalog.{name}.")
        return f"sink.{name}.catalog" if own else None
