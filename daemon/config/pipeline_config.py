"""One pipeline of a configuration, with what it takes of the sections that pipelines share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from changes.formats import make_format
from changes.model.registry import Registry
from changes.routes.routing import Router
from daemon.config.config import Config
from daemon.config.expected_counts import ExpectedCountsSection
from daemon.config.owners import target_owner
from daemon.config.pipeline_parts import LoadSection
from daemon.config.pipelines import PipelineSection
from databases.base.section import DatabaseSection
from sources.base.topic_selection import TopicSelection
from sources.opening import open_source, open_topics, topics_at
from sources.registry.section import RegistrySection

if TYPE_CHECKING:
    from changes.formats import TopicFormats
    from changes.formats.engine.format import Format
    from databases.base.database import Database
    from databases.opening import Primary
    from sources.base.port import Source
    from sources.base.topics import TopicLog, Topics
    from sparkwriter.kit.queries import Queries


class UsedRegistry(NamedTuple):
    """A schema registry. ``kept``: the folder of the schemas that the daemon has of it."""

    name: str
    section: RegistrySection
    kept: Path


def registry_named(config: Config, name: str) -> UsedRegistry:
    """The section ``[registry.NAME]``. Raises KeyError."""
    return UsedRegistry(name, config.registry[name], config.schema_folder(name))


class PipelineConfig:
    """Copies nothing: after a reload each member returns the new configuration. Any thread."""

    def __init__(self, config: Config, name: str) -> None:
        self._config = config
        self.name = name

    @property
    def section(self) -> PipelineSection:
        """``[pipeline.NAME]``. Raises KeyError after the pipeline was removed."""
        return self._config.pipeline[self.name]

    @property
    def together(self) -> frozenset[str]:
        """The sinks whose targets are written at cuts alone, in one transaction each."""
        return frozenset(name for name in self._atomic if self._config.sink[name].transactions)

    @property
    def apart(self) -> frozenset[str]:
        """The sinks that can't do that, though it is asked for: their targets are tagged alone."""
        return self._atomic - self.together

    @property
    def _atomic(self) -> frozenset[str]:
        """The sinks that are written, where targets are to come to a cut at once."""
        section = self.section
        atomic = section.cut_every is not None and section.cuts.atomic
        written = (route.template.split(".")[0] for route in section.routes())
        return frozenset(written if atomic else ())

    @property
    def versioned(self) -> frozenset[str]:
        """The sinks that keep former versions of their tables."""
        return frozenset(name for name, sink in self._config.sink.items() if sink.tags)

    @property
    def group(self) -> str:
        """Its consumer group."""
        return self._config.group(self.name)

    @property
    def state_dir(self) -> Path:
        """The daemon's state directory."""
        return self._config.daemon.state_dir

    @property
    def load(self) -> LoadSection:
        """``[load]``."""
        return self._config.load

    @property
    def sinks(self) -> Collection[str]:
        """The names of the configured sinks."""
        return self._config.sink.keys()

    @property
    def selection(self) -> TopicSelection:
        """Which topics it reads."""
        return self._config.topics_of(self.name)

    @property
    def registry(self) -> UsedRegistry | None:
        """The schema registry of its records, None where it has none."""
        name = self.section.registry
        return None if name is None else registry_named(self._config, name)

    def router(self) -> Router:
        """Its routes."""
        return Router(self._config.routes(self.name))

    def format(
        self, topics: TopicFormats | None = None, registry: Registry | None = None
    ) -> Format:
        """A new instance of its format. ``topics``: what is recorded of each, for ``auto``;
        ``registry``: in place of its own, for a command that has schemas in another folder."""
        options = self._config.format_options(self.name)
        options = replace(options, registry=registry or options.registry)
        return make_format(self.section.format, options, topics)

    def source(self) -> Source:
        """Its topics and group. Sends no query yet."""
        return open_source(self._config, self.name)

    def counts_topic(self, section: ExpectedCountsSection) -> TopicLog:
        """The topic that says how many changes there are. Sends no query yet."""
        return topics_at(section.settings(self._config.kafka_of(self.name))).log(section.topic)

    def topics(self) -> Topics:
        """Topics beside its log, with its client's settings. Sends no query yet."""
        return open_topics(self._config, self.name)

    @property
    def databases(self) -> dict[str, DatabaseSection]:
        """The sections of the databases that hold its tables, by name."""
        names = (name for _, name in self.section.named_databases())
        return {name: self._config.database[name] for name in names}

    def queries(self, sink: str) -> Queries | None:
        """What answers queries about a sink's tables; None: nothing does."""
        from sparkwriter.sections import make_sink  # late: few commands read tables

        return make_sink(sink, self._config.sink[sink], self._config).queries()

    def database_of(self, schema: str) -> str | None:
        """The name of the database that holds its tables of a schema; None where none does."""
        return self._config.database_of(self.name, schema)

    def open_database(self, name: str) -> Database:
        """See ``databases.opening.open_database``."""
        from databases.opening import open_database  # late: few commands ask a database

        return open_database(self._config, name)

    def primary_of(self, name: str, database: Database) -> Primary:
        """The server whose log is the stream, of an open database; it may be that one itself."""
        from databases.opening import Primary

        return Primary(self._config, name, database)


def pipelines_of(config: Config) -> dict[str, PipelineConfig]:
    """The pipelines that are configured now, by name."""
    return {name: PipelineConfig(config, name) for name in config.pipeline}


def pipeline_of_target(pipelines: Mapping[str, PipelineConfig], name: str) -> str | None:
    """The pipeline of which a route leads to a target; None: no route does."""
    return target_owner({p: each.router() for p, each in pipelines.items()}, name)
