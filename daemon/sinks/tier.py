"""All sinks of the process: made of the configuration, with a Spark session where one needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TypeVar

from actors.contract.ports import ResettableSink, TargetRefused
from daemon.config.config import Config
from daemon.positions.state_id import state_id
from daemon.sinks.kinds import sinks_of
from daemon.sinks.port import Sink
from daemon.sinks.spark import SparkSessions
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.session.keeper import SessionFigures

T = TypeVar("T")


class NoSpark(TargetRefused):
    """The configuration starts no Spark: one line."""


class SinkTier(Protocol):
    """What the service needs of the sinks. Called by the main thread."""

    def start(self, config: Config) -> None:
        """Be ready to write. Raises SinkUnavailable: one line."""
        ...

    def sinks(self) -> Mapping[str, ResettableSink]:
        """A set of sinks for one writer, by the name in the configuration."""
        ...

    def session(self) -> SessionFigures | None:
        """How the Spark session stands; None where no sink uses one. Any thread."""
        ...

    def with_spark(self, act: Callable[[SparkJvm], T]) -> T:
        """Call ``act`` with the living session. Any thread.

        Raises SinkUnavailable where there is none now or it ended meanwhile, NoSpark where no sink
        uses one, and what ``act`` raises.
        """
        ...

    def prepare_stop(self) -> None:
        """A stop was requested: finish the writes and start no other work. Returns at once."""
        ...

    def stop(self) -> None:
        """Release everything."""
        ...


class ConfiguredSinks:
    """The real one."""

    def __init__(self) -> None:
        self._sinks: dict[str, Sink] = {}
        self._spark: SparkSessions | None = None

    def start(self, config: Config) -> None:
        """Try what is quick first, then start Spark, if a sink uses it, and open the sinks."""
        sinks = sinks_of(config)
        for sink in sinks.values():
            sink.probe()
        catalogs = {name: sink.catalog() for name, sink in sinks.items()}
        used = {name: catalog for name, catalog in catalogs.items() if catalog is not None}
        if used:
            self._spark = SparkSessions(config)
            self._spark.start(used)
        owner = state_id(config.daemon.state_dir)
        for sink in sinks.values():
            sink.open(owner, self._spark)
        self._sinks = sinks
        if self._spark is not None:
            self._spark.warm_up()

    def try_out(self, config: Config) -> Iterator[str]:
        """For the check: start what the sinks need, try each, stop. One line for each problem.

        Raises SinkUnavailable where Spark does not start.
        """
        sinks = sinks_of(config)
        catalogs = {name: sink.catalog() for name, sink in sinks.items()}
        used = {name: catalog for name, catalog in catalogs.items() if catalog is not None}
        routes = [route for name in config.pipeline for route in config.routes(name)]
        try:
            if used:
                self._spark = SparkSessions(config)
                self._spark.start(used)
            for sink in sinks.values():
                yield from sink.try_out(self._spark, routes)
        finally:
            self.stop()

    def sinks(self) -> Mapping[str, ResettableSink]:
        """See ``SinkTier``."""
        return {name: sink.writer() for name, sink in self._sinks.items()}

    def session(self) -> SessionFigures | None:
        """See ``SinkTier``."""
        return None if self._spark is None else self._spark.figures()

    def with_spark(self, act: Callable[[SparkJvm], T]) -> T:
        """See ``SinkTier``."""
        if self._spark is None:
            raise NoSpark("no sink of the configuration is written with Spark")
        return self._spark.call(act)

    def prepare_stop(self) -> None:
        """See ``SinkTier``."""
        for sink in self._sinks.values():
            sink.prepare_stop()

    def stop(self) -> None:
        """See ``SinkTier``."""
        if self._spark is not None:
            self._spark.stop()
