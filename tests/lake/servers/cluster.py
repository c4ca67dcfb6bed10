"""Spark's own cluster: a master and two workers of one core each, from pyspark's jars."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from actors.runtime.java import find_java
from actors.runtime.programs import HOST, Program, free_port
from demo.servers.jars import pyspark_jars
from demo.servers.server import START_WITHIN_S, Server, ask_json

WORKERS = 2

NOBODY = 65534
"""The user and the group that own nothing."""


class Cluster(Server):
    """A master, which is ready when its workers are there.

    ``apart``: its workers and their executors are another user's where that can be had. They then
    read no file of a test, whose folders are private, as on other machines. ``secret``: whoever
    speaks to it must know it.
    """

    name = "spark-standalone"

    def __init__(self, folder: Path, *, apart: bool = False, secret: str = "") -> None:
        super().__init__(folder)
        self._apart = Path(tempfile.mkdtemp(prefix="workers-")) if apart and can_part() else None
        if self._apart is not None:
            os.chown(self._apart, NOBODY, NOBODY)
        home = pyspark_jars().parent
        self._class = home / "bin" / "spark-class"
        self._web = free_port()
        self.environment = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "JAVA_HOME": str(find_java().home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC{_told(secret)}",
        }
        self.workers = [self._worker(number) for number in range(1, WORKERS + 1)]

    @property
    def master(self) -> str:
        """What ``spark.master`` is."""
        return f"spark://{self.address}"

    def command(self) -> Sequence[str | Path]:
        ports = ("--port", str(self.port), "--webui-port", str(self._web))
        name = "org.apache.spark.deploy.master.Master"
        return [self._class, name, "--host", HOST, *ports]

    def answers(self) -> bool:
        return ask_json(f"http://{HOST}:{self._web}/json/").get("url") == self.master

    def start(self) -> Cluster:
        super().start()
        for number in range(WORKERS):
            self.start_worker(number)
        self.program.await_ready(lambda: self.alive() == WORKERS, START_WITHIN_S)
        return self

    def start_worker(self, number: int) -> None:
        """Start one; the master will hear of it."""
        worker, folder = self.workers[number], self._own / f"worker-{number + 1}"
        worker.launch([
            *(AS_NOBODY if self._apart else ()),
            self._class, "org.apache.spark.deploy.worker.Worker", "--host", HOST,
            "--webui-port", str(free_port()), "-c", "1", "-m", "1g", "-d", folder, self.master,
        ])  # fmt: skip

    def alive(self) -> int:
        """How many workers the master has heard of lately."""
        found: int = ask_json(f"http://{HOST}:{self._web}/json/").get("aliveworkers", 0)
        return found

    def kill(self) -> None:
        with ExitStack() as all_of_them:
            all_of_them.callback(super().kill)
            for worker in self.workers:
                all_of_them.callback(worker.kill)

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        if self._apart is not None:
            # An executor ends when its worker has: it may be removing its own files still.
            shutil.rmtree(self._apart, ignore_errors=True)

    @property
    def apart(self) -> bool:
        """Whether its executors read no private file of this user."""
        return self._apart is not None

    @property
    def _own(self) -> Path:
        """Where workers keep their files."""
        return self._apart or self.folder

    def _worker(self, number: int) -> Program:
        local = self._own / f"worker-{number}.local"
        local.mkdir(exist_ok=True)
        if self._apart:
            os.chown(local, NOBODY, NOBODY)
        log = self.folder / f"worker-{number}.log"
        return Program(f"worker {number}", log, self.environment | _local_folder(local))


AS_NOBODY = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--pdeathsig=KILL", "--",
)  # fmt: skip


def can_part() -> bool:
    """Whether this process may start others as another user."""
    return os.geteuid() == 0 and shutil.which(AS_NOBODY[0]) is not None


def _told(secret: str) -> str:
    if not secret:
        return ""
    return f" -Dspark.authenticate=true -Dspark.authenticate.secret={secret}"


def _local_folder(folder: Path) -> dict[str, str]:
    return {
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_WORKER_OPTS": f"-Djava.io.tmpdir={folder}",
        "TMPDIR": str(folder),
        "PATH": os.environ.get("PATH", ""),
    }
