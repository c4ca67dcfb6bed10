"""The configuration as values: its sections, their defaults, and what fits together.

How a file becomes one is ``daemon/config_file.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)

from changes.formats import FORMATS
from changes.model import FormatOptions, Mode, ZeroDates
from changes.routing import Route
from daemon.owners import globs_meet, target_globs
from daemon.secrets import Redactor, secrets_in
from offsets.position import TopicPartition
from offsets.recovery import StartAt

DAEMON_OWNED_KAFKA = frozenset(
    {"group.id", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset"}
)
"""librdkafka settings on which exactly-once rests: binlogd sets them, a configuration may not."""


SPARK_OWNED = {
    "spark.master": "spark.master is a key of its own, beside [spark.conf]",
    "spark.sql.session.timeZone": "instants are written in UTC",
    "spark.submit.deployMode": "the driver is this process's own",
}
"""Spark settings on which being right rests: setting them would be without effect, or wrong."""


class Section(BaseModel):
    """Unknown keys are refused, values are not converted, nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class DaemonSection(Section):
    """``[daemon]``: where it keeps its files and how it commits and ends."""

    state_dir: Path = Field(Path("var/state"), strict=False)
    staging_dir: Path = Field(Path("var/staging"), strict=False)
    commit_interval_s: float = Field(5.0, gt=0, strict=False)
    drain_timeout_s: float = Field(60.0, gt=0, strict=False)
    processors: int = Field(2, ge=1, le=64)
    stuck_after_s: float = Field(120.0, gt=0, strict=False)


class MetricsSection(Section):
    """``[metrics]``: where ``/metrics``, ``/healthz`` and ``/readyz`` are; empty: nowhere."""

    listen: str = ""

    @field_validator("listen")
    @classmethod
    def _address(cls, value: str) -> str:
        host, colon, port = value.rpartition(":")
        if value and not (host and colon and port.isdecimal() and int(port) <= 65535):
            raise ValueError(f'{value!r} is not host:port, such as "127.0.0.1:9464"')
        return value

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port, None when nothing is served."""
        host, _, port = self.listen.rpartition(":")
        return (host.strip("[]"), int(port)) if self.listen else None


class LogSection(Section):
    """``[log]``: one event a line; ``file`` empty means standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["json", "text"] = "text"
    file: str = ""


class BatchSection(Section):
    """``[batch]``: when a batch is due. It closes when no write of its target is in flight."""

    max_messages: int = Field(50_000, ge=1)
    max_bytes: int = Field(16 << 20, ge=1)
    max_age_s: float = Field(1.0, gt=0, strict=False)


class MemorySection(Section):
    """``[memory]``: one budget for all messages in hand, and one for staged files on disk.

    The pipelines share both evenly. An eighth of the memory is librdkafka's queue, an eighth the
    mailboxes, the rest the buffers.
    """

    budget_bytes: int = Field(256 << 20, ge=16 << 20)
    staged_bytes: int = Field(8 << 30, ge=1 << 20)

    def queue_kbytes(self, pipelines: int) -> int:
        """librdkafka's queue of one pipeline, in its unit."""
        return self.budget_bytes // 8 // pipelines // 1024

    def mailbox_bytes(self, processors: int) -> int:
        """The mailbox of one of so many processors in the process."""
        return self.budget_bytes // 8 // processors

    def buffer_bytes(self, processors: int) -> int:
        """The buffers of one of so many processors in the process."""
        return self.budget_bytes * 3 // 4 // processors


