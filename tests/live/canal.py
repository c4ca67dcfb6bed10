"""Canal as a reader of MariaDB: one process for each seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.peers.java_program import JavaFailed, compile_class
from sparkwriter.java import find_java
from tests.live.jars import HERE, classpath, jars_of
from tests.live.program import HOST, LiveError, Program
from tests.live.sources import Source

_CLASS = "RunCanal"


class Canal:
    """A ``Reader``. Its place in the log is in its folder, the tables' definitions in its memory.

    One thread's.
    """

    section: Mapping[str, Any] = {"format": "canal-json"}
    left_out: Mapping[str, str] = {}
    can_be_killed = False

    def __init__(self, folder: Path, bootstrap: str) -> None:
        """Nothing runs yet; raises JarsError."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._jars = jars_of("canal")
        self._bootstrap = bootstrap
        self._programs: dict[str, tuple[Program, Sequence[str]]] = {}

    def start(self) -> None:
        for program, command in self._programs.values():
            program.launch(command)

    def kill(self) -> None:
        for program, _ in self._programs.values():
            program.kill()

    def add(self, name: str, topic: str, seed: int, source: Source, folder: Path) -> None:
        libraries = classpath(self._jars / "canal")
        if not (self._folder / f"{_CLASS}.class").exists():
            try:
                compiler = classpath(self._jars / "compiler")
                compile_class(_CLASS, compiler, libraries, self._folder, HERE / "java")
            except JavaFailed as problem:
                raise LiveError(str(problem)) from problem
        own = self._folder / name
        own.mkdir()
        command = [
            str(find_java().java), "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Dfile.encoding=UTF-8", f"-Djava.io.tmpdir={own}",
            "-cp", f"{self._folder}:{libraries}", _CLASS,
            HOST, str(source.port), "live", "live", rf"{source.prefix}{seed}_.*\..*", str(own),
            str(700_000 + seed % 100_000), self._bootstrap, topic,
        ]  # fmt: skip
        program = Program("Canal", self._folder / f"{name}.log")
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
