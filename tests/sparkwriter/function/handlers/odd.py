"""Handlers that do what they should not, by ``settings.how``; none has ``statement``."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any


class OwnText(str):
    """Of a module that binlogd's own process can't import."""

    __slots__ = ()

    def __str__(self) -> OwnText:
        """Not a plain one either."""
        return self


def apply(batch: Any, context: Any) -> None:
    """Once, where ``settings.once`` names a file that says so."""
    once = Path(context.settings.get("once", "/nonexistent"))
    if not once.exists():
        if "once" in context.settings:
            once.touch()
        odd(context.settings["how"], batch, context)
        odder(context.settings["how"], batch, context)
    rows = batch.read_all().to_pylist()
    with open(context.settings["file"], "a") as file:
        file.writelines(f"{context.version} {row}\n" for row in rows)


def odd(how: str, batch: Any, context: Any) -> None:
    match how:
        case "hang":
            time.sleep(3600)
        case "leak":
            held = []
            while True:
                held.append(b"x" * (16 << 20))
        case "die":
            os._exit(7)
        case "raise":
            raise ValueError(f"no luck with {context.table}")
        case "raise half":
            raise ValueError(f"no luck with \ud800\x1b[31m {context.table}")
        case "reject half":
            for row in batch.read_all().to_pylist():
                context.reject({**row, "note": "\ud800", "\udcff": 1}, "it is \udcff\n")
        case "reject":
            for row in batch.read_all().to_pylist():
                context.reject(row, "it is bad")
        case "reject all":
            while True:
                context.reject({}, "it is bad")
        case "swallow all" | "swallow one" | "swallow and raise":
            looped: dict[str, Any] = {}
            looped["self"] = looped
            rows = batch.read_all().to_pylist()
            for row in rows * 10_001 if how == "swallow all" else [looped]:
                try:
                    context.reject(row, "it is bad")
                except Exception:
                    continue  # as the loop of somebody who wants to get through
            if how == "swallow and raise":
                raise ConnectionError("the store is away")


def odder(how: str, batch: Any, context: Any) -> None:
    """What its process, its threads and its classes may do."""
    match how:
        case "forks and comes back":
            # As of somebody who forgets os._exit in the copy.
            if (pid := os.fork()) == 0:
                raise ChildProcessError("the copy comes back")
            os.waitpid(pid, 0)
        case "forks and ends":
            if os.fork() == 0:
                time.sleep(20)  # and holds all that its parent had open
                os._exit(0)
            os._exit(7)
        case "speaks for itself":
            for descriptor in os.listdir("/proc/self/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:"):
                        os.write(int(descriptor), b"\0\0\0\4junk")
        case "reject own text":
            for row in batch.read_all().to_pylist():
                context.reject({key: OwnText(row[key]) for key in row}, OwnText("it is bad"))
        case "reject late":
            rows = batch.read_all().to_pylist()
            thread = threading.Thread(target=reject_late, args=(context, rows))
            thread.start()


def reject_late(context: Any, rows: list[dict[str, Any]]) -> None:
    """What a thread that was left behind does."""
    said = Path(context.settings["once"] + ".said")
    while True:
        try:
            context.reject(rows[0], "it is bad")
        except Exception as error:
            said.write_text(str(error))
            return
        time.sleep(0.05)


def early(batch: Any, context: Any) -> None:
    """Returns too early."""