class SparkSection(Section):
    """``[spark]``: the one session. ``[spark.conf]`` passes any Spark setting through."""

    master: str = "local[*]"
    writers: int = Field(4, ge=1, le=64)
    warm_up: bool = True
    conf: dict[str, str] = Field(default_factory=dict)

    @field_validator("conf", mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        return _flatten(value) if isinstance(value, dict) else value


class MaintenanceSection(Section):
    """``[sink.NAME.maintenance]``: when a table's history is cut, when a branch is dead."""

    expire_snapshots_older_than_s: float = Field(3600.0, ge=0, strict=False)
    retain_last: int = Field(10, ge=1)
    interval_s: float = Field(300.0, ge=0, strict=False)
    foreign_branches_older_than_s: float = Field(86400.0, ge=3600, strict=False)


class SinkSection(Section):
    """``[sink.NAME]``: a sink; targets begin with its name. ``catalog`` passes through."""

    kind: Literal["iceberg"]
    catalog: dict[str, str]
    maintenance: MaintenanceSection = Field(default_factory=MaintenanceSection)

    @field_validator("catalog", mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        return _flatten(value) if isinstance(value, dict) else value


class StartSection(Section):
    """``start = "earliest"`` or ``[pipeline.NAME.start]``: where to begin when nothing is recorded.

    ``force`` overrules what is recorded, once for each text: change it to force again.
    """

    at: Literal["earliest", "latest", "timestamp", "offset"]
    timestamp: datetime | None = None
    offsets: dict[str, int] = Field(default_factory=dict)
    force: str | None = Field(None, min_length=1)

    @field_validator("offsets")
    @classmethod
    def _partitions(cls, value: dict[str, int]) -> dict[str, int]:
        for name in value:
            TopicPartition.parse(name)
        return value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.at == "timestamp") != (self.timestamp is not None):
            raise ValueError('at = "timestamp" and a timestamp go together')
        if self.timestamp is not None and self.timestamp.tzinfo is None:
            raise ValueError("timestamp needs a zone, such as 2026-01-31T00:00:00Z")
        if (self.at == "offset") != bool(self.offsets):
            raise ValueError('at = "offset" and offsets = {"topic:0" = 123} go together')
        return self

    @property
    def start_at(self) -> StartAt:
        """The setting as the position function knows it."""
        return StartAt(self.at)


class RouteSection(Section):
    """``[[pipeline.NAME.route]]``: which tables go where, and how."""

    tables: list[str] | None = None
    exclude: list[str] = Field(default_factory=list)
    target: str
    mode: Literal["upsert", "append"] = "upsert"
    keys: list[str] | None = Field(None, min_length=1)


class PipelineSection(Section):
    """``[pipeline.NAME]``: one source with its routes."""

    topics: list[str] = Field(min_length=1)
    format: str
    group: str | None = Field(None, min_length=1)
    start: StartSection = Field(default_factory=lambda: StartSection(at="earliest"))
    include: list[str] = Field(default_factory=lambda: ["*"], min_length=1)
    exclude: list[str] = Field(default_factory=list)
    time_zone: str = "UTC"
    zero_dates: ZeroDates = "null"
    default_database: str | None = Field(None, min_length=1)
    default_table: str | None = Field(None, min_length=1)
    target: str | None = None
    mode: Literal["upsert", "append"] = "upsert"
    keys: list[str] | None = Field(None, min_length=1)
    route: list[RouteSection] = Field(default_factory=list)
    kafka: dict[str, str | int | float | bool] = Field(default_factory=dict)

    @field_validator("start", mode="before")
    @classmethod
    def _short_start(cls, value: Any) -> Any:
        return {"at": value} if isinstance(value, str) else value

    @field_validator("kafka", mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        return _check_kafka(value)

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str) -> str:
        if value not in FORMATS:
            raise ValueError(f"unknown format {value!r}; allowed: {', '.join(sorted(FORMATS))}")
        return value

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"unknown time zone {value!r}; an IANA name is wanted") from error
        return value

    @model_validator(mode="after")
    def _has_routes(self) -> Self:
        if (self.target is None) == (not self.route):
            raise ValueError("either target or one or more [[route]] is wanted, not both")
        if self.route and (self.keys is not None or "mode" in self.model_fields_set):
            raise ValueError("mode and keys belong to each [[route]] when there are any")
        self.routes()
        return self

    def format_options(self) -> FormatOptions:
        """The options as the format takes them."""
        named = {"default_database": self.default_database, "default_table": self.default_table}
        extra = {option: name for option, name in named.items() if name is not None}
        return FormatOptions(self.time_zone, self.zero_dates, extra)

    def routes(self) -> list[Route]:
        """The routes as the router takes them."""
        if self.target is not None:
            own = RouteSection(target=self.target, mode=self.mode, keys=self.keys)
            return [self._route(own)]
        return [self._route(route) for route in self.route]

    def _route(self, route: RouteSection) -> Route:
        return Route(
            include=tuple(route.tables if route.tables is not None else self.include),
            exclude=(*self.exclude, *route.exclude),
            template=route.target,
            mode=Mode(route.mode),
            keys=None if route.keys is None else tuple(route.keys),
        )


