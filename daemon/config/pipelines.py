"""Sections of pipelines: where one reads, where it starts, and its routes."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from changes.formats import NAMES, check_options, check_types, make_format, option_names
from changes.model.model import FormatOptions, Mode, TargetName, ZeroDates
from changes.routes.routing import Route
from daemon.config.expected_counts import ExpectedCountsSection
from daemon.config.pipeline_parts import (
    DEFAULT_MODE,
    CutSection,
    FaultSection,
    KafkaSettings,
    QuotaSection,
    RouteSection,
    TargetText,
    VerifySection,
    WriteMode,
)
from daemon.config.sections import DdlSection
from offsets.key_partitioning import UNKNOWN
from settings.units import Seconds
from sources.base.section import StartSection
from sources.base.topic_selection import entry_problems

PartitionerName = Literal["murmur2", "murmur2_random", "crc32", "consistent_random", "unknown"]
"""What chooses a record's partition by its key (``changes.model.partitioners``)."""

StartWord = Literal["earliest", "latest"]
"""The short form of ``start``."""

OffsetStoreName = Literal["file", "kafka-topic", "kafka-commit", "memory"]
"""The stores of positions that a pipeline may name."""


_ONCE_BESIDE = (
    "default_database", "default_table", "unavailable_value", "tombstones", "positions",
    "encryption_key",
)  # fmt: skip
"""Options of formats that stood in the pipeline's section itself in 0.1.0."""


def _default_stores() -> list[OffsetStoreName]:
    return ["file", "kafka-commit"]


_OPTIONS = FormatOptions()


