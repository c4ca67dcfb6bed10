"""The sink tier as the composition root starts it: one Spark session, a sink for each name."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Protocol

import structlog
from pyspark.sql import SparkSession

from actors.ports import BatchWriter
from daemon.config import Config
from daemon.state_id import state_id
from sparkwriter.attempts import this_process
from sparkwriter.iceberg import IcebergWriter, check_catalog
from sparkwriter.iceberg_upkeep import Upkeep, UpkeepSettings
from sparkwriter.jars import lake_jars
from sparkwriter.java import find_java
from sparkwriter.session import check_warehouse, start_session
from sparkwriter.warm_up import CATALOG, warm_up, warm_up_catalog


class SinkTier(Protocol):
    """What the service needs of the sinks. Called by the main thread."""

    def start(self, config: Config) -> None:
        """Be ready to write. Raises SinkUnavailable, JarsError, JavaMissing: one line each."""
        ...

    def sinks(self) -> Mapping[str, BatchWriter]:
        """A set of sinks for one writer, by the name in the configuration."""
        ...

    def stop(self) -> None:
        """Let go of everything."""
        ...


class SparkTier:
    """The real one: a JVM of its own for this process."""

    def __init__(self) -> None:
        self._spark: SparkSession | None = None
        self._upkeeps: dict[str, Upkeep] = {}

    def start(self, config: Config) -> None:
        """Check the warehouses first (it is quick), then start Spark and open the catalogs."""
        catalogs = {name: sink.catalog for name, sink in config.sink.items()}
        for name, properties in catalogs.items():
            check_warehouse(name, properties)
        java = find_java()
        os.environ["JAVA_HOME"] = str(java.home)  # where pyspark's launcher looks
        scratch = config.daemon.staging_dir / f"warm-up-{os.getpid()}"
        begun = time.monotonic()
        self._spark = start_session(
            conf=config.spark.conf,
            master=config.spark.master,
            jars=lake_jars(),
            catalogs=catalogs | {CATALOG: warm_up_catalog(scratch)},
            log_file=config.daemon.state_dir / "jvm.log",
            secrets=config.secrets,
        )
        for name, properties in catalogs.items():
            check_catalog(self._spark, name, properties)
        owner = this_process(state_id(config.daemon.state_dir))
        self._upkeeps = {
            name: Upkeep(owner, UpkeepSettings(**sink.maintenance.model_dump()))
            for name, sink in config.sink.items()
        }
        ready = time.monotonic()
        if config.spark.warm_up:
            warm_up(self._spark, scratch)
        structlog.get_logger().info(
            "spark_started",
            seconds=round(ready - begun, 1),
            warm_up_seconds=round(time.monotonic() - ready, 1),
            java=str(java.home),
        )

    def sinks(self) -> Mapping[str, BatchWriter]:
        """Each writer has sessions of its own: snapshot properties must not leak between them."""
        assert self._spark is not None
        spark = self._spark
        return {name: IcebergWriter(spark, upkeep) for name, upkeep in self._upkeeps.items()}

    def stop(self) -> None:
        """Stop Spark; the JVM ends with it."""
        if self._spark is not None:
            self._spark.stop()
