"""Spark's thread pools are bounded, and what is in them can't wait for itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sparkwriter.session.spark_conf import POOLS, SUBQUERIES, thread_bounds

pytestmark = pytest.mark.long

QUERIES = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pyspark import SparkContext
from pyspark.sql import SparkSession
from daemon.config.file import load
from sparkwriter.sinks import ConfiguredSinks

tier = ConfiguredSinks()
tier.start(load(Path(sys.argv[1])))
context = SparkContext.getOrCreate()
spark = SparkSession(context)


def query(number):
    count = f"SELECT count(DISTINCT id) FROM range({100 + number})"
    joined = "SELECT a.id FROM range(200) a JOIN (SELECT DISTINCT id FROM range(200)) b USING (id)"
    query = f"SELECT count(*) FROM ({joined}) WHERE id < ({count})"
    return spark.newSession().sql(query).first()[0]


with ThreadPoolExecutor(4) as callers:
    print(list(callers.map(query, range(30))) == [100 + n for n in range(30)])
threads = context._jvm.java.lang.Thread.getAllStackTraces().keySet()
names = [str(thread.getName()) for thread in threads]
print(*(sum(name.startswith(pool) for name in names) for pool in sys.argv[2:]))
tier.stop()
"""

NAMES = ("shuffle-exchange", "ResultQueryStageExecution")
CONFIG = """
[daemon]
state_dir = "state"
staging_dir = "staging"

[kafka]
"bootstrap.servers" = "127.0.0.1:1"

[spark]
master = "local[2]"
writers = 1
warm_up = false
conf.spark.driver.extraJavaOptions = "-XX:TieredStopAtLevel=1"

[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "jdbc"
uri = "jdbc:sqlite:file:{folder}/catalog.db"
"jdbc.schema-version" = "V1"
warehouse = "{folder}/warehouse"

[pipeline.shop]
group = "g"
topics = ["shop"]
format = "canal-json"
target = "lake.sink.{{table}}"
"""


@pytest.mark.timeout(400)
def test_few_threads_serve_many_statements_with_subqueries(tmp_path: Path) -> None:
    """Thirty statements of four callers, each with exchanges of its own and in a subquery that one
    of them waits for: all end, in the threads of one writer."""
    file = tmp_path / "config.toml"
    file.write_text(CONFIG.format(folder=tmp_path))
    (tmp_path / "warehouse").mkdir()
    run = subprocess.run(
        [sys.executable, "-c", QUERIES, file, *NAMES],
        capture_output=True,
        cwd=Path(__file__).parents[2],
        timeout=380,
        check=False,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    right, counts = run.stdout.splitlines()[-2:]
    assert right == "True"
    shuffles, results = map(int, counts.split())
    assert 0 < shuffles <= 20
    assert 0 < results <= 20


def test_room_for_every_writer_and_all_subqueries() -> None:
    """Whoever bounds the subqueries in another way has Spark's own bounds."""
    keys = [f"spark.sql.{pool}.maxThreadThreshold" for pool in POOLS]
    assert thread_bounds(4, {}) == dict.fromkeys(keys, "32")
    assert thread_bounds(64, {}) == dict.fromkeys(keys, "272")
    assert thread_bounds(4, {SUBQUERIES: "64"}) == {}
