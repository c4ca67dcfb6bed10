"""Collects the bundle's members. Each text is without secrets; what can't be read is named."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from changes.model.printable import json_text
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.config.shown import shown
from daemon.state import control
from daemon.state.recorded import export_snapshot
from offsets.snapshot_text import encode
from offsets.store import StoreError
from settings.secrets import masked

LAST_BYTES = 2 << 20
"""Of each log. More makes a file that nobody can send; this is an hour of a busy daemon."""

JVM_LOG = "jvm.log"

Member = tuple[str, str]
"""A name in the bundle, and its text."""


LEFT_OUT = "left out: the secrets can't be read here, so they can't be removed from it"


def members(config: Config, whole: bool = True) -> Iterator[Member]:
    """All members; ``problems.txt`` last, if something could not be had. ``whole``: the
    configuration's secrets are known."""
    problems: list[str] = []

    def redact(text: str) -> str:
        return masked(config.redactor.text(text))

    parts: list[tuple[str, Callable[[], str]]] = [
        ("config.json", lambda: _json(shown(config))),
        ("status.json", lambda: _json(control.ask(config.daemon.state_dir, {"ask": "status"}))),
        ("versions.json", lambda: _json(versions())),
        ("state.txt", lambda: _listing(config.daemon.state_dir)),
        ("jvm.log", lambda: _jvm_log(config, whole)),
    ]
    if config.log.file:
        parts.append(("binlogd.log", lambda: end_of(Path(config.log.file))))
    parts += [
        (f"positions/{name}.json", partial(_snapshot, config, name)) for name in config.pipeline
    ]
    for name, read in parts:
        try:
            yield name, redact(read())
        except (OSError, UnicodeDecodeError, StoreError, control.ControlError) as error:
            problems.append(f"{name}: {redact(str(error))}")
    if problems:
        yield "problems.txt", "".join(f"{line}\n" for line in problems)


def versions() -> dict[str, Any]:
    """Of the program, its packages, Python, the system, Java; and the machine's size."""
    packages = {d.metadata["Name"]: d.version for d in metadata.distributions()}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "binlogd": packages.get("binlogd"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "java": shutil.which("java"),
        "java_home": os.environ.get("JAVA_HOME"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory,
        "packages": dict(sorted(packages.items())),
    }


def end_of(path: Path) -> str:
    """The last part of a log, from the beginning of a line. Raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LAST_BYTES))
        data = file.read()
    if size > LAST_BYTES:
        data = data.partition(b"\n")[2]
    return data.decode("utf-8", "replace")


def _jvm_log(config: Config, whole: bool) -> str:
    """Unlike the daemon's own log it was written with secrets in it, perhaps. Raises OSError."""
    if not whole:
        raise OSError(LEFT_OUT)
    return end_of(config.daemon.state_dir / JVM_LOG)


def _snapshot(config: Config, name: str) -> str:
    found = export_snapshot(PipelineConfig(config, name))
    damage = "".join(f"damaged: {line}\n" for line in found.damage)
    return damage + ("nothing is recorded\n" if found.snapshot is None else encode(found.snapshot))


def _listing(folder: Path) -> str:
    """The state directory's files with their sizes, and the room that is left."""
    usage = shutil.disk_usage(folder)
    lines = [f"{usage.free:,} of {usage.total:,} bytes are free"]
    lines += [
        f"{path.stat().st_size:>15,} {path.relative_to(folder)}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    return "\n".join(lines) + "\n"


def _json(found: Any) -> str:
    return json_text(found, indent=1) + "\n"
