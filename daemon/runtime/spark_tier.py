"""The sink tier as the composition root starts it: one Spark session, a sink for each name."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog

from actors.contract.ports import ResettableSink, SinkUnavailable
from daemon.config.pipelines import Config
from daemon.positions.state_id import state_id
from daemon.staging.folder import RunFolder
from sparkwriter.iceberg.attempts import this_process
from sparkwriter.iceberg.compact import Compactions
from sparkwriter.iceberg.compaction_plan import CompactionSettings
from sparkwriter.iceberg.sink import IcebergWriter, check_catalog
from sparkwriter.iceberg.upkeep import Upkeep, UpkeepSettings
from sparkwriter.iceberg.warehouse import check_warehouse
from sparkwriter.iceberg.warm_up import CATALOG, warm_up, warm_up_catalog
from sparkwriter.session.jars import lake_jars
from sparkwriter.session.java import find_java
from sparkwriter.session.java_garbage import JavaGarbage
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.session.keeper import KeeperSettings, SessionFigures, SessionKeeper
from sparkwriter.session.living_sink import LivingSink
from sparkwriter.session.session import start_session
from sparkwriter.session.thread_bounds import thread_bounds


class SinkTier(Protocol):
    """What the service needs of the sinks. Called by the main thread."""

    def start(self, config: Config) -> None:
        """Be ready to write. Raises SinkUnavailable, JarsError, JavaMissing: one line each."""
        ...

    def sinks(self) -> Mapping[str, ResettableSink]:
        """A set of sinks for one writer, by the name in the configuration."""
        ...

    def session(self) -> SessionFigures:
        """How the session stands. Any thread."""
        ...

    def hurry(self) -> None:
        """A stop has been asked for: from here on only what is to be written is. Ends at once."""
        ...

    def stop(self) -> None:
        """Let go of everything."""
        ...


class SparkTier:
    """The real one: a JVM of its own for this process, started again when it has ended."""

    def __init__(self, settings: KeeperSettings | None = None) -> None:
        self._settings = settings or KeeperSettings()
        self._keeper: SessionKeeper[SparkJvm] | None = None
        self._kept: dict[str, tuple[Upkeep, Compactions]] = {}
        self._timeouts_s: dict[str, float] = {}
        self._garbage = JavaGarbage()
        self._folder: RunFolder | None = None

    def start(self, config: Config) -> None:
        """Check the warehouses first (it is quick), then start Spark and open the catalogs."""
        catalogs = {name: sink.catalog for name, sink in config.sink.items()}
        for name, properties in catalogs.items():
            check_warehouse(name, properties)
        java = find_java()
        os.environ["JAVA_HOME"] = str(java.home)  # where pyspark's launcher looks
        scratch = self._claim(config.daemon.staging_dir)
        warm_up_dir = scratch / "warm-up"
        begun = time.monotonic()
        launch = partial(
            start_session,
            conf={**thread_bounds(config.spark.writers, config.spark.conf), **config.spark.conf},
            master=config.spark.master,
            jars=lake_jars(),
            catalogs=catalogs | {CATALOG: warm_up_catalog(warm_up_dir)},
            log_file=config.daemon.state_dir / "jvm.log",
            scratch=scratch,
            secrets=config.secrets,
        )
        self._keeper = SessionKeeper(lambda: SparkJvm(launch()), self._settings)
        jvm = self._keeper.open()
        for name, properties in catalogs.items():
            check_catalog(jvm.spark, name, properties)
        owner = this_process(state_id(config.daemon.state_dir))
        self._kept = {
            name: (
                Upkeep(owner, UpkeepSettings(**sink.maintenance.model_dump())),
                Compactions(CompactionSettings(**sink.compaction.model_dump())),
            )
            for name, sink in config.sink.items()
        }
        self._timeouts_s = {name: sink.write_timeout_s for name, sink in config.sink.items()}
        ready = time.monotonic()
        # Only now: when a session is rebuilt, batches wait, and are the better warm-up.
        if config.spark.warm_up:
            warm_up(jvm.spark, warm_up_dir)
        structlog.get_logger().info(
            "spark_started",
            seconds=round(ready - begun, 1),
            warm_up_seconds=round(time.monotonic() - ready, 1),
            java=str(java.home),
            pid=jvm.pid,
        )

    def sinks(self) -> Mapping[str, ResettableSink]:
        """Each writer has sessions of its own: snapshot properties must not leak between them."""
        assert self._keeper is not None
        return {
            name: LivingSink(
                self._keeper, partial(_iceberg, *kept), self._timeouts_s[name], self._garbage
            )
            for name, kept in self._kept.items()
        }

    def session(self) -> SessionFigures:
        """How the session stands; all empty before the start."""
        return SessionFigures() if self._keeper is None else self._keeper.figures()

    def hurry(self) -> None:
        """Compactions that run are cancelled, none begins; on a thread, for the JVM may hang."""
        for _, compactions in self._kept.values():
            threading.Thread(target=compactions.stop, daemon=True).start()

    def stop(self) -> None:
        """Stop Spark; the JVM ends with it, by force where it does not answer."""
        if self._keeper is not None:
            self._keeper.close()
        if self._folder is not None:
            self._folder.close()

    def _claim(self, staging_dir: Path) -> Path:
        """A folder for the JVM's temporary files, which the next start removes where this
        process is killed. Not by the state directory's name: a check may run beside the daemon."""
        try:
            self._folder = RunFolder(staging_dir, f"run-{uuid.uuid4().hex[:12]}-jvm")
        except OSError as error:
            text = f"daemon.staging_dir {staging_dir} can't be written: {error}"
            raise SinkUnavailable(text) from error
        return self._folder.path / "jvm"


def _iceberg(upkeep: Upkeep, compactions: Compactions, jvm: SparkJvm) -> IcebergWriter:
    """A writer on a generation's session. What is known of the tables outlives it."""
    return IcebergWriter(jvm.spark, upkeep, compactions)
