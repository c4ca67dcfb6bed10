"""The one Spark session of the process: started once, quiet, bounded, local.

Everything of the JVM, its launcher included, speaks into ``log_file``; nothing reaches the
daemon's own stdout or stderr.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors.exceptions.base import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from actors.runtime.files import make_private_folder, private_opener
from actors.runtime.jars import JarsError, local_jar
from changes.model.errors import SinkUnavailable
from sparkwriter.session.durable_files import CLASS, install
from sparkwriter.session.java_api import JavaFailure, reason
from sparkwriter.session.jvm import forget_gateway
from sparkwriter.session.spark_conf import catalog_defaults, catalog_settings

ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"

FILE_SYSTEM = "spark.hadoop.fs.file.impl"
CLASSES = "classes"
"""The folder for classes of our own in the JVM's scratch folder."""

_SECRET_NAME = re.compile(r"password|passphrase|secret|token|credential|access[.\-_]?key", re.I)

LOG4J2_TEMPLATE = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {path}
appender.file.filePattern = {path}.%i
appender.file.filePermissions = rw-------
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}} %p %c{{2}} [%t] %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 50MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


_DEFAULTS = {
    "spark.app.name": "binlogd",
    "spark.driver.memory": "2g",
    "spark.scheduler.mode": "FAIR",
    # A window server of one user in a process that lives for months: off, and what Spark
    # retains for it is bounded, since the listener keeps the executions nevertheless.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.ui.dagGraph.retainedRootRDDs": "10",
    "spark.cleaner.periodicGC.interval": "10min",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Settings that a configuration may change."""

_LOCAL = {
    # Without Hadoop's commands: its own starts a `chmod` for each file it makes, twice where there
    # is a checksum beside it (docs/decisions/0035). And with a close that waits for the disk.
    FILE_SYSTEM: CLASS,
    # Spark's ports are open to everybody on this machine: it makes a secret that no one else
    # has, in the memory of its one process (docs/decisions/0042).
    "spark.authenticate": "true",
}
"""The same, for a Spark that is this machine's alone: executors elsewhere have no such class, and
would have to know the secret."""

_EXACT = {
    # Without it an overflowing cast writes null, and an insert casts whatever it can.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # A staged file that is gone or damaged must fail the write, not be left out of it.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # Our literals are escaped for Spark's own rule.
    "spark.sql.parser.escapedStringLiterals": "false",
}
"""Settings that what is written rests on: a configuration may not change them."""


def session_conf(
    conf: Mapping[str, str],
    master: str,
    jars: Sequence[Path],
    catalogs: Mapping[str, Mapping[str, str]],
    log4j2_file: Path,
    local: Path,
    scratch: Path,
) -> dict[str, str]:
    """Merge our settings with the user's: his win, except where being right depends on ours.

    Pure. ``jars`` and the Iceberg extension are added to the user's, not replaced by them.
    ``local`` holds what our local files extend, for a Spark on this machine alone: no other has
    that path.
    ``scratch`` takes the JVM's temporary files, and Spark's where ``spark.local.dir`` is not set.
    """
    merged = {
        **_DEFAULTS,
        "spark.sql.shuffle.partitions": str(_local_cores(master)),
        **(_LOCAL if is_local(master) else {}),
        **conf,
    }
    if is_local(master):
        # Not in spark.jars: Hadoop loads its file systems by the loader that the JVM began with.
        theirs = conf.get("spark.driver.extraClassPath", "")
        paths = (theirs, str(local), str(scratch.absolute() / CLASSES))
        merged["spark.driver.extraClassPath"] = os.pathsep.join(filter(None, paths))
        merged.setdefault("spark.hadoop.fs.permissions.umask-mode", f"{_umask():03o}")
    for name, properties in catalogs.items():
        merged = {
            **catalog_defaults(name, properties),
            **merged,
            **catalog_settings(name, properties),
        }
    merged["spark.master"] = master
    merged.update(_EXACT)
    # Timestamps with a zone are instants; a session in another zone would shift literals.
    merged["spark.sql.session.timeZone"] = "UTC"
    merged["spark.sql.extensions"] = _joined(conf.get("spark.sql.extensions"), ICEBERG_EXTENSIONS)
    merged["spark.jars"] = _joined(conf.get("spark.jars"), *map(str, jars))
    theirs = conf.get("spark.driver.extraJavaOptions", "")
    merged["spark.driver.extraJavaOptions"] = _java_options(log4j2_file, scratch, theirs)
    return merged


def _java_options(log4j2_file: Path, scratch: Path, theirs: str) -> str:
    """Ours, then the user's: the JVM takes the last word. Spark's launcher parts them as shells do.

    Pure.
    """
    ours = (
        f"-Dlog4j2.configurationFile={log4j2_file.absolute().as_uri()}",
        f"-XX:ErrorFile={log4j2_file.parent.absolute()}/jvm-crash-%p.log",
        f"-Djava.io.tmpdir={scratch.absolute()}",
        # Nothing notices that threads died from a lack of memory: a JVM without them hangs, or half
        # works. One that has ended is started again.
        "-XX:+ExitOnOutOfMemoryError",
    )
    return f"{shlex.join(ours)} {theirs}".rstrip()


def launch_conf(conf: Mapping[str, str], secrets: frozenset[str] = frozenset()) -> dict[str, str]:
    """The part of the settings that the JVM's launcher must see: it ends on a command line.

    Pure. Every user of the machine reads command lines in the list of processes. So a catalog's
    properties (passwords among them), whatever is named like a secret or holds one of ``secrets``
    go to the context alone, which takes them over the gateway's authenticated connection.
    """
    # Shorter ones are in any path; nobody's secret is three characters long.
    told = [secret for secret in secrets if len(secret) > 3]
    return {
        key: value
        for key, value in conf.items()
        if not key.startswith("spark.sql.catalog.")
        # It does not exist yet: it is compiled before the context is made.
        and (key, value) != (FILE_SYSTEM, CLASS)
        and not _SECRET_NAME.search(key)
        and not any(secret in value for secret in told)
    }


def start_session(
    conf: Mapping[str, str],
    master: str,
    jars: Sequence[Path],
    catalogs: Mapping[str, Mapping[str, str]],
    log_file: Path,
    scratch: Path,
    secrets: frozenset[str] = frozenset(),
) -> SparkSession:
    """Launch a JVM (found by JAVA_HOME, else PATH) and return its one long-lived session.

    There is one at a time: call it again only when the JVM has ended and ``SparkJvm.forget`` was
    called. Any thread; it takes 5-10 seconds. ``log_file`` is made with its folder,
    its log4j2 settings beside it. ``scratch`` is a folder of this JVM's own for temporary
    files, recreated here: one that was killed leaves 60 MB of copied jars and libraries there, and
    in the machine's common folder their owner would be unknown. The end of the last JVM removes
    it. ``secrets`` stay off the command line.
    Raises SinkUnavailable, pointing at the log, when the JVM or its Spark does not start, or saying
    which jar it lacks; then nothing of it is left.
    """
    try:
        local = local_jar()
    except JarsError as error:
        # As when the JVM does not start: it is tried again, the daemon's writers go on waiting.
        raise SinkUnavailable(str(error)) from error
    log_file = log_file.absolute()
    make_private_folder(log_file.parent)
    log4j2_file = log_file.with_name("log4j2.properties")
    with open(log4j2_file, "w", encoding="utf-8", opener=private_opener) as file:
        file.write(LOG4J2_TEMPLATE.format(path=log_file))
    _make_anew(scratch)
    make_private_folder(scratch / CLASSES)  # a folder that is not there is no class path
    merged = session_conf(conf, master, jars, catalogs, log4j2_file, local, scratch)
    settings = SparkConf(loadDefaults=False).setAll(list(merged.items()))
    launched = SparkConf(loadDefaults=False).setAll(list(launch_conf(merged, secrets).items()))
    with open(log_file, "ab", opener=private_opener) as output:
        # The launcher gets its conf on the command line: only so does spark.driver.memory size
        # the heap. A session of its own, so that a signal to our process group (Ctrl-C, or
        # SIGTERM to all of it) does not end the JVM while the daemon drains; the JVM ends by
        # itself when our end of its stdin closes, even by kill -9.
        process = {"stdout": output, "stderr": output, "start_new_session": True}
        gateway: Any = None
        try:
            gateway = launch_gateway(launched, process)  # type: ignore[no-untyped-call]
            if merged.get(FILE_SYSTEM) == CLASS:
                install(gateway.jvm, scratch / CLASSES)
            return SparkSession(SparkContext(conf=settings, gateway=gateway))
        except BaseException as error:
            try:
                text = f"Spark does not start: {reason(error)}; see {log_file}"
            finally:
                if gateway is not None:
                    gateway.proc.kill()
                    gateway.proc.wait()
                    forget_gateway(gateway)
            if isinstance(error, (PySparkRuntimeError, OSError, *JavaFailure)):
                raise SinkUnavailable(text) from error
            raise


def is_local(master: str) -> bool:
    """Whether Spark is this machine's alone, in one process."""
    return re.match(r"local(\[|$)", master) is not None


def _umask() -> int:
    """The process's: what the JVM makes in a warehouse is to follow it, as what Python does."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").split("\n"):
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022  # a kernel that does not tell: Hadoop's own


def _make_anew(folder: Path) -> None:
    """Leave an empty folder there. Raises SinkUnavailable: a full disk may have room again."""
    try:
        if folder.exists():
            shutil.rmtree(folder)
        make_private_folder(folder)
    except OSError as error:
        text = os.strerror(error.errno) if error.errno else str(error)
        raise SinkUnavailable(f"can't recreate the JVM's folder {folder}: {text}") from error


def _local_cores(master: str) -> int:
    """How many cores ``local[n]`` means; a cluster's are unknown here, so a small constant."""
    match = re.match(r"local(?:\[(\d+|\*)(?:,.*)?\])?$", master)
    if match is None:
        return 8
    number = match.group(1)
    if number is None:
        return 1
    return (os.cpu_count() or 1) if number == "*" else int(number)


def _joined(first: str | None, *more: str) -> str:
    """Comma-joined, in order, each once."""
    parts = [*(first or "").split(","), *more]
    return ",".join(dict.fromkeys(part.strip() for part in parts if part.strip()))
