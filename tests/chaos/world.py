"""What the runs from the command line share: a broker, a lake, and a Spark to look into it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from actors.runtime.jars import lake_jars
from actors.runtime.java import find_java
from demo.broker import DevBroker
from sparkwriter.session.session import start_session
from tests.chaos.databases import DatabaseRig, database
from tests.chaos.lakes import LakeRig, place
from tests.integration.rig import JVM, Rig
from tests.lake.sessions import jars_for


@contextmanager
def database_world(sink: str, away_s: float) -> Iterator[Callable[[str], DatabaseRig]]:
    """The same with a database, and without Spark."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="binlogd-chaos-")))
        server = stack.enter_context(database(sink))
        broker = stack.enter_context(DevBroker(folder / "broker"))

        def rig(name: str) -> DatabaseRig:
            here = folder / name
            here.mkdir()
            made = DatabaseRig(broker, _no_spark, {}, here)
            made.server, made.away_s = server, away_s
            return made

        yield rig


def _no_spark() -> SparkSession:
    raise AssertionError("a database is looked into without Spark")


@contextmanager
def world(write: str, lake: str = "", away_s: float = 60.0) -> Iterator[Callable[[str], Rig]]:
    """Gives what makes a rig in a folder of the given name; all is gone afterwards.

    ``write``: how the daemons write their targets. ``lake``: ``s3``, ``hdfs``, or a folder.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="binlogd-chaos-")))
        os.environ["JAVA_HOME"] = str(find_java().home)
        there = stack.enter_context(place(lake, folder, away_s)) if lake else None
        catalog = dict(there.lake.catalog) if there else _folder(folder)
        jars = jars_for(there.lake) if there else lake_jars()
        conf = JVM | dict(there.lake.conf if there else {})
        log_file, scratch = folder / "spark.log", folder / "scratch"
        spark = start_session(conf, "local[1]", jars, {"lake": catalog}, log_file, scratch)
        stack.callback(spark.stop)
        broker = stack.enter_context(DevBroker(folder / "broker"))

        def rig(name: str) -> Rig:
            here = folder / name
            here.mkdir()
            if there is None:
                return Rig(broker, lambda: spark, catalog, here, write)
            made = LakeRig(broker, lambda: spark, there.catalog, here, write)
            made.place, made.settings = there, there.settings
            return made

        yield rig


def _folder(folder: Path) -> dict[str, str]:
    return {
        "type": "jdbc", "uri": f"jdbc:sqlite:file:{folder}/catalog.db",
        "jdbc.schema-version": "V1", "warehouse": str(folder / "warehouse"),
    }  # fmt: skip
