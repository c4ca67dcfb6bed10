"""All sinks of the process: made of the configuration, with a Spark session where one needs it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import structlog

from actors.contract.ports import ResettableSink
from actors.runtime.files import state_id
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from changes.routes.routing import Route
from databases.base.errors import DatabaseAway
from databases.base.section import DatabaseSection
from settings.rotation import SecretSettings
from sparkwriter.kit.port import Exchanges, Sink
from sparkwriter.kit.stand_in_names import new_table, put_aside
from sparkwriter.sections import AnySink, make_sink
from sparkwriter.session.configuration import SparkConfiguration
from sparkwriter.session.keeper import SessionFigures

if TYPE_CHECKING:
    from sparkwriter.session.jvm import SparkJvm
    from sparkwriter.spark_sessions import SparkSessions

log: Any = structlog.get_logger(__name__)

# The kinds of sink that a configuration may name. Imported only where sinks are looked at.


class SinksConfiguration(SparkConfiguration, SecretSettings, Protocol):
    """The configuration as the sinks see it."""

    @property
    def sink(self) -> Mapping[str, AnySink]:
        """The sinks by their names."""
        ...

    @property
    def database(self) -> Mapping[str, DatabaseSection]:
        """The databases that jobs read."""
        ...

    @property
    def pipeline(self) -> Mapping[str, object]:
        """The pipelines by their names."""
        ...

    def routes(self, pipeline: str) -> list[Route]:
        """A pipeline's routes, each with what its sink makes of it."""
        ...


def sinks_of(config: SinksConfiguration) -> dict[str, Sink]:
    """Each ``[sink.NAME]`` by its name."""
    return {name: make_sink(name, section, config) for name, section in config.sink.items()}


def says_no_tls(config: SinksConfiguration) -> Iterator[tuple[str, str]]:
    """The databases of an earlier version's file that says nothing of encryption: key and line."""
    for name, section in config.database.items():
        yield from ((f"database.{name}.url", line) for line in section.warnings())
    for name, sink in config.sink.items():
        yield from ((f"sink.{name}.url", line) for line in sink.warnings())


T = TypeVar("T")


class NoSpark(TargetRefused):
    """The configuration starts no Spark: one line."""


class SinkTier(Protocol):
    """What the service needs of the sinks. Called by the main thread, but where it says other."""

    def start(self, config: SinksConfiguration) -> None:
        """Be ready to write. Raises SinkUnavailable: one line. Any thread; the others come after
        its end."""
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

    def _start_spark(self, config: SinksConfiguration, sinks: Mapping[str, Sink]) -> None:
        """Start it for the sinks that use it, if any. Raises SinkUnavailable."""
        catalogs = {name: sink.catalog() for name, sink in sinks.items()}
        used = {name: catalog for name, catalog in catalogs.items() if catalog is not None}
        if used:
            from sparkwriter.spark_sessions import SparkSessions  # pyspark: not always installed

            self._spark = SparkSessions(config)
            self._spark.start(used)

    def start(self, config: SinksConfiguration) -> None:
        """Try what is quick first, then start Spark, if a sink uses it, and open the sinks."""
        sinks = sinks_of(config)
        for sink in sinks.values():
            sink.probe()
        for at, line in says_no_tls(config):
            log.warning("tls_not_said", at=at, reason=line)
        self._start_spark(config, sinks)
        owner = state_id(config.daemon.state_dir)
        for sink in sinks.values():
            sink.open(owner, self._spark)
        self._sinks = sinks
        if self._spark is not None:
            self._spark.warm_up()

    def try_out(self, config: SinksConfiguration, together: Container[str] = ()) -> Iterator[str]:
        """For the check: start what the sinks need, try each, stop. One line for each problem.
        ``together``: the sinks whose tables are to change in one step.

        Raises SinkUnavailable where Spark does not start.
        """
        sinks = sinks_of(config)
        routes = [route for name in config.pipeline for route in config.routes(name)]
        try:
            self._start_spark(config, sinks)
            for name, sink in sinks.items():
                yield from sink.try_out(self._spark, routes)
                yield from sink.try_together(self._spark) if name in together else ()
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


# Why a table can't be replaced by another one that takes its name: checked before a job starts.

TRIED = "0123456789ab0"
"""In the place of a number that is still to come: as long as any."""


def unreplaceable(
    config: SinksConfiguration, targets: Iterable[TargetName]
) -> dict[TargetName, str]:
    """By target the reasons, in one line. Raises DatabaseAway where a sink does not answer now."""
    found, wanted = sinks_of(config), sorted(set(targets))
    refused: dict[TargetName, str] = {}
    for name in sorted({target.sink for target in wanted}):
        mine = [target for target in wanted if target.sink == name]
        if name not in found:
            refused |= dict.fromkeys(mine, f"the configuration has no sink {name!r}")
        elif (why := found[name].keeps_names()) is not None:
            refused |= dict.fromkeys(mine, f"sink {name}: {why}")
        else:
            refused |= _in_the_way(found[name].exchanges, mine)
    return refused


def _in_the_way(
    opened: Callable[[], Exchanges | None], targets: list[TargetName]
) -> dict[TargetName, str]:
    found: dict[TargetName, str] = {}
    sink: Exchanges | None = None
    try:
        if (sink := opened()) is None:
            return {}
        for target in targets:
            into = new_table(target, TRIED)
            lines = sink.in_the_way(target, into, put_aside(target, into))
            if lines:
                found[target] = "; ".join(lines)
    except SinkUnavailable as error:
        raise DatabaseAway(str(error)) from error
    finally:
        if sink is not None:
            sink.close()
    return found


def left_behind(config: SinksConfiguration, targets: Iterable[TargetName]) -> Iterator[str]:
    """What has to be recreated once another table has the name of one of these: one line a
    target. Raises DatabaseAway."""
    found, opened = sinks_of(config), dict[str, Exchanges | None]()
    try:
        for target in targets:
            name = target.sink
            if name not in opened and name in found:
                opened[name] = found[name].exchanges()
            sink = opened.get(name)
            if sink is not None and (left := sink.left_behind(target)):
                yield f"{target}: to be recreated afterwards: {', '.join(left)}"
    except SinkUnavailable as error:
        raise DatabaseAway(str(error)) from error
    finally:
        for one in opened.values():
            if one is not None:
                one.close()


# Which of a pipeline's sinks only one daemon may write.


def single_writer(config: SinksConfiguration, pipeline: str) -> str | None:
    """Why the pipeline's group may have one member alone: a sink and its reason; None: it may have
    several."""
    written = {route.template.split(".")[0] for route in config.routes(pipeline)}
    for name, sink in sinks_of(config).items():
        if name in written and (why := sink.single_writer) is not None:
            return f"sink {name} can have one writer only: {why}"
    return None
