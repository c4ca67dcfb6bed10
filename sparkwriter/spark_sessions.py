"""The one Spark session of the process, for the sinks that write with it."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from actors.contract.ports import ResettableSink
from actors.runtime.jars import JarsError, extra_jars, lake_jars, local_jar
from actors.runtime.java import JavaMissing, find_java
from actors.staging.folder import RunFolder
from changes.model.errors import SinkUnavailable
from sparkwriter.iceberg.sink import CATALOG, warm_up, warm_up_catalog
from sparkwriter.session.configuration import SparkConfiguration
from sparkwriter.session.java_api import JavaGarbage
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.session.keeper import SessionFigures, SessionKeeper, SessionKeeperSettings
from sparkwriter.session.living_sink import (
    NEXT_WITHIN_S,
    LivingSink,
    SessionSink,
    has_ended,
)
from sparkwriter.session.session import is_local, start_session
from sparkwriter.session.spark_conf import driver_extra, needed_extras, thread_bounds

T = TypeVar("T")


class SparkSessions:
    """``sparkwriter.kit.port.Sessions``: a JVM for this process, started again when it has
    ended."""

    def __init__(
        self, config: SparkConfiguration, settings: SessionKeeperSettings | None = None
    ) -> None:
        self._config = config
        self._settings = settings or SessionKeeperSettings()
        self._keeper: SessionKeeper[SparkJvm] | None = None
        self._garbage = JavaGarbage()
        self._folder: RunFolder | None = None

    def start(self, catalogs: Mapping[str, Mapping[str, str]]) -> None:
        """Launch the JVM. Raises SinkUnavailable: one line."""
        config = self._config
        for problem in _out_of_reach(config):
            raise SinkUnavailable(problem)
        try:
            extras = {*_extra_jars(catalogs, config.spark.conf), *driver_jars(config)}
            java, jars = find_java(), [*lake_jars(), *sorted(extras)]
        except (JavaMissing, JarsError) as error:
            raise SinkUnavailable(str(error)) from error
        os.environ["JAVA_HOME"] = str(java.home)  # where pyspark's launcher looks
        self._folder = _claimed(config.daemon.staging_folder)
        begun = time.monotonic()
        launch = partial(
            start_session,
            conf={**thread_bounds(config.daemon.writers, config.spark.conf), **config.spark.conf},
            master=config.spark.master,
            jars=jars,
            catalogs={**catalogs, CATALOG: warm_up_catalog(self._warm_up_dir)},
            log_file=config.daemon.state_dir / "jvm.log",
            scratch=self._folder.path / "jvm",
            secrets=config.secrets,
        )
        self._keeper = SessionKeeper(lambda: SparkJvm(launch()), self._settings)
        jvm = self._keeper.open()
        seconds = round(time.monotonic() - begun, 1)
        log = structlog.get_logger()
        log.info("spark_started", seconds=seconds, java=str(java.home), pid=jvm.pid)

    def now(self) -> SparkJvm:
        """The one that lives."""
        assert self._keeper is not None
        return self._keeper.current().jvm

    def call(self, act: Callable[[SparkJvm], T]) -> T:
        """Call ``act`` with the living session. Any thread.

        Raises SinkUnavailable where there is none now, or where it ended meanwhile.
        """
        assert self._keeper is not None
        generation = self._keeper.current(NEXT_WITHIN_S)
        try:
            return act(generation.jvm)
        except Exception as error:
            if has_ended(generation, error):
                raise SinkUnavailable("the JVM has ended") from error
            raise
        finally:
            self._garbage.called()

    def warm_up(self) -> None:
        """At the start alone: when a session is rebuilt, batches wait, and are the better one."""
        if self._config.spark.warm_up:
            begun = time.monotonic()
            warm_up(self.now().spark, self._warm_up_dir)
            seconds = round(time.monotonic() - begun, 1)
            structlog.get_logger().info("spark_warmed_up", seconds=seconds)

    @property
    def shared_staging(self) -> str | None:
        """See ``sparkwriter.kit.port.Sessions``."""
        local = is_local(self._config.spark.master)
        return None if local else self._config.daemon.staging_uri

    def sink(
        self,
        make: Callable[[SparkJvm], SessionSink],
        timeout_s: float,
        outdated: Callable[[], bool],
    ) -> ResettableSink:
        """See ``sparkwriter.kit.port.Sessions``."""
        assert self._keeper is not None
        return LivingSink(self._keeper, make, timeout_s, self._garbage, outdated=outdated)

    def figures(self) -> SessionFigures:
        """How the session stands; all empty before the start. Any thread."""
        return SessionFigures() if self._keeper is None else self._keeper.figures()

    def stop(self) -> None:
        """Stop Spark; the JVM ends with it, by force where it does not answer."""
        if self._keeper is not None:
            self._keeper.close()
        if self._folder is not None:
            self._folder.close()

    @property
    def _warm_up_dir(self) -> Path:
        assert self._folder is not None
        return self._folder.path / "jvm" / "warm-up"


def spark_problems(
    config: SparkConfiguration, catalogs: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """What Spark needs of this machine, and its executors of the configuration. One line each."""
    yield from _out_of_reach(config)
    for name, properties in catalogs.items():
        try:
            _extra_jars({name: properties}, config.spark.conf)
        except JarsError as error:
            yield str(error)
    try:
        find_java()
        lake_jars()
        local_jar()
    except (JavaMissing, JarsError) as error:
        yield str(error)


def spark_warnings(config: SparkConfiguration) -> Iterator[str]:
    """What is unwise in Spark's settings, whatever is written with it. One line each."""
    conf, local = config.spark.conf, is_local(config.spark.master)
    if conf.get("spark.scheduler.mode", "FAIR") != "FAIR":
        yield "spark.conf.spark.scheduler.mode: a long write holds up the short ones"
    if not local and "spark.driver.host" not in conf:
        yield (
            "spark.conf.spark.driver.host: is localhost unless it is set, where executors on other"
            " machines can't reach the driver"
        )
    if conf.get("spark.authenticate", str(local)).lower() != "true":
        yield _open_to(local)


