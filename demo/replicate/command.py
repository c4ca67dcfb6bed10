"""The command itself, as a person has it run: its lines are read, its parts are killed."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from actors.runtime.java import CHECKOUT
from demo.__main__ import DemoFailed

END_WITHIN_S = 150.0

PARTS: Mapping[str, str] = {
    "collector": "org.apache.kafka.connect.cli.ConnectDistributed",
    "broker": "kafka.Kafka",
}
"""By part the Java class that it runs."""


class Replicate:
    """One command's lives. Ended when the block is. One thread's."""

    def __init__(
        self, folder: Path, url: str, password_file: Path, *more: str, into: Path | None = None
    ) -> None:
        """``folder``: ``--dir``, which is made. ``into``: its lake, ``lake`` in there without."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        words = ["replicate", url, "--into", str(into or folder / "lake"), "--dir", str(folder)]
        words += ["--password-file", str(password_file), *more]
        self._command = [sys.executable, "-m", "daemon.cli", *words]
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.said: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def plan(self) -> tuple[int, dict[str, Any]]:
        """The status and the document of a dry run. Raises DemoFailed where there is none."""
        done = subprocess.run(
            [*self._command, "--dry-run", "--json"],
            cwd=CHECKOUT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError as error:
            raise DemoFailed(f"no plan: {done.stderr or done.stdout}") from error
        if done.returncode and not found["lacks"]:
            raise DemoFailed(f"the plan is refused: {done.stderr}")
        return done.returncode, found

    def start(self) -> None:
        """Start it; the lines of earlier lives are gone."""
        log = (self._folder / "replicate.err").open("ab")
        with log:
            self._process = subprocess.Popen(
                [*self._command, "--yes"], cwd=CHECKOUT, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        self._lines = queue.SimpleQueue()
        threading.Thread(
            target=self._read, args=(self._process, self._lines), daemon=True, name="lines"
        ).start()

    def _read(self, process: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    def await_line(self, pattern: str) -> re.Match[str]:
        """Return with the line that has this in it. Raises DemoFailed where the command ends."""
        while (line := self._lines.get()) is not None:
            self.said.append(line)
            if found := re.search(pattern, line):
                return found
        raise DemoFailed(f"the command has ended: {self._told()}")

    def check(self) -> None:
        """Raise DemoFailed where it has ended."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise DemoFailed(f"the command has ended: {self._told()}")

    def _told(self) -> str:
        err = (self._folder / "replicate.err").read_text(errors="replace").splitlines()
        return "\n".join([*self.said[-15:], *err[-15:]])

    def kill(self) -> None:
        """kill -9, and what it started ends with it."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def kill_part(self, part: str) -> None:
        """kill -9 of the process that is this part. Raises DemoFailed where there is none."""
        assert self._process is not None
        found = [pid for pid in _descendants(self._process.pid) if PARTS[part] in _words(pid)]
        if not found:
            raise DemoFailed(f"there is no {part}: {self._told()}")
        for pid in found:
            os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """Ctrl-C, and wait for its end. Raises DemoFailed where that was no good one."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        status = self._process.wait(END_WITHIN_S)
        while (line := self._lines.get()) is not None:
            self.said.append(line)
        if status:
            raise DemoFailed(f"the command has ended with status {status}: {self._told()}")


def _descendants(pid: int) -> Iterator[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:  # it has ended
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    left = [pid]
    while left:
        children = parents.get(left.pop(), [])
        yield from children
        left += children


def _words(pid: int) -> list[str]:
    """The command line of a JVM; of the leash that holds it nothing: it runs Python."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
    return words if Path(words[0]).name == "java" else []
