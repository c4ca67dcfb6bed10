"""Where the tests' Spark session runs, and what it needs for a lake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from actors.runtime.jars import JarsError, extra_jars, lake_jars
from sparkwriter.session.spark_conf import needed_extras
from tests.lake.lakes import Lake
from tests.lake.servers.cluster import Cluster
from tests.needs import missing


@contextmanager
def _local(folder: Path, lake: Lake) -> Iterator[str]:
    yield "local[2]"


@contextmanager
def _cluster(folder: Path, lake: Lake) -> Iterator[str]:
    # Those of another user can't write a warehouse that is a folder of ours.
    with Cluster(folder, apart=lake.storage != "folder") as cluster:
        yield cluster.master


MASTERS: Mapping[str, Callable[[Path, Lake], AbstractContextManager[str]]] = {
    "local": _local,
    "cluster": _cluster,
}
"""By name: each gives what ``spark.master`` is for a lake. ``cluster`` starts a master with two
workers, whose executors read no file of this machine's tests where the lake is none either."""

QUICK = "-XX:TieredStopAtLevel=1"  # as config.toml has it
CONF = {
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executor.memory": "900m",
}


def jars_for(lake: Lake) -> list[Path]:
    """The jars that Spark needs for a lake; skips the test where extras were not fetched."""
    found = lake_jars()
    for name in needed_extras(lake.catalog, {}):
        try:
            found += extra_jars([name])
        except JarsError as problem:
            missing(name, str(problem))
    for driver in ("mariadb", "postgresql"):
        # For tests of databases, which are skipped where it is missing.
        with suppress(JarsError):
            found += [jar for jar in extra_jars([driver]) if jar not in found]
    return found