class PipelineSection(FaultSection):
    """``[pipeline.NAME]``: one source with its routes."""

    topics: list[str] = Field(min_length=1)
    exclude_topics: list[str] = Field(default_factory=list)
    format: str
    group: str | None = Field(None, min_length=1)
    start: StartSection = Field(default_factory=lambda: StartSection(at="earliest"))
    include: list[str] = Field(default_factory=lambda: ["*"], min_length=1)
    exclude: list[str] = Field(default_factory=list)
    time_zone: str = _OPTIONS.time_zone
    zero_dates: ZeroDates = _OPTIONS.zero_dates
    options: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    default_database: str | None = Field(None, min_length=1)
    default_table: str | None = Field(None, min_length=1)
    unavailable_value: str | None = Field(None, min_length=1)
    tombstones: Literal["repeat", "delete"] | None = None
    positions: Literal["tidb-commit-ts", "postgres-lsn"] | None = None
    encryption_key: str | None = Field(None, min_length=1)
    partitioned_by: Literal["key"] | None = None
    partitioner: PartitionerName | None = None
    target: str | None = None
    mode: WriteMode = DEFAULT_MODE
    write: str | None = None
    keys: list[str] | None = Field(None, min_length=1)
    types: dict[str, str] = Field(default_factory=dict)
    route: list[RouteSection] = Field(default_factory=list)
    offset_stores: list[OffsetStoreName] = Field(default_factory=_default_stores, min_length=1)
    offset_topic: str = Field("binlogd-offsets", min_length=1)
    database: str | None = None
    databases: dict[str, str] = Field(default_factory=dict)
    registry: str | None = Field(None, min_length=1)
    collector: str | None = Field(None, min_length=1)
    ddl: DdlSection = Field(default_factory=DdlSection)
    verify: VerifySection = Field(default_factory=VerifySection)
    cut_every: Seconds | None = Field(None, ge=1)
    cuts: CutSection = Field(default_factory=CutSection)
    counts: TargetText | None = None
    expected_counts: ExpectedCountsSection | None = None
    quota: QuotaSection = Field(default_factory=QuotaSection)
    load: Literal["when-asked", "on-first-sight"] = "when-asked"
    kafka: KafkaSettings = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _short_words(cls, value: Any) -> Any:
        """``drop_columns = true`` is the short form of ``ddl.drop_column = "follow"``."""
        if not isinstance(value, dict) or "drop_columns" not in value:
            return value
        drops, ddl = value["drop_columns"], value.get("ddl", {})
        if not isinstance(drops, bool):
            raise ValueError(f"drop_columns: true or false is required, not {drops!r}")
        if not isinstance(ddl, dict) or "drop_column" in ddl:
            raise ValueError("drop_columns and ddl.drop_column say the same: set one of them")
        rest = {name: setting for name, setting in value.items() if name != "drop_columns"}
        return rest | {"ddl": ddl | {"drop_column": "follow" if drops else "keep"}}

    @field_validator("start", mode="before", json_schema_input_type=StartSection | StartWord)
    @classmethod
    def _short_start(cls, value: Any) -> Any:
        return {"at": value} if isinstance(value, str) else value

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str) -> str:
        if value not in NAMES:
            raise ValueError(f"unknown format {value!r}; allowed: {', '.join(NAMES)}")
        return value

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"unknown time zone {value!r}; an IANA name is required") from error
        return value

    @model_validator(mode="after")
    def _topics_fit(self) -> Self:
        if problems := list(entry_problems(self.topics, self.exclude_topics)):
            raise ValueError("\n".join(problems))
        return self

    @model_validator(mode="after")
    def _has_routes(self) -> Self:
        if (self.target is None) == (not self.route):
            raise ValueError("either target or one or more [[route]] is required, not both")
        if self.route and (
            self.keys is not None or {"mode", "write", "types"} & self.model_fields_set
        ):
            raise ValueError(
                "mode, write, keys and types belong to each [[route]] when there are any"
            )
        for route in self.routes():
            try:
                check_types(self.format, route.types)
            except ValueError as error:
                raise ValueError(f"types: {error}") from error
        return self

    @model_validator(mode="after")
    def _one_way_to_databases(self) -> Self:
        if self.database is not None and self.databases:
            raise ValueError("database or databases is required, not both")
        return self

    def named_databases(self) -> list[tuple[str, str]]:
        """The databases that it names, each with its key."""
        one = [] if self.database is None else [("database", self.database)]
        return one + [(f"databases.{schema}", name) for schema, name in self.databases.items()]

    def database_of(self, schema: str) -> str | None:
        """The database of a source's schema: that of the first pattern that matches it."""
        found = (name for at, name in self.databases.items() if fnmatchcase(schema, at))
        return self.database or next(found, None)

    @model_validator(mode="after")
    def _options_fit(self) -> Self:
        for name in self.options:
            allowed = option_names(self.format)
            if name not in allowed:
                raise ValueError(
                    f"options: {self.format} has no option {name!r}; allowed: {', '.join(allowed)}"
                )
            if name in self.misplaced_options:
                raise ValueError(f"{name} and options.{name} say the same: set the second alone")
        check_options(self.format, self.format_options())
        return self

    @model_validator(mode="after")
    def _keys_have_partitions(self) -> Self:
        if (self.partitioned_by is None) != (self.partitioner is None):
            raise ValueError(
                'partitioned_by = "key" and partitioner belong together: how a key leads to its '
                "partition is known by its producer (Debezium, Kafka Connect: murmur2; clients of "
                "librdkafka: consistent_random); of others it is unknown, and believed"
            )
        if self.partitioner in (None, UNKNOWN):
            return self
        if not make_format(self.format, self.format_options()).keyed:
            raise ValueError(
                f"partitioner: {self.format} is read without the records' keys, so it can't be "
                'computed: set partitioner = "unknown" where its producer has each row\'s changes '
                "in one partition"
            )
        return self

    @model_validator(mode="after")
    def _stores_fit(self) -> Self:
        if problems := list(self._unfit_stores()):
            raise ValueError("\n".join(problems))
        return self

    def _unfit_stores(self) -> Iterator[str]:
        stores = self.offset_stores
        if len(set(stores)) < len(stores):
            yield "offset_stores: one is named twice"
        if "kafka-commit" in stores[:-1]:
            yield (
                "offset_stores: kafka-commit comes last: the group may only know what the others "
                "hold already"
            )
        if "memory" in stores and self.remembers:
            yield "offset_stores: memory adds nothing to a store that outlives the process"
        if self.start.force is not None and not self.remembers:
            yield (
                "offset_stores: start.force works once, and only file or kafka-topic remember "
                "that it did"
            )
        if "kafka-topic" in stores and self.offset_topic in self.topics:
            yield f"offset_topic: {self.offset_topic!r} is one of the topics that are read"
        if self.dead_letter_topic in self.topics:
            yield f"dead_letters: {self.dead_letter_topic!r} is one of the topics that are read"
        if self.on_refused_target != "stop" and "file" not in stores:
            yield (
                "on_refused_target: a quarantine's spill is a file of this machine, so "
                "offset_stores must have file, which lists it"
            )

    @property
    def loads_unasked(self) -> bool:
        """Whether tables are loaded without a command."""
        reloads = "reload" in (self.on_refused_target, self.ddl.lossy_change)
        return reloads or self.load != "when-asked"

    @model_validator(mode="after")
    def _has_a_database(self) -> Self:
        if self.loads_unasked and not self.named_databases():
            raise ValueError(
                'load = "on-first-sight", on_refused_target = "reload" and ddl.lossy_change = '
                '"reload" read the source: set database = "NAME", of a [database.NAME]'
            )
        return self

    @property
    def remembers(self) -> bool:
        """Whether whole snapshots outlive the process: topic ids, marks, a force that was carried
        out."""
        return bool({"file", "kafka-topic"} & set(self.offset_stores))

    def format_options(self) -> FormatOptions:
        """The options for the format."""
        extra = self.options | {name: getattr(self, name) for name in self.misplaced_options}
        by_key = self.partitioned_by == "key"
        return FormatOptions(self.time_zone, self.zero_dates, extra, by_key=by_key)

    @property
    def misplaced_options(self) -> list[str]:
        """The format's options that stand beside ``options``: read there for one release more."""
        return [name for name in _ONCE_BESIDE if getattr(self, name) is not None]

    def routes(self) -> list[Route]:
        """The routes for the router."""
        if self.target is not None:
            own = {name: getattr(self, name) for name in ("mode", "write", "keys", "types")}
            return [self._route(RouteSection(target=self.target, **own))]
        return [self._route(route) for route in self.route]

    @property
    def cuts_table(self) -> TargetName | None:
        """Where its cuts are listed; None where it makes none."""
        return None if self.cut_every is None else self.cuts.listed_in(self.routes())

    def _route(self, route: RouteSection) -> Route:
        return Route(
            include=tuple(route.tables if route.tables is not None else self.include),
            exclude=(*self.exclude, *route.exclude),
            template=route.target,
            mode=Mode(route.mode),
            options=tuple(route.options.items()),
            keys=None if route.keys is None else tuple(route.keys),
            types=tuple(route.types.items()),
            shape=route.shape,
            reader_renames=tuple(route.reader_renames.items()),
        )
