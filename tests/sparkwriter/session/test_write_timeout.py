"""A write that takes too long, on the real Spark: it is cancelled, leaves nothing, and is retried.

What makes it slow is real, too: tasks of another job sleep on all the session's cores.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from changes.model.errors import LostRace, SinkUnavailable
from changes.model.model import TargetName
from changes.sql.spark import write_strategy as ways
from sparkwriter.iceberg import store as iceberg
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.look import look
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.session.java_api import JavaFailure, JavaGarbage
from sparkwriter.session.keeper import SessionKeeper, SessionKeeperSettings
from sparkwriter.session.living_sink import LivingSink

pytestmark = [pytest.mark.integration, pytest.mark.long]
WITHIN_S = 60.0
Rows = Callable[..., list[tuple[object, ...]]]


class Resident:
    """The test run's session, which nobody may end."""

    pid = 1

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._stopped = threading.Event()

    def wait(self) -> str:
        self._stopped.wait()
        return "was stopped"

    def kill(self) -> None:
        raise AssertionError("the session answers: it must not be killed")

    def forget(self) -> None:
        pass

    def stop(self, within_s: float) -> None:
        self._stopped.set()


@pytest.fixture(autouse=True)
def _by_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many rows for us to look through: what a batch replaces is found by a job, which waits
    for cores and can be cancelled."""
    monkeypatch.setattr(ways, "SEEK_ROW_S", 1e9)


@pytest.fixture
def busy_cores(spark: SparkSession) -> Iterator[Callable[[], None]]:
    """Take all cores until the test is over, or until what this gives is called."""
    group, session = f"sleepers-{uuid4().hex}", spark.newSession()
    context = spark.sparkContext

    def sleep() -> None:
        context.setJobGroup(group, "sleepers", interruptOnCancel=True)
        with pytest.raises(JavaFailure, match="cancel"):
            session.sql(
                "SELECT id FROM range(0, 8, 1, 8)"
                " WHERE reflect('java.lang.Thread', 'sleep', 300000L + id) IS NULL"
            ).collect()

    thread = threading.Thread(target=sleep)
    thread.start()

    def release() -> None:
        context.cancelJobGroup(group)
        thread.join(WITHIN_S)
        assert not thread.is_alive()

    tracker = context.statusTracker()
    while (
        sum(
            stage.numActiveTasks
            for job in tracker.getJobIdsForGroup(group)
            if (info := tracker.getJobInfo(job)) is not None
            for number in info.stageIds
            if (stage := tracker.getStageInfo(number)) is not None
        )
        < context.defaultParallelism
    ):
        assert thread.is_alive()
        threading.Event().wait(0.05)
    yield release
    release()


@pytest.fixture
def keeper(spark: SparkSession) -> Iterator[SessionKeeper[Resident]]:
    made = SessionKeeper(lambda: Resident(spark), SessionKeeperSettings())
    made.open()
    yield made
    made.close()


def refs(spark: SparkSession, target: TargetName) -> list[str]:
    """The table's branches, asked without a job: no core is free."""
    table = LakeCatalog(spark).load(target)
    assert table is not None
    return sorted(table.branches())


def waiting(spark: SparkSession, what: str) -> bool:
    """Whether a job of that description runs, be it that it waits for a core."""
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    running = [jobs.apply(at) for at in range(jobs.size())]
    return any(str(job.status()) == "RUNNING" and what in str(job.description()) for job in running)


@pytest.mark.parametrize("write", [Write.MERGE])
def test_a_write_past_its_time_is_cancelled_and_lands_once(
    spark: SparkSession,
    keeper: SessionKeeper[Resident],
    staging: Any,
    rows: Rows,
    orders: Any,
    busy_cores: Callable[[], None],
) -> None:
    """Readers saw nothing of it; the same batch is written when there is time."""
    IcebergWriter(spark).write(staging.batch(orders(("U", 1, "x", 0)), 0))
    sink = LivingSink(keeper, lambda jvm: IcebergWriter(jvm.spark), 5.0, JavaGarbage())
    batch = staging.batch(orders(("U", 1, "a", 1), ("U", 2, "b", 2)), 1)
    with pytest.raises(SinkUnavailable, match=r"timed out after 5 s: .*[Cc]ancel"):
        sink.write(batch)
    assert refs(spark, batch.target) == ["main"]
    busy_cores()
    patient = LivingSink(keeper, lambda jvm: IcebergWriter(jvm.spark), WITHIN_S, JavaGarbage())
    patient.write(batch)
    assert rows(batch.target) == [(1, "a", 1), (2, "b", 2)]


@pytest.mark.parametrize("write", [Write.MERGE])
def test_a_cancel_before_the_first_job_is_not_lost(
    staging: Any, spark: SparkSession, rows: Rows, orders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A catalog that took all of the time has left none for the jobs; the next call has its own."""
    writer = IcebergWriter(spark)
    writer.write(staging.batch(orders(("U", 1, "x", 0)), 0))
    batch = staging.batch(orders(("U", 1, "a", 1)), 1)

    def slow_look(catalog: LakeCatalog, target: TargetName) -> Any:
        writer.cancel()
        return look(catalog, target)

    with monkeypatch.context() as patched:
        patched.setattr(iceberg, "look", slow_look)
        with pytest.raises(SinkUnavailable, match=r"[Cc]ancel"):
            writer.write(batch)
    assert refs(spark, batch.target) == ["main"]
    writer.write(batch)
    assert rows(batch.target) == [(1, "a", 1)]


@pytest.mark.parametrize("write", [Write.MERGE])
def test_a_write_that_others_gave_up_never_lands(
    spark: SparkSession,
    staging: Any,
    rows: Rows,
    orders: Any,
    busy_cores: Callable[[], None],
) -> None:
    """A zombie: its statement still waits in Spark when another has published the same lane."""
    zombie, heir = IcebergWriter(spark), IcebergWriter(spark)
    heir.write(staging.batch(orders(("U", 1, "first", 0)), 0))
    failures: list[Exception] = []

    def write() -> None:
        try:
            zombie.write(batch)
        except Exception as error:
            failures.append(error)

    batch = staging.batch(orders(("U", 1, "old", 1)), 1)
    thread = threading.Thread(target=write)
    thread.start()
    while not waiting(spark, f"write {batch.target}"):
        assert thread.is_alive()
        threading.Event().wait(0.05)
    heir.write(staging.batch(None, 5, after=0))
    busy_cores()
    thread.join(WITHIN_S)
    (failure,) = failures
    assert isinstance(failure, LostRace)
    assert rows(batch.target) == [(1, "first", 0)]
    assert refs(spark, batch.target) == ["main"]
