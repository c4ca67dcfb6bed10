"""A second JVM in one process, after the first was killed or ran out of memory: real ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.machine, pytest.mark.long]

TWICE = """
import sys, threading
from functools import partial
import logging
import structlog
from pathlib import Path
from changes.model.errors import SinkUnavailable
from sparkwriter.session.java_api import JavaFailure
from actors.runtime.jars import lake_jars
from sparkwriter.session.jvm import SparkJvm
from sparkwriter.session.keeper import SessionKeeperSettings, SessionKeeper
from sparkwriter.session.session import start_session

structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
logging.getLogger().addHandler(logging.NullHandler())  # as the daemon's log keeps py4j silent
conf = {"spark.driver.memory": "500m", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
log_file = Path(sys.argv[1])
scratch = log_file.with_name("scratch")
start = partial(start_session, conf, "local[1]", lake_jars(), {}, log_file, scratch)
keeper = SessionKeeper(lambda: SparkJvm(start()), SessionKeeperSettings())
keeper.open()
first = keeper.current()
old = first.jvm.spark.newSession()
DIE
assert first.ended.wait(60)
print(keeper.figures().last_end)
while not keeper.figures().rebuilt:
    threading.Event().wait(0.05)
try:
    old.sql("SELECT 1").collect()
    print("the dead answer")
except (*JavaFailure, OSError, AttributeError) as error:
    print("dead")
second = keeper.current()
session = second.jvm.spark.newSession()
print(second.jvm.pid != first.jvm.pid, session.sql("SELECT 41 + 1").collect()[0][0])
print(len(list(scratch.glob("blockmgr-*"))))
keeper.close()
print(second.ended.wait(0))
"""

KILL = "first.jvm.kill()"
FILL = """
jvm = first.jvm.spark.sparkContext._jvm
try:
    hog = jvm.java.util.ArrayList()
    while True:
        hog.add(jvm.java.nio.ByteBuffer.allocate(50_000_000))
except (*JavaFailure, OSError):
    pass
"""


@pytest.mark.parametrize(
    ("die", "how"),
    [
        (KILL, "was ended by SIGKILL"),
        (FILL, "ended with status 3, as it does when it is out of memory"),
    ],
)
def test_a_second_jvm_serves_where_the_first_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, die: str, how: str
) -> None:
    """pyspark's one gateway is the new one, the old session's objects fail, nothing is said; and
    what a killed one left in its folder is gone."""
    from actors.runtime.java import find_java

    monkeypatch.setenv("JAVA_HOME", str(find_java().home))
    child = subprocess.run(
        [sys.executable, "-c", TWICE.replace("DIE", die), str(tmp_path / "spark.log")],
        capture_output=True,
        cwd=Path(__file__).parents[3],
        timeout=280,
        check=False,
    )
    assert child.stderr.decode() == ""
    assert child.stdout.decode().splitlines() == [how, "dead", "True 42", "1", "True"]
