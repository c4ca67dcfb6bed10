"""The Iceberg sink of one writer: the kit's loop over Iceberg's tables, and tables that change
places."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from actors.contract.ports import SinkUnavailable
from actors.contract.writes import Swap, TargetState
from changes.model import TargetName
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.compact import Compactions
from sparkwriter.iceberg.look import Seen
from sparkwriter.iceberg.refusals import explain
from sparkwriter.iceberg.staged_source import SharedStaging
from sparkwriter.iceberg.store import IcebergStore
from sparkwriter.iceberg.swap import remove_table, swap_tables
from sparkwriter.iceberg.upkeep import Upkeep
from sparkwriter.iceberg.warehouse import check_warehouse
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.session.java_failures import JavaFailure


class IcebergWriter(TargetWriter[Seen]):
    """``sparkwriter.session.living_sink.SessionSink`` for Iceberg tables. Used on one thread."""

    def __init__(
        self,
        spark: SparkSession,
        upkeep: Upkeep | None = None,
        compactions: Compactions | None = None,
        shared_staging: SharedStaging | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._lake = IcebergStore(spark, upkeep, compactions, shared_staging, settings)
        super().__init__(self._lake)

    def cancel(self) -> None:
        """See ``IcebergStore.cancel``."""
        self._lake.cancel()

    def swap(self, swap: Swap) -> TargetState:
        """Have a rebuilt table take the old one's name. See ``actors.contract.ports.Swaps``."""
        with self._lake.call(swap.old):
            return swap_tables(self._lake.catalog, swap, self._lake.upkeep.new_branch)

    def remove(self, target: TargetName) -> None:
        """Remove what a rebuild made that was given up. See ``actors.contract.ports.Swaps``."""
        with self._lake.call(target):
            self._lake.look(target)  # refuses what is not ours
            remove_table(self._lake.catalog, target)


def check_catalog(spark: SparkSession, sink: str, properties: Mapping[str, str]) -> None:
    """Raise SinkUnavailable, in one line with sink and path, where the sink can't be used.

    For the start: makes a local warehouse folder, probes that it can be written, opens the
    catalog and asks it for its namespaces.
    """
    check_warehouse(sink, properties)
    try:
        LakeCatalog(spark).check(sink)
    except JavaFailure as error:
        place = properties.get("uri") or properties.get("warehouse") or "without uri"
        why = explain(error, sink, properties)
        raise SinkUnavailable(f"sink {sink}: can't open the catalog {place}: {why}") from error
