"""Readers of MariaDB that are one process for each seed: Canal and Maxwell."""

from __future__ import annotations

import abc
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from actors.runtime.java import find_java
from bench.peers.java_program import JavaFailed, compile_class
from tests.live.jars import HERE, classpath, jars_of
from tests.live.program import LiveError, Program
from tests.live.sources import Source


class Processes(abc.ABC):
    """A ``Reader``, whose processes note by themselves where in the log they are. One thread's."""

    name: str
    format: str
    left_out: Mapping[str, str]
    unread: Mapping[str, str]
    images: Sequence[str] = ("FULL", "NOBLOB", "MINIMAL")
    can_be_killed = True

    def __init__(self, folder: Path, bootstrap: str) -> None:
        """Nothing runs yet; raises JarsError, LiveError."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.bootstrap = bootstrap
        self._programs: dict[str, tuple[Program, Sequence[str]]] = {}

    def compiled(self, name: str, libraries: str) -> str:
        """Compile a class of ``java/``, and give the class path that it and these are on."""
        compiler = classpath(jars_of("canal") / "compiler")
        try:
            compile_class(name, compiler, libraries, self.folder, HERE / "java")
        except JavaFailed as problem:
            raise LiveError(str(problem)) from problem
        return f"{self.folder}{os.pathsep}{libraries}"

    @abc.abstractmethod
    def command(self, name: str, topic: str, seed: int, source: Source) -> Sequence[str]:
        """Give what comes behind ``java``, to read a seed's databases into a topic."""

    @abc.abstractmethod
    def stuck(self, log: str) -> str:
        """Say what a process, by its log, tries to read again and again; empty for nothing."""

    def start(self) -> None:
        for program, command in self._programs.values():
            program.launch(command)

    def kill(self) -> None:
        for program, _ in self._programs.values():
            program.kill()

    def add(
        self,
        name: str,
        topic: str,
        seed: int,
        source: Source,
        folder: Path,
        more: Mapping[str, str] = {},
    ) -> None:
        command = [
            str(find_java().java), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Dfile.encoding=UTF-8", *self.command(name, topic, seed, source),
        ]  # fmt: skip
        program = Program(self.name, self.folder / f"{name}.log")
        self._programs[name] = (program, command)
        program.launch(command)

    def remove(self, name: str) -> None:
        self._programs.pop(name)[0].kill()

    def failure(self, name: str) -> str:
        program, _ = self._programs[name]
        return self.stuck(program.output()) if program.runs else program.tail()

    def start_again(self, name: str) -> None:
        program, command = self._programs[name]
        program.kill()
        program.launch(command)
