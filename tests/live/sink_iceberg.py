"""An Iceberg lake of local files as a sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from demo.lake import open_session, read_tables
from sparkwriter.session.java_api import JavaFailure
from tests.live.schema import Name
from tests.live.sinks import Difference, Stored


class IcebergSink:
    """A ``Sink``; the lake of a round is in the round's folder."""

    name = "lake"

    def __init__(self) -> None:
        self._spark: SparkSession | None = None

    def start(self) -> None:
        """Nothing runs but the session of a round."""

    def kill(self) -> None:
        self.end()

    def sections(self, folder: Path) -> Sequence[str]:
        return [
            "[spark]", "writers = 2", "warm_up = false",
            'conf."spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1"',
            "[sink.lake]", 'kind = "iceberg"', "[sink.lake.catalog]", 'type = "jdbc"',
            f'uri = "jdbc:sqlite:{folder}/catalog.db"', '"jdbc.schema-version" = "V1"',
            f'warehouse = "{folder}/warehouse"',
        ]  # fmt: skip

    def begin(self, folder: Path) -> None:
        self._spark = open_session(folder)

    def end(self) -> None:
        if self._spark is not None:
            self._spark.stop()
        self._spark = None

    def read(self, databases: Sequence[str]) -> Mapping[Name, Stored]:
        return {
            (database, table): Stored(tuple(rows.column_names), rows.to_pylist())
            for database in databases
            for table, rows in read_tables(self._session, database).items()
        }

    def plant(self, difference: Difference) -> str:
        database, table = (name.replace("`", "``") for name in difference.table)
        try:
            self._session.sql(difference.sql(f"lake.`{database}`.`{table}`", "`"))
        except JavaFailure as error:
            return str(error)
        return ""

    @property
    def _session(self) -> SparkSession:
        assert self._spark is not None
        return self._spark
