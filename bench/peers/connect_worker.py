"""A standalone worker of Kafka Connect with one plugin, for the contestants that are its sinks."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from actors.runtime.java import find_java
from bench.compare.dying import die_with_parent
from bench.compare.job import Job
from bench.peers.java_program import JavaFailed

LIST = "connect"
"""The list of jars whose part ``worker`` it is."""
ANSWER_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.1
_UP_WITHIN_S = 180.0
"""Scanning the plugins takes 10 s, on a busy machine ten times as long."""


def properties(
    job: Job, port: int, plugins: Path, more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The standalone worker's properties; ``more`` are the contestant's own."""
    return {
        "bootstrap.servers": job.bootstrap,
        "listeners": f"http://127.0.0.1:{port}",
        "plugin.path": str(plugins),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.storage.file.filename": f"{job.folder}/offsets",
        **(more or {}),
    }


def lines(given: Mapping[str, str]) -> str:
    """Properties as a file has them."""
    return "".join(f"{name}: {value}\n" for name, value in given.items())


@contextmanager
def running(
    job: Job, libraries: str, sink: str, more: Mapping[str, str]
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A worker without connectors, up; gives the port of its interface. Raises JavaFailed.

    ``libraries``, ``sink``: the class paths of the worker and of its plugin.
    """
    folder, port = Path(job.folder), _free_port()
    plugin = folder / "plugins" / "sink"
    plugin.mkdir(parents=True)
    for jar in map(Path, sink.split(os.pathsep)):
        (plugin / jar.name).symlink_to(jar)
    told = folder / "worker.properties"
    told.write_text(lines(properties(job, port, plugin.parent, more)))
    command = [
        str(find_java().java), "-Xmx2g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        f"-Djava.io.tmpdir={folder}",
        "-cp", libraries, "org.apache.kafka.connect.cli.ConnectStandalone", str(told),
    ]  # fmt: skip
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )
    try:
        _await_up(port, process, folder / "worker.log")
        yield port, process
    finally:
        process.kill()
        process.wait()


def check_tasks(port: int, name: str) -> None:
    """Raise JavaFailed where a task of the connector has failed."""
    for task in ask(port, f"/connectors/{name}/status")["tasks"]:
        if task["state"] == "FAILED":
            raise JavaFailed(f"the sink failed: {task['trace']}")


def ask(port: int, path: str, body: object = None, method: str | None = None) -> Any:
    """Ask the worker's interface; raises URLError."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        None if body is None else msgspec.json.encode(body),
        {"Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=ANSWER_WITHIN_S) as answer:
        said = answer.read()
        return msgspec.json.decode(said) if said else None


def _await_up(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _UP_WITHIN_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            ask(port, "/connectors")
            return
        except urllib.error.URLError:  # it doesn't listen yet, or isn't ready
            time.sleep(_LOOK_EVERY_S)
    raise JavaFailed(f"the worker is not up: {log.read_text(errors='replace')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
