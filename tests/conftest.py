"""What a test run shares, or each of its workers: one Spark session with one catalog, ``lake``.

Workers (``make test`` has two) are processes: nothing here is shared between them, and what they
make is in folders and on ports of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.changes import conformance

if TYPE_CHECKING:  # `make quick` runs without it
    from pyspark.sql import SparkSession

NEED_A_JVM = {"spark", "broker"}

# How long an example takes is the machine's matter: a stall of a moment is no bug of ours.
settings.register_profile("binlogd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("binlogd")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for Spark or for the broker is an integration test, said so or not."""
    for item in items:
        if NEED_A_JVM.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("integration")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A case of the samples of other projects is skipped, and says so, where they are missing."""
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    absent = any(value is conformance.ABSENT for value in parameters)
    if absent or item.get_closest_marker("conformance") is not None:
        conformance.folder()


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the catalog ``lake`` and its tables, empty at the start of the run."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def lake_conf(warehouse: Path) -> dict[str, str]:
    """The embedded catalog's properties: Iceberg's JdbcCatalog on an SQLite file."""
    return {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:file:{warehouse}/catalog.db",
        "jdbc.schema-version": "V1",
        "warehouse": str(warehouse),
    }


@pytest.fixture(scope="session")
def spark(
    lake_conf: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """The one Spark session of the test run, with the catalog ``lake``; started at first use."""
    from sparkwriter.iceberg.warm_up import CATALOG, warm_up_catalog
    from sparkwriter.session.jars import lake_jars
    from sparkwriter.session.java import find_java
    from sparkwriter.session.session import start_session

    log_file = tmp_path_factory.mktemp("spark-logs") / "spark.log"
    scratch = tmp_path_factory.mktemp("spark-scratch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(find_java().home))
        warm_up_properties = warm_up_catalog(tmp_path_factory.getbasetemp() / "warm-up")
        catalogs = {"lake": lake_conf, CATALOG: warm_up_properties}
        conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}  # as config.toml has it
        session = start_session(conf, "local[2]", lake_jars(), catalogs, log_file, scratch)
    yield session
    session.stop()
