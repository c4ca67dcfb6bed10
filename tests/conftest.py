"""What a test run shares, or each of its workers: one Spark session with one catalog, ``lake``.

Workers (``make test`` has two) are processes: nothing here is shared between them, and what they
make is in folders and on ports of their own.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.changes import conformance
from tests.left import none_is_left
from tests.needs import missing, needed
from tests.time_limit import in_turn, skip_when_over

if TYPE_CHECKING:  # `make quick` runs without it
    from pyspark.sql import SparkSession

    from sparkwriter.iceberg.staged_source import SharedStaging
    from tests.lake.lakes import Lake

# Whole daemons live and end in one process: their files are more than many shells allow a program.
_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES[1], _FILES[1]))

NEED_A_JVM = {"spark", "broker"}

# How long an example takes is the machine's matter: a stall of a moment is no bug of ours.
settings.register_profile("binlogd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("binlogd")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for Spark or for the broker is an integration test, said so or not.

    TEST_TURN puts another file first.
    """
    for item in items:
        if NEED_A_JVM.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("integration")
    if turn := os.environ.get("TEST_TURN"):
        items[:] = in_turn(items, turn)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """What is missing of a machine, or the samples of other projects, skips a test with a line."""
    skip_when_over()
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    absent = any(value is conformance.ABSENT for value in parameters)
    if absent or item.get_closest_marker("conformance") is not None:
        conformance.folder()
    with needed():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """The same for a server that the test itself starts; and no daemon outlives its test."""
    with needed(), none_is_left():
        return (yield)


def _log_kept() -> Iterator[None]:
    """A daemon that a test ran in this process sends its log to its own place and level."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


log_kept_by_a_module = pytest.fixture(scope="module", autouse=True)(_log_kept)
log_kept_by_a_test = pytest.fixture(autouse=True)(_log_kept)


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """The lake of the catalog ``lake``, empty at the start of the run.

    A folder with SQLite, or what TEST_LAKE names: any test of Iceberg's tables runs on it.
    """
    from tests.lake.lakes import LAKES

    opened = LAKES[os.environ.get("TEST_LAKE") or "jdbc-folder"]
    with opened(tmp_path_factory.mktemp("warehouse")) as lake:
        yield lake


@pytest.fixture(scope="session")
def warehouse(lake: Lake) -> Path:
    """The folder of the catalog ``lake`` and its tables."""
    if lake.folder is None:
        pytest.skip("looks into the warehouse's folder")
    return lake.folder


@pytest.fixture(scope="session")
def lake_conf(lake: Lake) -> dict[str, str]:
    """The properties of the catalog ``lake``."""
    return dict(lake.catalog)


@pytest.fixture(scope="session")
def spark_master(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where Spark runs: in one process, or as TEST_MASTER says."""
    from tests.lake.sessions import MASTERS

    with MASTERS[os.environ.get("TEST_MASTER") or "local"](
        tmp_path_factory.mktemp("cluster"), lake
    ) as master:
        yield master


@pytest.fixture(scope="session")
def shared_staging(lake: Lake, spark_master: str) -> SharedStaging | None:
    """Where executors find staged files; None where they see this machine's disk."""
    from sparkwriter.iceberg.staged_source import SharedStaging

    return None if spark_master.startswith("local") else SharedStaging(lake.staging)


@pytest.fixture(scope="session")
def spark(
    lake: Lake, spark_master: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """The one Spark session of the test run, with the catalog ``lake``; started at first use."""
    from actors.runtime.java import find_java
    from sparkwriter.iceberg.sink import CATALOG, warm_up_catalog
    from sparkwriter.session.session import start_session
    from tests.lake.sessions import CONF, jars_for

    log_file = tmp_path_factory.mktemp("spark-logs") / "spark.log"
    scratch = tmp_path_factory.mktemp("spark-scratch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(find_java().home))
        warm_up_properties = warm_up_catalog(tmp_path_factory.getbasetemp() / "warm-up")
        catalogs = {"lake": lake.catalog, CATALOG: warm_up_properties}
        conf = {**CONF, **lake.conf}
        session = start_session(conf, spark_master, jars_for(lake), catalogs, log_file, scratch)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def drivers() -> None:
    """Spark's drivers of databases; ends the test where one was not fetched."""
    from actors.runtime.jars import JarsError, extra_jars

    for name in ("mariadb", "postgresql"):
        try:
            extra_jars([name])
        except JarsError as problem:
            missing(f"{name}-driver", str(problem))
