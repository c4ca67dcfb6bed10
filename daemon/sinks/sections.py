"""``[sink.NAME]``: the keys of each kind of sink. A new kind adds its section to ``AnySink``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from daemon.config.sections import Section, flatten
from sparkwriter.iceberg.options import check_properties, properties_of


class SinkSection(Section):
    """What every sink has. Targets begin with its name."""

    ways: ClassVar[tuple[str, ...]] = ()
    """What ``write`` may be, of the sink and of a route to it; none: the sink knows one way."""

    layout: ClassVar[tuple[str, ...]] = ()
    """Which keys of a route say how a table's files are laid out, where the sink has files."""

    kind: str
    write_timeout_s: float = Field(1800.0, gt=0, strict=False)

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

    def owns(self, name: str, setting: str) -> str | None:
        """The section into which one of Spark's settings belongs, if it is the sink's own."""
        return None


class MaintenanceSection(Section):
    """``[sink.NAME.maintenance]``: when a table's history is cut, when a branch is dead."""

    expire_snapshots_older_than_s: float = Field(3600.0, ge=0, strict=False)
    retain_last: int = Field(10, ge=1)
    interval_s: float = Field(300.0, ge=0, strict=False)
    foreign_branches_older_than_s: float = Field(86400.0, ge=3600, strict=False)
    expire_tombstones_older_than_s: float = Field(604800.0, ge=0, strict=False)


class CompactionSection(Section):
    """``[sink.NAME.compaction]``: when files of a table are put together, and how much at once."""

    enabled: bool = True
    max_deletes: int = Field(16, ge=1)
    max_deleted_keys: int = Field(1_000_000, ge=1)
    small_files: int = Field(32, ge=2)
    file_bytes: int = Field(128 << 20, ge=1 << 20)
    round_bytes: int = Field(256 << 20, ge=1 << 20)


class IcebergSection(SinkSection):
    """``kind = "iceberg"``. ``catalog`` passes through to Iceberg's catalog."""

    ways = ("merge", "equality")
    layout = ("partition_by", "sort_by", "table_properties")

    kind: Literal["iceberg"]
    catalog: dict[str, str]
    write: Literal["merge", "equality"] = "merge"
    maintenance: MaintenanceSection = Field(default_factory=MaintenanceSection)
    compaction: CompactionSection = Field(default_factory=CompactionSection)

    @field_validator("catalog", mode="before")
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


class SqliteSection(SinkSection):
    """``kind = "sqlite"``: a file on this machine."""

    kind: Literal["sqlite"]
    path: Path = Field(strict=False)

    def absolute(self, folder: Path) -> Self:
        """The file's path counts from the configuration's folder."""
        return self.model_copy(update={"path": folder / self.path})

    def settings(self) -> Mapping[str, str]:
        """The file."""
        return {"path": str(self.path)}


class JdbcSection(SinkSection):
    """``kind = "jdbc"``: PostgreSQL, MySQL or MariaDB. ``url`` as of ``sparkwriter.jdbc.url``."""

    kind: Literal["jdbc"]
    url: str
    user: str | None = None
    password: str | None = None
    ledger_schema: str = Field("binlogd", min_length=1)
    unstorable: Literal["refuse", "null"] = "refuse"

    def settings(self) -> Mapping[str, str]:
        """Where it is, and as whom."""
        said = {"url": self.url, "user": self.user, "password": self.password}
        return {key: value for key, value in said.items() if value is not None}


class PythonSection(SinkSection):
    """``kind = "python"``: a function of the user's, ``module:function``, in a process of its own.

    ``path``: folders where its module is looked for. ``state``: where marks and rejected rows are.
    """

    kind: Literal["python"]
    entry: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    path: list[str] = Field(default_factory=list)
    state: Path = Field(strict=False)
    memory_bytes: int = Field(1 << 30, ge=64 << 20)
    settings_: dict[str, Any] = Field(default_factory=dict, alias="settings")

    def absolute(self, folder: Path) -> Self:
        """Paths count from the configuration's folder."""
        found = [str(folder / one) for one in self.path]
        return self.model_copy(update={"path": found, "state": folder / self.state})

    def settings(self) -> Mapping[str, str]:
        """The function, and what the user set for it."""
        own = {f"settings.{key}": str(value) for key, value in flatten(self.settings_).items()}
        return {"entry": self.entry, **own}


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
