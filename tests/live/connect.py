"""Kafka Connect as a child, standalone, and its connectors of Debezium."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from actors.runtime.java import find_java
from collector.jars import collector_folder, worker_classpath
from tests.live.converters import add_plugins
from tests.live.jars import bring_collector
from tests.live.program import HOST, LiveError, Program, free_port
from tests.live.sources import Source

_UP_WITHIN_S = 180.0
"""16 s on two free cores."""
_ANSWER_WITHIN_S = 90.0
_SETTINGS = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    # Without it the converter writes a column's default in the place of a NULL.
    "value.converter.replace.null.with.default": "false",
    "key.converter.replace.null.with.default": "false",
    "offset.flush.interval.ms": "1000",
    "plugin.discovery": "service_load",
}
DEBEZIUM: Mapping[str, str] = {
    "transforms": "one",
    "transforms.one.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.one.regex": ".*",
    "skipped.operations": "none",
    "tasks.max": "1",
    "poll.interval.ms": "50",
    "retriable.restart.connector.wait.ms": "1000",
}
"""All that a connector reads goes into one topic, statements among the rows."""


RENAMED_AWAY: Mapping[str, str] = {
    r"^ALTER TABLE .* RENAME TO ": "Debezium knows the old name again when it restarts, and passes "
    "over its next CREATE TABLE: refused by name (collector/sources/test_renamed.py)",
}


def launch(program: Program, mode: str, folder: Path, settings: Mapping[str, str]) -> None:
    """Start a worker, ``ConnectStandalone`` or ``ConnectDistributed``; it is up some time later."""
    properties = folder / "worker.properties"
    properties.write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
    program.launch([
        find_java().java, "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-Dfile.encoding=UTF-8", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        f"-Djava.io.tmpdir={folder}", "-cp", worker_classpath(),
        f"org.apache.kafka.connect.cli.{mode}", properties,
    ])  # fmt: skip


class Connect:
    """A ``Reader``: a worker, whose offsets are in a file, so that a killed one goes on."""

    format = "debezium-json"
    left_out: Mapping[str, str] = {}
    unread: Mapping[str, str] = RENAMED_AWAY
    images: Sequence[str] = ("FULL",)
    can_be_killed = True

    def __init__(self, folder: Path, bootstrap: str) -> None:
        """Nothing runs yet; raises JarsError."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        bring_collector()
        self._bootstrap = bootstrap
        self._connectors: dict[str, dict[str, str]] = {}
        self.program = Program("Kafka Connect", folder / "connect.log")

    def add_converters(self) -> None:
        """Have those of schema registries, too; before it is started. Raises JarsError."""
        add_plugins(self.folder / "plugins")

    def start(self) -> None:
        """Start the worker, with the connectors there were; raises LiveError."""
        self._port = free_port()
        plugins = self.folder / "plugins"
        plugins.mkdir(exist_ok=True)
        for database in ("mariadb", "mysql", "postgres"):
            if not (plugins / database).exists():
                (plugins / database).symlink_to(collector_folder(database))
        launch(self.program, "ConnectStandalone", self.folder, _SETTINGS | {
            "bootstrap.servers": self._bootstrap,
            "listeners": f"http://{HOST}:{self._port}",
            "plugin.path": str(plugins),
            "offset.storage.file.filename": str(self.folder / "offsets"),
        })  # fmt: skip
        self.program.await_ready(self._answers, _UP_WITHIN_S)
        for name, config in self._connectors.items():
            self._ask("/connectors", {"name": name, "config": config})

    def kill(self) -> None:
        self.program.kill()

    def add(
        self,
        name: str,
        topic: str,
        seed: int,
        source: Source,
        folder: Path,
        more: Mapping[str, str] = {},
    ) -> None:
        config = {**source.connector(seed, folder), **more}
        whole = {**DEBEZIUM, "transforms.one.replacement": topic, "topic.prefix": name, **config}
        self.connect(name, whole)

    def connect(self, name: str, config: Mapping[str, str]) -> None:
        """Have a connector run, with just these settings; raises LiveError."""
        self._connectors[name] = dict(config)
        self._ask("/connectors", {"name": name, "config": config})

    def remove(self, name: str) -> None:
        del self._connectors[name]
        self._ask(f"/connectors/{name}", method="DELETE")

    def start_again(self, name: str) -> None:
        self._ask(f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true", method="POST")

    def failure(self, name: str) -> str:
        status = self._ask(f"/connectors/{name}/status")
        failed = [
            part for part in (status["connector"], *status["tasks"]) if part["state"] == "FAILED"
        ]
        return failed[0].get("trace", "no reason given") if failed else ""

    def _answers(self) -> bool:
        try:
            self._ask("/connectors")
        except LiveError:  # it doesn't listen yet
            return False
        return True

    def _ask(self, path: str, body: object = None, method: str | None = None) -> Any:
        return ask(self._port, path, body, method)


def ask(port: int, path: str, body: object = None, method: str | None = None) -> Any:
    """Ask a worker's API. Raises LiveError where it does not answer, or refuses."""
    request = urllib.request.Request(
        f"http://{HOST}:{port}{path}",
        None if body is None else msgspec.json.encode(body),
        {"Content-Type": "application/json"},
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=_ANSWER_WITHIN_S) as answer:
            return msgspec.json.decode(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        raise LiveError(f"Kafka Connect: {error.read().decode(errors='replace')}") from error
    except OSError as error:
        raise LiveError(f"Kafka Connect does not answer: {error}") from error