class Config(Section):
    """The whole file. ``[kafka]`` passes any librdkafka setting through."""

    kafka: dict[str, str | int | float | bool]
    sink: dict[str, SinkSection] = Field(min_length=1)
    pipeline: dict[str, PipelineSection] = Field(min_length=1)
    daemon: DaemonSection = Field(default_factory=DaemonSection)
    log: LogSection = Field(default_factory=LogSection)
    metrics: MetricsSection = Field(default_factory=MetricsSection)
    batch: BatchSection = Field(default_factory=BatchSection)
    memory: MemorySection = Field(default_factory=MemorySection)
    spark: SparkSection = Field(default_factory=SparkSection)
    _secrets: frozenset[str] = PrivateAttr(default=frozenset())

    @field_validator("kafka", mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        return _check_kafka(value)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        problems = [
            *self._unusable_names(),
            *self._unknown_sinks(),
            *self._shared_groups(),
            *self._shared_targets(),
            *self._owned_spark(),
        ]
        if "bootstrap.servers" not in self.kafka:
            problems.append('kafka: "bootstrap.servers" is missing')
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def group(self, pipeline: str) -> str:
        """The consumer group of a pipeline: its own, or one made from its name."""
        return self.pipeline[pipeline].group or f"binlogd-{pipeline}"

    def remember(self, secrets: frozenset[str]) -> None:
        """Take note of texts that came from files and credentials: they are shown nowhere."""
        self._secrets = secrets

    @property
    def secrets(self) -> frozenset[str]:
        """What must never be said: values from files and credentials, and of telling names."""
        tables: list[Mapping[str, Any]] = [
            self.kafka,
            self.spark.conf,
            *(pipeline.kafka for pipeline in self.pipeline.values()),
            *(sink.catalog for sink in self.sink.values()),
        ]
        return self._secrets.union(*map(secrets_in, tables))

    @property
    def redactor(self) -> Redactor:
        """What takes the secrets out of a text."""
        return Redactor(self.secrets)

    def _owned_spark(self) -> Iterator[str]:
        for key in self.spark.conf:
            if key in SPARK_OWNED:
                yield f"spark.conf.{key}: is set by binlogd itself: {SPARK_OWNED[key]}"
            for name in self.sink:
                if key == f"spark.sql.catalog.{name}" or key.startswith(
                    f"spark.sql.catalog.{name}."
                ):
                    yield f"spark.conf.{key}: belongs into [sink.{name}.catalog]"

    def _unusable_names(self) -> Iterator[str]:
        for kind, names in (("pipeline", self.pipeline), ("sink", self.sink)):
            for name in names:
                if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
                    yield f"{kind}.{name}: a name is letters, digits, - and _, a letter first"

    def _unknown_sinks(self) -> Iterator[str]:
        for name, pipeline in self.pipeline.items():
            for route in pipeline.routes():
                sink = route.template.split(".")[0]
                if sink not in self.sink:
                    known = ", ".join(sorted(self.sink))
                    yield f"pipeline.{name}: target {route.template!r} names no sink; have: {known}"

    def _shared_groups(self) -> Iterator[str]:
        groups: dict[str, str] = {}
        for name in self.pipeline:
            other = groups.setdefault(self.group(name), name)
            if other != name:
                yield f"pipeline.{name}: group {self.group(name)!r} is pipeline.{other}'s already"

    def _shared_targets(self) -> Iterator[str]:
        """A target has one owner: two pipelines would fence each other for ever."""
        claims = [
            (name, glob)
            for name, pipeline in self.pipeline.items()
            for route in pipeline.routes()
            for glob in target_globs(route)
        ]
        for i, (name, glob) in enumerate(claims):
            for other, other_glob in claims[:i]:
                if name != other and globs_meet(glob, other_glob):
                    yield (
                        f"pipeline.{name}: its targets {glob!r} may be those of "
                        f"pipeline.{other} ({other_glob!r}): a target has one owner; "
                        "narrow include or change target"
                    )


def _flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """``bootstrap.servers = "…"`` is a nested table to TOML; here it is one name."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= _flatten(value, f"{name}.")
        else:
            flat[name] = value
    return flat


def _check_kafka(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    flat = _flatten(value)
    owned = sorted(DAEMON_OWNED_KAFKA & flat.keys())
    if owned:
        hint = " (the group is pipeline.NAME.group)" if "group.id" in owned else ""
        raise ValueError(f"{', '.join(owned)} is set by binlogd itself{hint}")
    return flat
