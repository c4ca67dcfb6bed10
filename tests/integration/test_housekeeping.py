"""What a process that was killed leaves behind goes at the next start; a live one's stays."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.contract.writes import StagedBatch
from changes.model.model import OP, Column, Mode, TableSchema, TargetName
from offsets.fence import Span
from offsets.position import TopicPartition
from settings.exit import Exit
from tests.integration.rig import Rig, canal

pytestmark = pytest.mark.long

OTHER_DAEMON = """
import pickle, sys
from pathlib import Path
import structlog
from actors.staging.folder import StagingFolder
from sparkwriter.iceberg import statements
from sparkwriter.iceberg.ownership import this_process
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.upkeep import Upkeep
from sparkwriter.iceberg.section import MaintenanceSection
from actors.runtime.jars import lake_jars
from sparkwriter.session.session import start_session

folder, conf, batch = pickle.load(sys.stdin.buffer)
staging = StagingFolder(Path(folder) / "staging", "run-00000000beef")
log_file, scratch = Path(folder) / "other.log", Path(folder) / "other-scratch"
spark = start_session({}, "local[1]", lake_jars(), {"lake": conf}, log_file, scratch)

def die_here(*refs):
    print("written", flush=True)
    sys.stdin.buffer.read()

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
statements.publish_update = die_here
upkeep = Upkeep(this_process("0123456789ab"), MaintenanceSection())
IcebergWriter(spark, upkeep).write(batch)
"""


@contextmanager
def another_daemon(rig: Rig, batch: StagedBatch) -> Iterator[None]:
    """A real second process, halted between its write and its publish; killed at the end."""
    child = subprocess.Popen(
        [sys.executable, "-c", OTHER_DAEMON],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        pickle.dump((str(rig.folder), rig.lake, batch), child.stdin)
        child.stdin.flush()
        assert child.stdout.readline() == b"written\n"
        yield
    finally:
        child.kill()
        child.communicate()


def orders_batch(rig: Rig, path: Path) -> StagedBatch:
    """One row for the target that the daemon of the test owns, above its mark."""
    columns = (Column("id", pa.int32()), Column("name", pa.string()), Column("qty", pa.int64()))
    table = pa.table(
        {
            OP: ["U"],
            "id": pa.array([99], pa.int32()),
            "name": ["late"],
            "qty": pa.array([99], pa.int64()),
        }
    )
    pq.write_table(table, path)
    lanes = {TopicPartition(rig.topic, 0): Span(0, 9)}
    target = TargetName("lake", rig.db, "orders")
    schema = TableSchema(columns, ("id",))
    return StagedBatch("b", target, Mode.UPSERT, schema, lanes, str(path), rows=1)


def branches(rig: Rig) -> set[str]:
    refs = rig.spark.sql(f"SELECT name FROM lake.`{rig.db}`.orders.refs").collect()
    return {row.name for row in refs}


@pytest.mark.timeout(400)
def test_a_killed_daemons_staged_files(rig: Rig, monkeypatch) -> None:
    """While it lives a start leaves them; killed by -9, the next start removes them."""
    from actors.runtime.java import find_java

    monkeypatch.setenv("JAVA_HOME", str(find_java().home))
    rig.produce(canal(f"{rig.db}.orders", "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    assert rig.run() is Exit.OK
    staging = rig.folder / "staging"
    assert list(staging.iterdir()) == []
    with another_daemon(rig, orders_batch(rig, rig.folder / "late.parquet")):
        rig.produce(canal(f"{rig.db}.orders", "INSERT", [{"id": 2, "name": "b", "qty": 2}]))
        assert rig.run() is Exit.OK
        assert branches(rig) == {"main"}  # an unfinished write is in its writer's memory alone
        assert [run.name for run in staging.iterdir()] == ["run-00000000beef"]
    rig.produce(canal(f"{rig.db}.orders", "INSERT", [{"id": 3, "name": "c", "qty": 3}]))
    assert rig.run() is Exit.OK
    assert branches(rig) == {"main"}
    assert list(staging.iterdir()) == []
    assert rig.rows("orders") == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
