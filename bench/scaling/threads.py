"""The daemon, with its processor time by thread and by what its writers do in a file.

``python -m bench.scaling.threads FILE run --config …``: FILE is written anew twice a second.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
LOOK_EVERY_S = 0.5


class Parts:
    """Processor seconds by part; what is done inside another part counts once, as itself."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._inner = threading.local()

    def count(self, owner: Any, function: str, part: str) -> None:
        """Count what a function of a class or module takes."""
        setattr(owner, function, self._counted(getattr(owner, function), part))

    def _counted(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            stack: list[float] = self._inner.__dict__.setdefault("stack", [])
            stack.append(0.0)
            begun = time.thread_time()
            try:
                return function(*args, **named)
            finally:
                took = time.thread_time() - begun
                self.spent[part] += took - stack.pop()
                self.calls[part] += 1
                if stack:
                    stack[-1] += took

        return call


def task_seconds(pid: int | str) -> dict[int, tuple[str, float]]:
    """Of each thread of a process its name, as the kernel has it, and its processor seconds."""
    found = {}
    for entry in Path(f"/proc/{pid}/task").iterdir():
        try:
            name, _, fields = (entry / "stat").read_text().partition("(")[2].rpartition(") ")
        except OSError:  # it has ended
            continue
        found[int(entry.name)] = (name, sum(map(int, fields.split()[11:13])) / TICKS)
    return found


def by_name() -> dict[str, float]:
    """The seconds of this process's threads, by Python's names where it has one."""
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    spent: Counter[str] = Counter()
    for task, (name, seconds) in task_seconds("self").items():
        spent[names.get(task) or f"({name.rstrip('0123456789')})"] += seconds
    return dict(spent)


def watch(parts: Parts) -> None:
    """Count what writers do, and name each actor's thread by its role."""
    from py4j import clientserver, java_gateway

    from actors.runtime.shell import Shell
    from sparkwriter.iceberg import equality, vectors
    from sparkwriter.iceberg.store import IcebergStore
    from sparkwriter.kit.writer import TargetWriter

    def named(shell: Any) -> None:
        threading.current_thread().name = shell._address.role

    Shell.on_start = named  # type: ignore[method-assign]
    for kind in (java_gateway.GatewayConnection, clientserver.ClientServerConnection):
        parts.count(kind, "send_command", "calls into the JVM")
    parts.count(vectors, "positions_of", "looking keys up")
    parts.count(vectors, "KeySet", "looking keys up")
    parts.count(vectors, "keys_of", "looking keys up")
    parts.count(equality, "lay_files", "laying files")
    parts.count(vectors, "write_vectors", "laying files")
    parts.count(IcebergStore, "publish", "the write's rest")
    parts.count(TargetWriter, "write", "the write's rest")


def main() -> None:
    """Run the daemon's command line."""
    file, arguments = Path(sys.argv[1]), sys.argv[2:]
    parts = Parts()
    watch(parts)

    def tell() -> None:
        while True:
            told = {"threads": by_name(), "parts": dict(parts.spent), "calls": dict(parts.calls)}
            new = file.with_suffix(".new")
            new.write_text(json.dumps(told))
            new.replace(file)
            threading.Event().wait(LOOK_EVERY_S)

    threading.Thread(target=tell, name="bench", daemon=True).start()
    sys.argv = ["binlogd", *arguments]
    from daemon.cli.__main__ import main as command

    command()


if __name__ == "__main__":
    main()
