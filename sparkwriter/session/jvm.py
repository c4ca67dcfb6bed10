"""The process behind a Spark session: watched, killed, and forgotten so that another can come.

pyspark keeps its one gateway and context in class variables: calls to them after a second
JVM was started go to that one. So everything that belongs to a JVM is held here.
"""

from __future__ import annotations

import signal
import threading
import warnings
from subprocess import Popen
from typing import Any

import structlog
from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.context import SQLContext

from sparkwriter.session.java_api import JavaFailure

log: Any = structlog.get_logger(__name__)


class SparkJvm:
    """A session with the JVM that it lives in, a child of this process."""

    def __init__(self, spark: SparkSession) -> None:
        """``spark`` is the session that ``start_session`` has just given."""
        context = spark.sparkContext
        self.spark = spark
        self._context = context
        gateway: Any = context._gateway
        self._gateway = gateway
        self._process: Popen[bytes] = gateway.proc

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        return self._process.pid

    def wait(self) -> str:
        """Return when the process has ended, saying how. One thread only."""
        return how_ended(self._process.wait())

    def kill(self) -> None:
        """End the process, even one that is suspended; callers that wait for its answer wake. Any
        thread, never blocks."""
        self._process.kill()

    def stop(self, within_s: float) -> None:
        """End Spark in good order, then its process; by force where that takes longer.

        A JVM that is suspended, or busy collecting its last memory, would never answer.
        """
        stopper = threading.Thread(target=self._stop, name="spark-stop", daemon=True)
        stopper.start()
        stopper.join(within_s)
        if stopper.is_alive():
            self.kill()
            stopper.join(within_s)

    def _stop(self) -> None:
        try:
            with warnings.catch_warnings():
                # pyspark warns on standard error of what it raises here, too.
                warnings.simplefilter("ignore", RuntimeWarning)
                self.spark.stop()
        except (OSError, *JavaFailure) as error:
            log.warning("spark_not_stopped", reason=str(error))
        forget_gateway(self._gateway)

    def forget(self) -> None:
        """Take a dead JVM out of pyspark's class variables. Before the next one is started."""
        server = getattr(self._context, "_accumulatorServer", None)
        if server is not None:
            server.shutdown()
        self._context._jsc = None  # what still holds the old session fails at once
        forget_gateway(self._gateway)


def forget_gateway(gateway: Any) -> None:
    """Let pyspark know of no gateway. Its JVM is dead, or ends as it reads the end of its stdin."""
    client = gateway._gateway_client
    client.is_connected = False  # no word any more about objects that Python lets go of
    client.finalizer_deque.appendleft(SHUTDOWN_FINALIZER_WORKER)
    if gateway.proc.stdin is not None:
        gateway.proc.stdin.close()
    with SparkContext._lock:
        SparkContext._active_spark_context = None
        SparkContext._gateway = None
        SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    SQLContext._instantiatedContext = None


def how_ended(status: int) -> str:
    """A process's return code in words."""
    if status >= 0:
        # The JVM's own, by -XX:+ExitOnOutOfMemoryError.
        memory = ", as it does when it is out of memory" if status == 3 else ""
        return f"ended with status {status}{memory}"
    return f"was ended by {signal.Signals(-status).name}"
