"""A daemon that is stopped while files are written anew: the drain does not wait for that."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from actors.contract.ports import ResettableSink
from changes.model.errors import SinkUnavailable
from changes.model.model import TargetName
from settings.exit import Exit
from sparkwriter.iceberg.compact import Compactions, Compactor, Jobs
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.ownership import ForeignSnapshots
from sparkwriter.iceberg.section import CompactionSection
from sparkwriter.iceberg.sink import IcebergWriter
from tests.integration.rig import Rig, SharedSpark, canal
from tests.integration.test_group import Member

WITHIN_S = 120.0


class Endless(Compactor):
    """Its compactions last until they are cancelled."""

    def __init__(self, tier: Compacting, spark: SparkSession) -> None:
        jobs = Jobs(lambda what: None, tier.cancelled.set)
        super().__init__(spark, jobs, tier.compactions, ForeignSnapshots())
        self._tier = tier

    def run(self, target: TargetName, table: LakeTable) -> bool:
        self._tier.begun.set()
        assert self._tier.cancelled.wait(WITHIN_S)
        raise SinkUnavailable("cancelled")


class Compacting(SharedSpark):
    """One that is due after each write."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self.compactions = Compactions(CompactionSection.model_construct(small_files=1))
        self.begun, self.cancelled = threading.Event(), threading.Event()

    def sinks(self) -> Mapping[str, ResettableSink]:
        writer = IcebergWriter(self._spark, None, self.compactions)
        writer._lake._compactor = Endless(self, self._spark)
        return {"lake": writer}

    def prepare_stop(self) -> None:
        self.compactions.stop()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_stop_ends_a_compaction_and_loses_nothing(rig: Rig) -> None:
    """The write that it followed counts as done, and what came meanwhile is written, too."""
    t = f"{rig.db}.orders"
    tier = Compacting(rig.spark)
    rig.produce(canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    with capture_logs() as said:
        member = Member(rig, rig.write_config(), tier)
        assert tier.begun.wait(WITHIN_S)
        assert member.stop() is Exit.OK
    assert tier.cancelled.is_set()
    assert rig.rows("orders") == [(1, "a", 1)]
    events = {entry["event"] for entry in said}
    assert "compaction_stopped" in events
    assert "drain_deadline_passed" not in events
