"""What the runs from the command line share: a broker, a lake, and a Spark to look into it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.broker import DevBroker
from sparkwriter.session.jars import lake_jars
from sparkwriter.session.java import find_java
from sparkwriter.session.session import start_session
from tests.integration.rig import JVM, Rig


@contextmanager
def world(write: str) -> Iterator[Callable[[str], Rig]]:
    """Gives what makes a rig in a folder of the given name; all is gone afterwards.

    ``write``: how the daemons write their targets.
    """
    with tempfile.TemporaryDirectory(prefix="binlogd-chaos-") as text:
        folder = Path(text)
        lake = {
            "type": "jdbc", "uri": f"jdbc:sqlite:file:{folder}/catalog.db",
            "jdbc.schema-version": "V1", "warehouse": str(folder / "warehouse"),
        }  # fmt: skip
        os.environ["JAVA_HOME"] = str(find_java().home)
        log_file, scratch = folder / "spark.log", folder / "scratch"
        spark = start_session(JVM, "local[1]", lake_jars(), {"lake": lake}, log_file, scratch)
        try:
            with DevBroker(folder / "broker") as broker:

                def rig(name: str) -> Rig:
                    place = folder / name
                    place.mkdir()
                    return Rig(broker, lambda: spark, lake, place, write)

                yield rig
        finally:
            spark.stop()