def _extra_jars(catalogs: Mapping[str, Mapping[str, str]], conf: Mapping[str, str]) -> list[Path]:
    """The jars that these catalogs need beside everybody's, each once. Raises JarsError."""
    found: dict[Path, None] = {}
    for name, properties in catalogs.items():
        try:
            found |= dict.fromkeys(extra_jars(needed_extras(properties, conf)))
        except JarsError as error:
            raise JarsError(f"sink {name}: {error}") from error
    return list(found)


def driver_jars(config: SparkConfiguration) -> list[Path]:
    """The jars with the drivers of the databases. Raises JarsError."""
    found: dict[Path, None] = {}
    for name, database in config.database.items():
        try:
            found |= dict.fromkeys(extra_jars(driver_extra(database.url, config.spark.conf)))
        except JarsError as error:
            raise JarsError(f"database.{name}: {error}") from error
    return list(found)


def _out_of_reach(config: SparkConfiguration) -> Iterator[str]:
    if not is_local(config.spark.master) and not config.daemon.staging_is_shared:
        yield (
            f"daemon.staging_dir: {config.daemon.staging_dir} is a folder of this machine, and"
            f" executors of {config.spark.master} don't see it: name a place they reach, such as"
            " s3://BUCKET/staging, hdfs:///staging, or file:///… for a folder that all machines"
            " have mounted"
        )


def _open_to(local: bool) -> str:
    if local:
        return "spark.conf.spark.authenticate: every user of this machine may reach Spark's ports"
    return (
        "spark.conf.spark.authenticate: anyone who reaches the ports of driver and executors may"
        ' read and write; set it to "true", with spark.authenticate.secret on a standalone cluster,'
        ' and spark.network.crypto.enabled = "true"'
    )


def _claimed(staging_dir: Path) -> RunFolder:
    """A folder for the JVM's temporary files, which the next start removes where this process is
    killed. Not by the state directory's name: a check may run beside the daemon."""
    try:
        return RunFolder(staging_dir, f"run-{uuid.uuid4().hex[:12]}-jvm")
    except OSError as error:
        text = f"daemon.staging_dir {staging_dir} can't be written: {error}"
        raise SinkUnavailable(text) from error
