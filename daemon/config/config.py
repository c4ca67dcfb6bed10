"""The configuration as a value: all sections of a file, and the checks across them.

``pipelines.py`` and ``sections.py`` have the sections, ``sparkwriter/sections.py`` those of sinks.
``file.py`` turns a file into a configuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from actors.staging.process import Kind
from changes.routes.routing import Route
from daemon.config.owners import shared_targets
from daemon.config.pipeline_parts import LoadSection, shares, unfit_shares
from daemon.config.pipelines import PipelineSection, check_kafka
from daemon.config.sections import (
    BatchSection,
    DaemonSection,
    EventsSection,
    JobsSection,
    LogSection,
    MemorySection,
    MetricsSection,
    TracingSection,
)
from databases.base.section import DatabaseSection, unfit_primary
from settings.secrets import Redactor, embedded_secrets_of, secrets_in
from settings.section import Section
from sparkwriter.sections import AnySink, PythonSection
from sparkwriter.session.section import SparkSection

SPARK_OWNED = {
    "spark.master": "spark.master is a key of its own, beside [spark.conf]",
    "spark.sql.session.timeZone": "instants are written in UTC",
    "spark.submit.deployMode": "the driver is this process's own",
}
"""Spark settings on which correctness rests. Setting them would have no effect, or a wrong one."""


class Config(Section):
    """The whole file. ``[kafka]`` passes any librdkafka setting through."""

    kafka: dict[str, str | int | float | bool]
    sink: dict[str, AnySink] = Field(min_length=1)
    pipeline: dict[str, PipelineSection] = Field(min_length=1)
    database: dict[str, DatabaseSection] = Field(default_factory=dict)
    daemon: DaemonSection = Field(default_factory=DaemonSection)
    log: LogSection = Field(default_factory=LogSection)
    events: EventsSection = Field(default_factory=EventsSection)
    metrics: MetricsSection = Field(default_factory=MetricsSection)
    tracing: TracingSection = Field(default_factory=TracingSection)
    jobs: JobsSection = Field(default_factory=JobsSection)
    load: LoadSection = Field(default_factory=LoadSection)
    batch: BatchSection = Field(default_factory=BatchSection)
    memory: MemorySection = Field(default_factory=MemorySection)
    spark: SparkSection = Field(default_factory=SparkSection)
    _secrets: frozenset[str] = PrivateAttr(default=frozenset())
    _referring: frozenset[str] = PrivateAttr(default=frozenset())
    _file: Path | None = PrivateAttr(default=None)
    _read: Callable[[Path], Config | None] | None = PrivateAttr(default=None)
    _redactor: Redactor | None = PrivateAttr(default=None)
    _shares: Mapping[str, float] | None = PrivateAttr(default=None)

    @field_validator("kafka", mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        return check_kafka(value)

    @model_validator(mode="before")
    @classmethod
    def _writers(cls, value: Any) -> Any:
        """``spark.writers`` is what ``daemon.writers`` was called while all sinks were Spark's."""
        spark = value.get("spark") if isinstance(value, dict) else None
        if not isinstance(spark, dict) or "writers" not in spark:
            return value
        spark, daemon = dict(spark), value.get("daemon", {})
        writers = spark.pop("writers")
        if not isinstance(daemon, dict):  # the section's own check reports it
            return value | {"spark": spark}
        if "writers" in daemon:
            raise ValueError("daemon.writers and spark.writers say the same: set daemon.writers")
        return value | {"daemon": daemon | {"writers": writers}, "spark": spark}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        problems = [
            *self._unusable_names(),
            *self._unfit_routes(),
            *self._shared_groups(),
            *shared_targets({name: p.routes() for name, p in self.pipeline.items()}),
            *self._owned_spark(),
            *self._shared_topics(),
            *self._unknown_databases(),
            *unfit_shares({name: pipeline.quota for name, pipeline in self.pipeline.items()}),
        ]
        brokers = self.kafka.get("bootstrap.servers")
        if brokers is None:
            problems.append('kafka: "bootstrap.servers" is missing')
        elif not isinstance(brokers, str) or not brokers.strip():
            problems.append(f'kafka.bootstrap.servers: "host:port" is wanted, not {brokers!r}')
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def group(self, pipeline: str) -> str:
        """The consumer group of a pipeline: its own, or one made from its name."""
        return self.pipeline[pipeline].group or f"binlogd-{pipeline}"

    def routes(self, pipeline: str) -> list[Route]:
        """The routes of a pipeline, each with the options of its sink."""
        return [self._with_options(route) for route in self.pipeline[pipeline].routes()]

    def away_after_s(self, pipeline: str) -> float | None:
        """How long a sink may be silent before its targets are spilled. None where no target would
        wait for it, or where what is spilled would not be known after a restart."""
        section = self.pipeline[pipeline]
        sinks = {route.template.split(".")[0] for route in section.routes()}
        apart = len(sinks) > 1 and "file" in section.offset_stores
        return section.away_after_s if apart else None

    def _with_options(self, route: Route) -> Route:
        sink = self.sink[route.template.split(".")[0]]
        options = sink.route_options(dict(route.options))
        return replace(route, options=tuple(options.items()))

    def database_of(self, pipeline: str, schema: str) -> str | None:
        """The name of the database that holds a pipeline's tables of a schema (in MySQL's word: a
        database); None where none is configured."""
        return self.pipeline[pipeline].database_of(schema)

    def kafka_of(self, pipeline: str) -> dict[str, str | int | float | bool]:
        """The client's settings for a pipeline. Its own overrule the common ones."""
        return {**self.kafka, **self.pipeline[pipeline].kafka}

    def remember(
        self,
        secrets: Mapping[str, Collection[str]],
        file: Path,
        read: Callable[[Path], Config | None],
    ) -> None:
        """Note the file that this was read from, and of each setting, by its dotted name, the texts
        that came from files and credentials: they are shown nowhere. ``read`` reads it again."""
        self._secrets = frozenset(secret for found in secrets.values() for secret in found)
        self._referring, self._file, self._read = frozenset(secrets), file, read

    def again(self) -> Config | None:
        """What its file says now; None without a file, or where that can't be read at the time."""
        return None if self._file is None or self._read is None else self._read(self._file)

    def adopt(self, pipeline: str, section: PipelineSection) -> None:
        """Replace a pipeline's section, while that pipeline stands still: a reload's one change to
        what is otherwise fixed. Its next life is built from it. Also of a pipeline that is new."""
        # Another thread may be reading them one by one.
        object.__setattr__(self, "pipeline", {**self.pipeline, pipeline: section})

    def drop(self, pipeline: str) -> None:
        """Remove the section of a pipeline that has ended for good."""
        kept = {name: one for name, one in self.pipeline.items() if name != pipeline}
        object.__setattr__(self, "pipeline", kept)

    def memory_shares(self) -> Mapping[str, float]:
        """Each pipeline's share of the budgets in ``[memory]``."""
        own = {name: pipeline.quota for name, pipeline in self.pipeline.items()}
        return shares(own) if self._shares is None else self._shares

    def writers_of(self, pipeline: str) -> int | None:
        """How many writers of a sink a pipeline may have at a time; None: all."""
        section = self.pipeline.get(pipeline)
        return None if section is None else section.quota.writers

    def adopt_shares(self, found: Mapping[str, float]) -> None:
        """Give pipelines their shares of the memory, before others that take of it are known."""
        self._shares = found

    def adopt_log(self, section: LogSection) -> None:
        """Note the log's level as it is now."""
        object.__setattr__(self, "log", section)

    @property
    def file(self) -> Path | None:
        """The file that this was read from, None where there is none."""
        return self._file

    @property
    def referring_settings(self) -> frozenset[str]:
        """The dotted names of settings that hold a ``${file:…}`` or ``${credential:…}``."""
        return self._referring

    @property
    def secrets(self) -> frozenset[str]:
        """The secrets: values from files and credentials, and of settings whose name says so."""
        tables: list[Mapping[str, Any]] = [
            self.kafka,
            self.spark.conf,
            *(pipeline.kafka for pipeline in self.pipeline.values()),
            *(sink.settings() for sink in self.sink.values()),
            *(sink.settings_ for sink in self.sink.values() if isinstance(sink, PythonSection)),
            {"token": self.metrics.token},
            {"token": self.events.webhook},  # its path is what one needs to post there
            *({"token": value} for value in self.tracing.headers.values()),
            *({"encryption_key": pipeline.encryption_key} for pipeline in self.pipeline.values()),
            *({"password": one.password} for one in self.database.values() if one.password),
            *({"mask_salt": route.mask_salt} for p in self.pipeline.values() for route in p.route),
        ]
        # Not of pipelines: "token = status" in a filter compares two columns.
        embedded = embedded_secrets_of(self.model_dump(mode="json", exclude={"pipeline"}))
        return self._secrets.union(embedded, *map(secrets_in, tables))

    @property
    def redactor(self) -> Redactor:
        """Removes the secrets from texts."""
        if self._redactor is None:
            self._redactor = Redactor(self.secrets)
        return self._redactor

    def _owned_spark(self) -> Iterator[str]:
        for key in self.spark.conf:
            if key in SPARK_OWNED:
                yield f"spark.conf.{key}: is set by binlogd itself: {SPARK_OWNED[key]}"
            for name, sink in self.sink.items():
                if (section := sink.owns(name, key)) is not None:
                    yield f"spark.conf.{key}: belongs into [{section}]"

    def _unusable_names(self) -> Iterator[str]:
        sections: Mapping[str, Mapping[str, Section]]
        sections = {"pipeline": self.pipeline, "sink": self.sink, "database": self.database}
        for kind, names in sections.items():
            for name in names:
                if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
                    yield f"{kind}.{name}: a name is letters, digits, - and _, a letter first"

    def _unknown_databases(self) -> Iterator[str]:
        known = ", ".join(sorted(self.database)) or "none"
        for name, pipeline in self.pipeline.items():
            for key, database in pipeline.named_databases():
                if database not in self.database:
                    yield f"pipeline.{name}.{key}: there is no database {database!r}; have: {known}"
        for name, section in self.database.items():
            if (why := unfit_primary(section, self.database)) is not None:
                yield f"database.{name}.{why}"

    def _unfit_routes(self) -> Iterator[str]:
        for name, pipeline in self.pipeline.items():
            for route in pipeline.routes():
                sink = self.sink.get(route.template.split(".")[0])
                if sink is None:
                    known = ", ".join(sorted(self.sink))
                    yield f"pipeline.{name}: target {route.template!r} names no sink; have: {known}"
                    continue
                try:
                    sink.route_options(dict(route.options))
                except ValueError as error:
                    yield f"pipeline.{name}: target {route.template!r}: {error}"

    def _shared_topics(self) -> Iterator[str]:
        read = {topic: name for name, p in self.pipeline.items() for topic in p.topics}
        for key in ("notifications_topic", "signals_topic"):
            topic = getattr(self.jobs, key)
            if topic in read:
                yield f"jobs.{key}: {topic!r} is read by pipeline.{read[topic]}"
        if self.jobs.signals_topic and self.jobs.signals_topic == self.jobs.notifications_topic:
            yield "jobs.notifications_topic: is the signals_topic, too"

    def _shared_groups(self) -> Iterator[str]:
        groups: dict[str, str] = {}
        for name in self.pipeline:
            other = groups.setdefault(self.group(name), name)
            if other != name:
                yield f"pipeline.{name}: group {self.group(name)!r} is pipeline.{other}'s already"


def formats(config: Config) -> Callable[[str], Kind]:
    """A pipeline's format, as the configuration has it when one asks."""

    def kind(pipeline: str) -> Kind:
        section = config.pipeline[pipeline]
        return section.format, section.format_options()

    return kind
