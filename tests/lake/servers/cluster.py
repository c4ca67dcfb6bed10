"""Spark's own cluster: a master and two workers of one core each, from pyspark's jars."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from demo.servers.jars import pyspark_jars
from demo.servers.program import HOST, Program, free_port
from demo.servers.server import START_WITHIN_S, Server, ask_json
from sparkwriter.session.java import find_java

WORKERS = 2


class Cluster(Server):
    """A master, which is ready when its workers are there."""

    name = "spark-standalone"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        home = pyspark_jars().parent
        self._class = home / "bin" / "spark-class"
        self._web = free_port()
        self.environment = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "JAVA_HOME": str(find_java().home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
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
        worker, folder = self.workers[number], self.folder / f"worker-{number + 1}"
        worker.launch([
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

    def _worker(self, number: int) -> Program:
        log = self.folder / f"worker-{number}.log"
        return Program(f"worker {number}", log, self.environment | _own_local_folder(log))


def _own_local_folder(log: Path) -> dict[str, str]:
    folder = log.with_suffix(".local")
    folder.mkdir(exist_ok=True)
    return {
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_WORKER_OPTS": f"-Djava.io.tmpdir={folder}",
        "TMPDIR": str(folder),
        "PATH": os.environ.get("PATH", ""),
    }
