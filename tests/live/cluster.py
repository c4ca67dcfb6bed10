"""A Kafka Connect cluster that exists, which a collector adopts: two workers, in one group."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from collector.connector.config import connector_name
from collector.jars import collector_folder
from tests.live.collector import Collector
from tests.live.connect import ask, launch
from tests.live.program import HOST, LiveError, Program, free_port
from tests.live.sources import Source

_WITHIN_S = 180.0
_SETTINGS = {
    "group.id": "adopted",
    "exactly.once.source.support": "enabled",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "plugin.discovery": "service_load",
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    # By default five minutes, in which the tasks of a killed worker would wait for it.
    "scheduled.rebalance.max.delay.ms": "0",
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "3000",
} | {
    f"{name}.storage.{key}": value
    for name in ("config", "offset", "status")
    for key, value in (("topic", f"adopted-{name}"), ("replication.factor", "-1"))
}


class Cluster(Collector):
    """A ``Reader``: connectors are the daemon's, and their workers, which outlast it, are not."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        """Nothing runs yet; raises JarsError."""
        super().__init__(folder, bootstrap)
        plugins = folder / "plugins"
        plugins.mkdir(parents=True)
        for database in ("mariadb", "postgres"):
            (plugins / database).symlink_to(collector_folder(database))
        self._secrets = folder / "secrets.properties"
        self._hit: list[str] = []
        self._workers = [Worker(folder / name, bootstrap, plugins) for name in ("one", "two")]

    def section(self, name: str) -> Sequence[str]:
        return [
            f'connect = "http://{self._workers[0].place}"',
            f'references = {{ "database.password" = "file:{self._secrets}:{name}" }}',
        ]

    def add(
        self,
        name: str,
        topic: str,
        seed: int,
        source: Source,
        folder: Path,
        more: Mapping[str, str] = {},
    ) -> None:
        super().add(name, topic, seed, source, folder, more)
        with self._secrets.open("a") as file:
            file.write(f"{name}={source.log_address(seed)[2]}\n")

    def start(self) -> None:
        """Start those that are down: the killed one when the other has all that it had."""
        down = [worker for worker in self._workers if not worker.program.runs]
        if len(down) < len(self._workers):
            self._await_places({worker.place for worker in down})
        for worker in down:
            worker.launch()
        for worker in down:
            worker.program.await_ready(worker.answers, _WITHIN_S)

    def kill(self) -> None:
        """kill -9 of the worker that has a task, or of both where nothing is read any more."""
        places = self._await_places(frozenset()) if self._states else {}
        first = next(iter(places.values()), "")
        self._hit = [name for name, place in places.items() if place == first]
        for worker in self._workers:
            if not self._states or worker.place == first:
                worker.program.kill()

    def hit(self) -> Collection[str]:
        """Those whose tasks the killed worker had."""
        return self._hit

    def remove(self, name: str) -> None:
        super().remove(name)
        self._ask(f"/connectors/{connector_name(name)}", method="DELETE")

    def _await_places(self, gone: Set[str]) -> Mapping[str, str]:
        """The worker of each seed's task, once none is one of the ``gone``."""
        deadline, pause = time.monotonic() + _WITHIN_S, threading.Event()
        while not gone.isdisjoint((found := self._places()).values()):
            if time.monotonic() > deadline:
                raise LiveError(f"no other worker takes a killed one's tasks: {found}")
            pause.wait(0.3)
        return found

    def _places(self) -> Mapping[str, str]:
        found = {}
        for name in self._states:
            for task in self._ask(f"/connectors/{connector_name(name)}/status")["tasks"]:
                found[name] = task["worker_id"]
        return found

    def _ask(self, path: str, method: str | None = None) -> Any:
        """Ask a worker that runs, until its group has counted its members."""
        port = next(worker.port for worker in self._workers if worker.program.runs)
        deadline, pause = time.monotonic() + _WITHIN_S, threading.Event()
        while True:
            try:
                return ask(port, path, method=method)
            except LiveError:
                if time.monotonic() > deadline:
                    raise
            pause.wait(0.3)


class Worker:
    """One, with an address that stays."""

    def __init__(self, folder: Path, bootstrap: str, plugins: Path) -> None:
        folder.mkdir()
        self.port = free_port()
        self.place = f"{HOST}:{self.port}"
        self.program = Program("Kafka Connect", folder / "connect.log")
        self._folder = folder
        self._settings = _SETTINGS | {
            "bootstrap.servers": bootstrap,
            "listeners": f"http://{self.place}",
            "rest.advertised.host.name": HOST,
            "plugin.path": str(plugins),
        }

    def launch(self) -> None:
        """Start it; it is up some time later."""
        launch(self.program, "ConnectDistributed", self._folder, self._settings)

    def answers(self) -> bool:
        """Whether it is up."""
        try:
            ask(self.port, "/connectors")
        except LiveError:
            return False
        return True
