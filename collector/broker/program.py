"""A Kafka broker of one node as a program: its files, its format, its start."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from actors.runtime.files import sync, write_durably
from actors.runtime.jars import JarsError
from actors.runtime.java import JavaMissing, find_java
from actors.runtime.programs import HOST, Program, ProgramError, free_port, is_free
from collector.broker.properties import MECHANISM, USER, BrokerSettings, properties
from collector.jars import broker_classpath

NAME = "broker"
_FORMAT_WITHIN_S = 60.0
_JVM = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    # Kafka catches the error in many of its threads, and goes on without them.
    "-XX:+ExitOnOutOfMemoryError",
)


class Broker:
    """One broker on one data folder, which it makes and formats where that is new. One thread's.

    In the folder: ``logs`` (the data), ``server.properties``, ``broker.log``, ``tmp``. It listens
    at a port of the loopback interface only, and ends with this process, however that ends.
    """

    def __init__(self, data: Path, settings: BrokerSettings) -> None:
        """Nothing is made yet."""
        self.data = data.absolute()
        self.logs = self.data / "logs"
        self.program = Program(NAME, self.data / "broker.log")
        self._settings = settings

    def launch(self, port: int) -> None:
        """Write its settings, format the data folder where it is new, start it; not ready yet.

        Raises ProgramError.
        """
        if not is_free(port):
            raise ProgramError(f"port {port} on {HOST} is in use")
        scratch = self.data / "tmp"
        try:
            self.data.mkdir(parents=True, exist_ok=True)
            if scratch.exists():  # libraries that a killed one unpacked
                shutil.rmtree(scratch)
            scratch.mkdir()
            if not self.logs.exists():
                self._format(port)
            written = self._write("server.properties", self._properties(self.logs, port))
        except OSError as problem:
            raise ProgramError(f"the broker's data folder can't be written: {problem}") from None
        heap, temporary = self._settings.heap, f"-Djava.io.tmpdir={scratch}"
        self.program.launch([*_java(*_JVM, *heap, temporary), "kafka.Kafka", written])

    def _properties(self, logs: Path, port: int) -> Mapping[str, str]:
        return properties(self._settings, logs, port, free_port(other_than=port))

    def _format(self, port: int) -> None:
        """Make the data folder with the user in it: beside it, so that it is whole or not there."""
        fresh = self.data / "logs.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        settings = self._write("format.properties", self._properties(fresh, port))
        said = ["--cluster-id", self._settings.cluster_id, "--config", str(settings)]
        if (login := self._settings.login) is not None:
            # In a file: everybody may read a command line.
            said += ["--add-scram", f"{MECHANISM}=[name={USER},password={login.client}]"]
        arguments = self.data / "format.arguments"
        write_durably(arguments, "".join(f"{word}\n" for word in said))
        done = subprocess.run(
            [*_java(*_JVM), "kafka.tools.StorageTool", "format", f"@{arguments}"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=_FORMAT_WITHIN_S,
        )  # fmt: skip
        arguments.unlink()
        settings.unlink()
        if done.returncode:
            told = (done.stderr + done.stdout).strip()
            raise ProgramError(f"the broker's data folder can't be formatted: {told}")
        fresh.replace(self.logs)
        sync(self.data)

    def _write(self, name: str, values: Mapping[str, str]) -> Path:
        path = self.data / name
        write_durably(path, "".join(f"{key}={value}\n" for key, value in values.items()))
        return path


def _java(*options: str) -> list[str]:
    """Give a Java command line with Kafka's class path, up to the main class."""
    try:
        java, path = find_java().java, broker_classpath()
    except (JavaMissing, JarsError) as problem:
        raise ProgramError(str(problem)) from None
    config = Path(__file__).with_name("log4j2.properties")
    return [str(java), *options, f"-Dlog4j2.configurationFile={config}", "-cp", path]
