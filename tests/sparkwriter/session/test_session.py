"""The session's settings, its silence, and what it says when it can't be had."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from changes.model.errors import SinkUnavailable
from sparkwriter.iceberg.probe import check_warehouse
from sparkwriter.iceberg.sink import check_catalog
from sparkwriter.session.durable_files import CLASS
from sparkwriter.session.session import (
    FILE_SYSTEM,
    ICEBERG_EXTENSIONS,
    launch_conf,
    session_conf,
    start_session,
)

LOG = Path("/logs/log4j2.properties")
BARE = Path("/jars/local/bare.jar")
TEMP = Path("/scratch of ours")


def test_user_wins() -> None:
    """A setting of the user replaces ours."""
    conf = {"spark.driver.memory": "5g", "spark.scheduler.mode": "FIFO"}
    merged = session_conf(conf, "local[2]", [], {}, LOG, BARE, TEMP)
    assert conf.items() <= merged.items()


def test_a_commit_of_sqlite_is_not_undone_by_a_power_cut() -> None:
    """Its journal's removal is synced, too. Whoever asks for less gets it."""
    key = "spark.sql.catalog.lake.jdbc.synchronous"
    lake = {"type": "jdbc", "uri": "jdbc:sqlite:file:/w/catalog.db"}
    for catalog, expected in (
        (lake, "EXTRA"),
        ({**lake, "jdbc.synchronous": "FULL"}, "FULL"),
        ({**lake, "uri": "jdbc:postgresql://host/db"}, None),
    ):
        merged = session_conf({}, "local[1]", [], {"lake": catalog}, LOG, BARE, TEMP)
        assert merged.get(key) == expected


def test_user_does_not_win_where_it_would_be_wrong() -> None:
    """Zone, cached tables and the master are ours; extensions and jars are added to the user's."""
    conf = {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.catalog.lake.cache-enabled": "true",
        "spark.sql.extensions": "his.Extension",
        "spark.jars": "/his.jar",
    }
    merged = session_conf(
        conf, "local[3]", [Path("/ours.jar")], {"lake": {"type": "jdbc"}}, LOG, BARE, TEMP
    )
    assert merged["spark.sql.session.timeZone"] == "UTC"
    assert merged["spark.sql.catalog.lake.cache-enabled"] == "false"
    assert merged["spark.sql.extensions"] == f"his.Extension,{ICEBERG_EXTENSIONS}"
    assert merged["spark.jars"] == "/his.jar,/ours.jar"
    assert merged["spark.sql.catalog.lake.type"] == "jdbc"


OURS = f"{BARE}:{TEMP}/classes"


def test_local_files_are_durable_and_ports_ask_for_a_secret_where_spark_is_local() -> None:
    """Elsewhere the executors have no such class, and nobody has told them the secret. A class
    path of the user's comes before ours."""
    ours = session_conf({}, "local[2]", [], {}, LOG, BARE, TEMP)
    assert ours["spark.driver.extraClassPath"] == OURS
    assert ours[FILE_SYSTEM] == CLASS
    assert ours["spark.authenticate"] == "true"
    for master in ("spark://host:7077", "local-cluster[2,1,512]"):
        far = session_conf({}, master, [], {}, LOG, BARE, TEMP)
        assert not far.keys() & {FILE_SYSTEM, "spark.driver.extraClassPath", "spark.authenticate"}
    classes = {"spark.driver.extraClassPath": "/x"}
    theirs = session_conf(classes, "local[2]", [], {}, LOG, BARE, TEMP)
    assert theirs["spark.driver.extraClassPath"] == f"/x:{OURS}"
    assert theirs[FILE_SYSTEM] == CLASS


def test_a_class_that_is_not_compiled_yet_is_nothing_for_the_launcher() -> None:
    """It opens local files itself, before there is anything to compile with. The user's own file
    system it may have."""
    ours = session_conf({}, "local[2]", [], {}, LOG, BARE, TEMP)
    assert FILE_SYSTEM not in launch_conf(ours)
    theirs = session_conf({FILE_SYSTEM: "a.Class"}, "local[2]", [], {}, LOG, BARE, TEMP)
    assert launch_conf(theirs)[FILE_SYSTEM] == "a.Class"


def test_a_jar_that_is_gone_is_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jars may be exchanged while a daemon runs whose JVM ends: it is started again later."""
    monkeypatch.setenv("BINLOGD_JARS", str(tmp_path))
    with pytest.raises(SinkUnavailable, match="run `make setup`"):
        start_session({}, "local[1]", [], {}, tmp_path / "jvm.log", tmp_path / "scratch")


def test_out_of_memory_ends_the_jvm_unless_the_user_wants_it_to_live() -> None:
    """The JVM takes the last word, and that is the user's."""
    theirs = "-XX:-ExitOnOutOfMemoryError"
    conf = {"spark.driver.extraJavaOptions": theirs}
    merged = session_conf(conf, "local[1]", [], {}, LOG, BARE, TEMP)
    options = merged["spark.driver.extraJavaOptions"].split()
    assert options.index("-XX:+ExitOnOutOfMemoryError") < options.index(theirs)


def test_a_folder_for_temporary_files_unless_the_user_has_one() -> None:
    """Blanks in its name do not part it, and the user's option is the later one."""
    theirs = "-Djava.io.tmpdir=/big"
    conf = {"spark.driver.extraJavaOptions": theirs}
    merged = session_conf(conf, "local[1]", [], {}, LOG, BARE, TEMP)
    options = shlex.split(merged["spark.driver.extraJavaOptions"])
    assert options.index(f"-Djava.io.tmpdir={TEMP}") < options.index(theirs)


