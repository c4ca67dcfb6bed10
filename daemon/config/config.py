"""The configuration as a value: all sections of a file, and the checks across them.

``pipelines.py`` and ``sections.py`` have the sections, ``sparkwriter/sections.py`` those of sinks.
``file.py`` turns a file into a configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PrivateAttr, model_validator

from changes.formats import option_names
from changes.model.model import FormatOptions
from changes.model.registry import Registry
from changes.routes.routing import Route, Router
from collector.connect.section import ConnectSection
from collector.connector.section import CollectorSection
from collector.section import BrokerSection
from daemon.config.brokers import EMBEDDED_HINT, named_topics, unfit_brokers
from daemon.config.collectors import fed_by_collectors, unfit_collectors
from daemon.config.gates import GateSection, gate_topics, unfit_gates
from daemon.config.owners import (
    own_topics,
    owned_spark,
    shared_topics,
    unfit_expected_counts,
    unfit_targets,
)
from daemon.config.pipeline_parts import KafkaSettings, LoadSection, unfit_quotas
from daemon.config.pipelines import PipelineSection
from daemon.config.references import (
    shared_groups,
    unfit_routes,
    unknown_databases,
    unknown_registries,
    unusable_names,
)
from daemon.config.sections import (
    BatchSection,
    DaemonSection,
    EventsSection,
    JobsSection,
    LogSection,
    MemorySection,
    MetricsSection,
    TracingSection,
    with_writers,
)
from databases.base.section import DatabaseSection
from settings.secrets import Redactor, embedded_secrets_of, secrets_in
from settings.section import Section
from sources.base.topic_selection import TopicSelection
from sources.registry.section import RegistrySection
from sparkwriter.sections import AnySink, PythonSection
from sparkwriter.session.section import SparkSection

if TYPE_CHECKING:
    from actors.staging.process import Kind

NAMED = ("pipeline", "sink", "database", "registry", "collector")
"""Tables of sections under names that the file chooses."""


class Config(Section):
    """The whole file. ``[kafka]`` passes any librdkafka setting through; with an embedded broker
    it has that one's address and secret, too."""

    kafka: KafkaSettings = Field(default_factory=dict)
    sink: dict[str, AnySink] = Field(min_length=1)
    pipeline: dict[str, PipelineSection] = Field(min_length=1)
    database: dict[str, DatabaseSection] = Field(default_factory=dict)
    registry: dict[str, RegistrySection] = Field(default_factory=dict)
    collector: dict[str, CollectorSection] = Field(default_factory=dict)
    gates: dict[str, GateSection] = Field(default_factory=dict)
    broker: BrokerSection = Field(default_factory=BrokerSection)
    connect: ConnectSection = Field(default_factory=ConnectSection)
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

    @model_validator(mode="before")
    @classmethod
    def _fed(cls, value: Any) -> Any:
        return fed_by_collectors(value)

    @model_validator(mode="before")
    @classmethod
    def _writers(cls, value: Any) -> Any:
        return with_writers(value)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        problems = [
            *unusable_names({key: getattr(self, key) for key in NAMED}),
            *unfit_routes({name: p.routes() for name, p in self.pipeline.items()}, self.sink),
            *shared_groups({name: self.group(name) for name in self.pipeline}),
            *unfit_targets(self.pipeline, self.sink),
            *owned_spark(self.spark.conf, self.sink),
            *shared_topics(self.pipeline, self.jobs),
            *unfit_expected_counts(self.pipeline),
            *unknown_databases(self.pipeline, self.database),
            *unknown_registries(self.pipeline, self.registry),
            *unfit_collectors(self.collector, self.pipeline, self.database),
            *unfit_quotas({name: pipeline.quota for name, pipeline in self.pipeline.items()}),
            *unfit_brokers(self.kafka, self.pipeline, self.broker),
        ]
        if not problems and self.gates:  # routes that are wrong lead nowhere
            routers = {name: Router(self.routes(name)) for name in self.pipeline}
            problems += unfit_gates(self.gates, self.pipeline, routers, self.jobs, self.sink)
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def group(self, pipeline: str) -> str:
        """The consumer group of a pipeline: its own, or one made from its name."""
        return self.pipeline[pipeline].group or f"binlogd-{pipeline}"

    def topics_of(self, pipeline: str) -> TopicSelection:
        """Which topics a pipeline reads."""
        section = self.pipeline[pipeline]
        own = own_topics(self.pipeline.values(), self.jobs) | gate_topics(self.gates)
        return TopicSelection(tuple(section.topics), tuple(section.exclude_topics), own)

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

    def format_options(self, pipeline: str) -> FormatOptions:
        """The options for a pipeline's format."""
        own = self.pipeline[pipeline].format_options()
        return replace(own, registry=self.registry_of(pipeline))

    def registry_of(self, pipeline: str) -> Registry | None:
        """The schema registry of a pipeline's records, None where it has none."""
        name = self.pipeline[pipeline].registry
        if name is None:
            return None
        return self.registry[name].as_formats_see_it(self.schema_folder(name))

    def schema_folder(self, registry: str) -> Path:
        """Where the schemas of a registry are kept."""
        return self.daemon.state_dir / "schemas" / registry

    @property
    def kafka_hint(self) -> str:
        """What to add where no broker answers."""
        return EMBEDDED_HINT if self.broker.embedded else ""

    def kafka_of(self, pipeline: str) -> dict[str, str | int | float | bool]:
        """The client's settings for a pipeline. Its own overrule the common ones."""
        return {**self.kafka, **self.pipeline[pipeline].kafka}

    def embedded_topics(self) -> frozenset[str]:
        """The topics that the embedded broker is to have: those that the file names."""
        return named_topics(self.pipeline, self.jobs) | gate_topics(self.gates)

    def adopt_broker(self, found: Mapping[str, str | int | float | bool]) -> None:
        """Note where the embedded broker is and how one enters, before anybody asks it."""
        self.kafka.update(found)  # in place: some have these settings already
        self.redactor.learn(secrets_in(self.kafka))

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

    def queue_kbytes(self, pipeline: str) -> int:
        """How much a pipeline's client fetches ahead, in librdkafka's unit."""
        part = 1 / len(self.pipeline)
        quota = self.pipeline[pipeline].quota.memory
        return self.memory.queue_kbytes(part if quota is None else min(part, quota))

    def writers_of(self, pipeline: str) -> int | None:
        """How many writers of a sink a pipeline may have at a time; None: all."""
        section = self.pipeline.get(pipeline)
        return None if section is None else section.quota.writers

    def adopt_gates(self, gates: Mapping[str, GateSection]) -> None:
        """Note the gates as they are now."""
        object.__setattr__(self, "gates", dict(gates))

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

    def misplaced_options(self) -> Iterator[tuple[str, str]]:
        """Options of formats that stand where 0.1.0 had them: each place, and what to write."""
        for name, pipeline in self.pipeline.items():
            for option in pipeline.misplaced_options:
                line = f"read here for one release more: it belongs to [pipeline.{name}.options]"
                if option not in option_names(pipeline.format):
                    line = f"format {pipeline.format} does not take it: remove it, as the next "
                    line += "release refuses it"
                yield f"pipeline.{name}.{option}", line

    @property
    def secrets(self) -> frozenset[str]:
        """The secrets: values from files and credentials, and of settings whose name says so."""
        tables: list[Mapping[str, Any]] = [
            self.kafka,
            self.spark.conf,
            *(pipeline.kafka for pipeline in self.pipeline.values()),
            *(p.expected_counts.kafka for p in self.pipeline.values() if p.expected_counts),
            *(sink.settings() for sink in self.sink.values()),
            *(sink.settings_ for sink in self.sink.values() if isinstance(sink, PythonSection)),
            {"token": self.metrics.token},
            {"token": self.events.webhook},  # its path is what one needs to post there
            *(one.secrets() for one in self.gates.values()),
            *({"token": value} for value in self.tracing.headers.values()),
            *(pipeline.format_options().extra for pipeline in self.pipeline.values()),
            *({"password": one.password} for one in self.database.values() if one.password),
            *(one.secrets() for one in self.registry.values()),
            *({**one.config, **one.secrets()} for one in self.collector.values()),
            self.connect.kafka,
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


def formats(config: Config) -> Callable[[str], Kind]:
    """A pipeline's format, as the configuration has it when one asks."""

    def kind(pipeline: str) -> Kind:
        return config.pipeline[pipeline].format, config.format_options(pipeline)

    return kind
