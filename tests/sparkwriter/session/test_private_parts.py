"""What is used of Iceberg, Spark, pyspark and py4j that is no public interface of theirs.

An update of any of them runs against this first: each part by its name and its number of
arguments, before a write fails somewhere in the middle of a day.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from py4j import clientserver
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.context import SQLContext

ICEBERG, SPARK = "org.apache.iceberg.", "org.apache.spark."
GUAVA = f"{ICEBERG}relocated.com.google.common."

PARTS = [
    # Commits, and what they are made of.
    (f"{ICEBERG}BaseTable", "operations", 0),
    (f"{ICEBERG}BaseTransaction", "table", 0),
    (f"{ICEBERG}TableOperations", "commit", 2),
    (f"{ICEBERG}TableMetadata", "buildFrom", 1),
    (f"{ICEBERG}TableMetadata$Builder", "setRef", 2),
    (f"{ICEBERG}TableMetadata$Builder", "setProperties", 1),
    (f"{ICEBERG}TableMetadata$Builder", "build", 0),
    (f"{ICEBERG}Transactions", "newTransaction", 2),
    (f"{ICEBERG}SnapshotProducer", "cleanAll", 0),
    (f"{ICEBERG}SnapshotRef", "branchBuilder", 1),
    (f"{ICEBERG}SnapshotRef", "builderFrom", 2),
    (f"{ICEBERG}util.SnapshotUtil", "currentAncestorIds", 1),
    (f"{ICEBERG}PendingUpdate", "commit", 0),
    # Much in one call.
    (f"{ICEBERG}rest.RESTUtil", "encodeFormData", 1),
    (f"{ICEBERG}ScanTaskParser", "toJson", 1),
    (f"{ICEBERG}SchemaParser", "fromJson", 1),
    (f"{ICEBERG}expressions.ExpressionParser", "fromJson", 1),
    (f"{GUAVA}util.concurrent.MoreExecutors", "newDirectExecutorService", 0),
    ("org.apache.commons.lang3.reflect.MethodUtils", "invokeMethod", 3),
    # Files, and how Spark is told of them.
    (f"{ICEBERG}spark.Spark3Util", "loadIcebergCatalog", 2),
    (f"{ICEBERG}spark.SparkTableCache", "get", 0),
    (f"{ICEBERG}spark.ScanTaskSetManager", "stageTasks", 3),
    (f"{ICEBERG}spark.FileRewriteCoordinator", "fetchNewFiles", 2),
    (f"{ICEBERG}spark.FileRewriteCoordinator", "clearRewrite", 2),
    (f"{ICEBERG}spark.actions.SparkActions", "get", 1),
    # Plans that are put together without their text.
    (f"{SPARK}sql.classic.SparkSession", "setActiveSession", 1),
    (f"{SPARK}sql.classic.SparkSession", "sessionState", 0),
    (f"{SPARK}sql.classic.Dataset$", "ofRows", 2),
    (f"{SPARK}sql.execution.datasources.v2.DataSourceV2Relation$", "create", 3),
    (f"{SPARK}sql.catalyst.plans.logical.AppendData$", "byPosition", 3),
    (f"{SPARK}sql.catalyst.plans.logical.AppendData$", "byPosition$default$3", 0),
    (f"{SPARK}api.python.PythonUtils", "toSeq", 1),
    (f"{SPARK}sql.connector.catalog.CatalogManager", "catalog", 1),
]


@pytest.mark.integration
@pytest.mark.parametrize(("name", "method", "arguments"), PARTS)
def test_a_part_is_there(spark: SparkSession, name: str, method: str, arguments: int) -> None:
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.org.apache.iceberg.Files.localInput("").getClass().getClassLoader()
    class_ = loader.loadClass(name)
    found = set()
    while class_ is not None:
        every = [*class_.getDeclaredMethods(), *class_.getMethods()]
        found |= {(each.getName(), each.getParameterCount()) for each in every}
        class_ = class_.getSuperclass()
    assert (method, arguments) in found


@pytest.mark.integration
def test_a_session_gives_its_jvm(spark: SparkSession) -> None:
    """Its process, which is watched and killed, its gateway, and Java's own session."""
    context: Any = spark.sparkContext
    assert context._gateway.proc.poll() is None
    assert context._gateway._gateway_client.is_connected
    assert context._gateway._gateway_client.finalizer_deque is not None
    assert context._gateway.proc.stdin is not None  # the JVM ends when it reads its end
    assert spark._jsparkSession.sessionState().catalogManager() is not None  # type: ignore[attr-defined]
    assert hasattr(context, "_accumulatorServer")


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (SparkContext, ("_lock", "_active_spark_context", "_gateway", "_jvm")),
        (SparkSession, ("_instantiatedSession", "_activeSession")),
        (SQLContext, ("_instantiatedContext",)),
        (clientserver, ("SHUTDOWN_FINALIZER_WORKER",)),
    ],
)
def test_what_a_dead_jvm_is_taken_out_of(owner: object, names: tuple[str, ...]) -> None:
    """pyspark's class variables: renamed, they would go on answering with the dead one."""
    assert [name for name in names if not hasattr(owner, name)] == []


def test_these_are_the_versions_that_this_was_written_for() -> None:
    assert version("pyspark").startswith("4.")
    assert version("py4j").startswith("0.10.9.")