def test_no_secret_is_on_the_command_line() -> None:
    """Every user of the machine can read it: catalogs, telling names, known values stay off."""
    conf = {
        "spark.driver.memory": "2g",
        "spark.hadoop.fs.s3a.secret.key": "one",
        "spark.hadoop.fs.s3a.access.key": "two",
        "spark.ssl.keyStorePassword": "three",
        "spark.extra": "xyz-from-a-file",
    }
    catalogs = {"lake": {"jdbc.password": "four"}}
    merged = session_conf(conf, "local[1]", [], catalogs, LOG, BARE, TEMP)
    launched = launch_conf(merged, frozenset({"from-a-file"}))
    assert launched["spark.driver.memory"] == "2g"
    assert launched.keys() < merged.keys()
    for secret in ("one", "two", "three", "four", "from-a-file"):
        assert secret not in str(sorted(launched.values()))


@pytest.mark.parametrize(
    ("master", "partitions"), [("local", "1"), ("local[3]", "3"), ("local[2,4]", "2")]
)
def test_shuffle_partitions(master: str, partitions: str) -> None:
    """A shuffle has as many parts as there are cores."""
    merged = session_conf({}, master, [], {}, LOG, BARE, TEMP)
    assert merged["spark.sql.shuffle.partitions"] == partitions


def test_warehouse_that_can_not_be_made(tmp_path: Path) -> None:
    """One line says which sink, which folder, and why."""
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(SinkUnavailable) as error:
        check_warehouse("lake", {"warehouse": f"file://{file}/inside"})
    assert str(error.value) == f"sink lake: can't write warehouse {file}/inside: Not a directory"


def test_warehouse_elsewhere() -> None:
    """A warehouse in an object store is the catalog's to check."""
    check_warehouse("lake", {"warehouse": "s3://bucket/path"})


@pytest.mark.integration
def test_catalog_that_opens(spark: SparkSession, lake_conf: dict[str, str]) -> None:
    """The check passes on the catalog of the tests and leaves nothing in its folder."""
    check_catalog(spark, "lake", lake_conf)
    assert not list(Path(lake_conf["warehouse"]).glob(".binlogd-*"))


@pytest.mark.integration
def test_catalog_that_does_not_open(spark: SparkSession, tmp_path: Path) -> None:
    """One line says which sink and which catalog."""
    uri = f"jdbc:sqlite:file:{tmp_path}/nowhere/catalog.db"
    key = "spark.sql.catalog.broken"
    properties = {"type": "jdbc", "uri": uri, "warehouse": str(tmp_path)}
    session = spark.newSession()
    session.conf.set(key, "org.apache.iceberg.spark.SparkCatalog")
    for name, value in properties.items():
        session.conf.set(f"{key}.{name}", value)
    with pytest.raises(SinkUnavailable, match="sink broken: can't open the catalog") as error:
        check_catalog(session, "broken", properties)
    assert uri in str(error.value)
    assert "\n" not in str(error.value)


QUIET = """
import os, sys
from pathlib import Path
from actors.runtime.jars import lake_jars
from sparkwriter.session.session import start_session
conf = {"spark.driver.memory": "600m"}
log_file = Path(sys.argv[1])
os.umask(0)
spark = start_session(conf, "local[1]", lake_jars(), {}, log_file, log_file.with_name("scratch"))
jvm = spark.sparkContext._jvm
print(jvm.java.lang.Runtime.getRuntime().maxMemory())
local = jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration())
print(local.getClass().getName())
print(jvm.java.lang.System.getProperty("java.io.tmpdir"))
print(len(list(log_file.with_name("scratch").glob("blockmgr-*"))))
folder = log_file.parent
seen = (folder, log_file.with_name("scratch"), *filter(Path.is_file, folder.iterdir()))
print([path.name for path in seen if path.stat().st_mode & 0o077])
jvm.java.lang.System.out.println("said to standard output")
jvm.java.lang.System.err.println("said to standard error")
spark.sql("SELECT 1").collect()
spark.stop()
"""


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.machine
def test_silence_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM gets the heap, the file system and the folder it was given, speaks into its log
    alone, which others can't read, and blanks in paths are no matter."""
    from actors.runtime.java import find_java

    monkeypatch.setenv("JAVA_HOME", str(find_java().home))
    log = tmp_path / "logs of ours" / "spark.log"
    child = subprocess.run(
        [sys.executable, "-c", QUIET, str(log)],
        capture_output=True,
        cwd=Path(__file__).parents[3],
        timeout=280,
        check=True,
    )
    assert child.stderr == b""
    scratch = log.with_name("scratch")
    assert child.stdout == f"{600 * 2**20}\n{CLASS}\n{scratch}\n1\n[]\n".encode()
    said = log.read_text()
    assert "said to standard output" in said
    assert "said to standard error" in said


@pytest.mark.integration
@pytest.mark.machine
def test_java_that_does_not_start(tmp_path: Path) -> None:
    """A JVM that can't start is told in one line that names its log."""
    log = tmp_path / "spark.log"
    child = subprocess.run(
        [sys.executable, "-c", QUIET.replace("600m", "1m"), str(log)],
        capture_output=True,
        cwd=Path(__file__).parents[3],
        timeout=280,
        check=False,
    )
    last = child.stderr.decode().splitlines()[-1]
    assert last.startswith("changes.model.errors.SinkUnavailable: Spark does not start: ")
    assert str(log) in last
