"""A power cut leaves no pointer to what is not on the disk: the real calls, in their order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import missing, tool
from tests.sparkwriter.iceberg.disk_order import CALLS, Disk

pytestmark = pytest.mark.long

WRITES = """
import os, sys
from pathlib import Path
import pyarrow as pa
from changes.model.model import Column, TableSchema, TargetName
from sparkwriter.iceberg.section import Write
from sparkwriter.iceberg.section import CompactionSection
from sparkwriter.iceberg.sink import IcebergWriter
from sparkwriter.iceberg.compact import Compactions
from actors.runtime.jars import lake_jars
from sparkwriter.session.session import start_session
from tests.sparkwriter.conftest import Staging

os.umask(0o027)
folder = Path(sys.argv[1])
warehouse = folder / "warehouse"
lake = {
    "type": "jdbc",
    "uri": f"jdbc:sqlite:file:{warehouse}/catalog.db",
    "jdbc.schema-version": "V1",
    "warehouse": str(warehouse),
}
warehouse.mkdir()
conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
spark = start_session(
    conf, "local[2]", lake_jars(), {"lake": lake}, folder / "jvm.log", folder / "scratch"
)
staged = folder / "staged"
staged.mkdir()
columns = (Column("id", pa.int64()), Column("note", pa.string()))
compactions = Compactions(CompactionSection.model_construct(max_deletes=1, small_files=2))


def write(way, name, *batches):
    writer = IcebergWriter(spark, compactions=compactions)
    target = TargetName("lake", "shop", name)
    staging = Staging(staged, target, TableSchema(columns, ("id",)), way)
    for number, rows in enumerate(batches):
        ops, ids, notes = zip(*rows)
        table = pa.table({"__binlogd_op": ops, "id": ids, "note": notes})
        writer.write(staging.batch(table, number))
        (folder / "offsets").write_text("written")
    return writer, staging


inserted = [("U", number, "a") for number in range(100)]
changed = [("U", 1, "b"), ("D", 2, None), ("U", 1000, "new")]
writer, staging = write(Write.MERGE, "merged", inserted, changed, changed, changed)
some = {"__binlogd_op": ["U"], "id": [3], "note": ["c"], "__binlogd_has_note": [False]}
writer.write(staging.batch(pa.table(some), 9, partial=("note",)))
write(Write.EQUALITY, "equal", inserted, changed, changed)
spark.sql("CREATE TABLE lake.shop.made AS SELECT * FROM lake.shop.merged")
spark.sql("DELETE FROM lake.shop.made WHERE id = 5")
print(spark.sql("SELECT count(*) FROM lake.shop.merged").first()[0])
made = {(path.is_dir(), oct(path.stat().st_mode & 0o777)) for path in warehouse.rglob("*")}
print(sorted(made))
spark.stop()
"""


def a_trace(*lines: str) -> Disk:
    """What a few calls leave."""
    disk = Disk("/w", "/w/catalog.db", "/offsets")
    disk.replay(lines)
    return disk


MADE = '7  openat(AT_FDCWD, "/w/t/1.json", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</w/t/1.json>'
WRITTEN = '7  write(3</w/t/1.json>, "x", 1) = 1'
POINTED = '8  pwrite64(9</w/catalog.db>, "x", 4096, 0) = 4096'


def test_the_replay_sees_what_a_power_cut_would_take() -> None:
    """A file that was not waited for; one whose fsync ends too late; a name that may go."""
    late = "7  fsync(3</w/t/1.json> <unfinished ...>"
    ended = "7  <... fsync resumed>) = 0"
    folder = "7  fsync(4</w/t>) = 0"
    lost = ("/w/t/1.json",)
    assert a_trace(MADE, WRITTEN, POINTED).early == [(*lost, "name of /w/t/1.json")]
    assert a_trace(MADE, WRITTEN, folder, late, POINTED, ended).early == [lost]
    assert a_trace(MADE, WRITTEN, late, ended, POINTED).early == [("name of /w/t/1.json",)]
    assert a_trace(MADE, WRITTEN, late, ended, folder, POINTED).early == []
    assert a_trace(MADE, WRITTEN, late, ended, folder, WRITTEN, POINTED).early == [lost]


def test_the_replay_sees_a_commit_that_a_power_cut_would_undo() -> None:
    """The catalog's content, and its journal, which undoes a commit while it is there."""
    removed = '8  unlink("/w/catalog.db-journal") = 0'
    synced = "8  fsync(9</w/catalog.db>) = 0"
    folder = "8  fsync(4</w>) = 0"
    saved = '7  write(5</offsets>, "x", 1) = 1'
    assert a_trace(POINTED, removed, folder, saved).early == [("/w/catalog.db",)]
    assert a_trace(POINTED, synced, removed, saved).early == [("/w/catalog.db-journal",)]
    assert a_trace(POINTED, synced, removed, folder, saved).early == []


@pytest.mark.integration
@pytest.mark.timeout(500)
def test_no_pointer_is_durable_before_what_it_points_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables made, appended to, changed in each way and compacted: whenever the catalog is
    written to, all other files and their names are on the disk; when positions are, so is the
    catalog. And what is made has the modes of the process's umask, whoever of us makes it."""
    from actors.runtime.java import find_java

    monkeypatch.setenv("JAVA_HOME", str(find_java().home))
    trace = tmp_path / "trace"
    strace = [tool("strace"), "-f", "-y", "-s", "256", "--seccomp-bpf", "-e", f"trace={CALLS}"]
    run = subprocess.run(
        [*strace, "-o", trace, sys.executable, "-c", WRITES, tmp_path],
        capture_output=True,
        cwd=Path(__file__).parents[3],
        timeout=480,
        check=False,
        text=True,
    )
    if "ptrace" in run.stderr and "Operation not permitted" in run.stderr:
        missing("strace", "this machine does not let a process be traced")
    assert run.returncode == 0, run.stderr[-3000:]
    warehouse = f"{tmp_path}/warehouse"
    disk = Disk(warehouse, f"{warehouse}/catalog.db", f"{tmp_path}/offsets")
    with trace.open(encoding="utf-8", errors="replace") as lines:
        disk.replay(line.rstrip("\n") for line in lines)
    assert run.stdout.splitlines()[-2:] == ["100", "[(False, '0o640'), (True, '0o750')]"]
    assert disk.early == []
    assert disk.saved >= 7
    assert disk.pointers > 12
    kinds = {re.sub(r".*(?=\.)", "", path) for path in disk.files}
    assert kinds >= {".parquet", ".puffin", ".avro", ".json"}
