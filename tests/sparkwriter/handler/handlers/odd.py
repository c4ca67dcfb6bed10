"""Handlers that do what they should not, by ``settings.how``; none has ``statement``."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


def apply(batch: Any, context: Any) -> None:
    """Once, where ``settings.once`` names a file that says so."""
    once = Path(context.settings.get("once", "/nonexistent"))
    if not once.exists():
        if "once" in context.settings:
            once.touch()
        odd(context.settings["how"], batch, context)
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


def early(batch: Any, context: Any) -> None:
    """Returns too early."""
