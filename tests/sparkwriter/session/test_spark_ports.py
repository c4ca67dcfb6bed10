"""Spark's ports are open to every process of this machine: they ask for a secret."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

REACH = """
import json, sys
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

port, secret = json.loads(sys.stdin.read())
quiet = {"stdout": sys.stderr, "stderr": sys.stderr}
gateway = launch_gateway(SparkConf(loadDefaults=False).set("spark.driver.memory", "400m"), quiet)
jvm = gateway.jvm
conf = jvm.org.apache.spark.SparkConf(False).set("spark.rpc.askTimeout", "20s")
conf.set("spark.app.id", "another").set("spark.master", "spark://another:1")
for key in ("spark.authenticate", "spark.authenticate.secret"):
    if secret is not None:
        conf.set(key, {"spark.authenticate": "true"}.get(key, secret))
scala = getattr(getattr(jvm.org.apache.spark, "SecurityManager$"), "MODULE$")
third = getattr(scala, "$lessinit$greater$default$3")()
security = jvm.org.apache.spark.SecurityManager(conf, jvm.scala.Option.empty(), third)
security.initializeAuth()
env = jvm.org.apache.spark.rpc.RpcEnv.create("another", "127.0.0.1", -1, conf, security, True)
address = jvm.org.apache.spark.rpc.RpcAddress("localhost", port)
told = []
for endpoint in ("HeartbeatReceiver", "MapOutputTracker", "BlockManagerMaster"):
    try:
        told.append(str(env.setupEndpointRef(address, endpoint).name()))
    except Exception as error:
        told.append(None)
        print(error, file=sys.stderr)
print(json.dumps(told))
env.shutdown()
"""

ENDPOINTS = ["HeartbeatReceiver", "MapOutputTracker", "BlockManagerMaster"]


def reached(spark: SparkSession, secret: str | None) -> list[str | None]:
    """The endpoints of our JVM that another JVM reaches, with a secret or with none."""
    import json

    port = int(str(spark.sparkContext.getConf().get("spark.driver.port")))
    run = subprocess.run(
        [sys.executable, "-c", REACH],
        input=json.dumps([port, secret]),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        timeout=250,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found: list[str | None] = json.loads(run.stdout)
    return found


def the_secret(spark: SparkSession) -> str:
    """What Spark made for itself, in its own memory."""
    environment = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get()
    return str(environment.securityManager().getSecretKey())


@pytest.mark.long
def test_another_jvm_is_turned_away(spark: SparkSession) -> None:
    """Without the secret, and with another one; with it there would be something to reach."""
    assert reached(spark, None) == [None, None, None]
    assert reached(spark, "guessed") == [None, None, None]
    assert reached(spark, the_secret(spark)) == ENDPOINTS


def test_the_secret_is_nowhere_to_be_read(spark: SparkSession) -> None:
    """Not in a command line, an environment, a setting or a log."""
    secret = the_secret(spark)
    assert len(secret) >= 32
    jvm = Path("/proc") / str(spark.sparkContext._gateway.proc.pid)
    for file in ("cmdline", "environ"):
        assert secret not in (jvm / file).read_bytes().decode(errors="replace")
    conf = spark.sparkContext.getConf()
    assert secret not in str(conf.getAll())
    assert secret not in (Path.cwd() / jvm_log(spark)).read_text(errors="replace")


def jvm_log(spark: SparkSession) -> str:
    """Where the session's JVM writes what it has to say."""
    options = str(spark.sparkContext.getConf().get("spark.driver.extraJavaOptions"))
    (place,) = [part for part in options.split() if part.startswith("-Dlog4j2")]
    settings = Path(place.partition("file://")[2]).read_text()
    (line,) = [line for line in settings.splitlines() if line.startswith("appender.file.fileName")]
    return line.partition(" = ")[2]
