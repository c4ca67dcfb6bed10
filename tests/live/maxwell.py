"""Maxwell as a reader of MariaDB: one process for each seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkwriter.java import find_java
from tests.live.jars import classpath, jars_of
from tests.live.program import HOST, Program
from tests.live.sources import Source


class Maxwell:
    """A ``Reader``. Its place in the log is in the database itself. One thread's."""

    section: Mapping[str, Any] = {"format": "maxwell-json"}
    left_out: Mapping[str, str] = {
        "truncate": "Maxwell does not tell of TRUNCATE",
        "partitions": "nor of partitions that are emptied",
    }
    can_be_killed = True

    def __init__(self, folder: Path, bootstrap: str) -> None:
        """Nothing runs yet; raises JarsError."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._path = classpath(jars_of("maxwell") / "maxwell")
        self._bootstrap = bootstrap
        self._programs: dict[str, tuple[Program, Sequence[str]]] = {}

    def start(self) -> None:
        for program, command in self._programs.values():
            program.launch(command)

    def kill(self) -> None:
        for program, _ in self._programs.values():
            program.kill()

    def add(self, name: str, topic: str, seed: int, source: Source, folder: Path) -> None:
        options = {
            "host": HOST, "port": source.port, "user": "live", "password": "live",
            "client_id": name, "replica_server_id": 500_000 + seed % 100_000,
            "producer": "kafka", "kafka.bootstrap.servers": self._bootstrap,
            "kafka_topic": topic, "ddl_kafka_topic": topic, "output_ddl": "true",
            "output_primary_key_columns": "true",
            "filter": f"exclude: *.*, include: /{source.prefix}{seed}_.*/.*",
            "jdbc_options": "useSSL=false&allowPublicKeyRetrieval=true",
        }  # fmt: skip
        command = [
            str(find_java().java), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Dfile.encoding=UTF-8", f"-Djava.io.tmpdir={self._folder}", "-cp", self._path,
            "com.zendesk.maxwell.Maxwell",
            *(f"--{option}={value}" for option, value in options.items()),
        ]  # fmt: skip
        program = Program("Maxwell", self._folder / f"{name}.log")
        program.launch(command)
        self._programs[name] = (program, command)

    def remove(self, name: str) -> None:
        self._programs.pop(name)[0].kill()

    def failure(self, name: str) -> str:
        program, _ = self._programs[name]
        return "" if program.runs else program.tail()

    def start_again(self, name: str) -> None:
        program, command = self._programs[name]
        program.kill()
        program.launch(command)
