"""Records which pipelines are paused, in ``pauses.json`` of the state directory."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from daemon.jobs.store import write_durably
from sparkwriter.private_files import make_private_folder

VERSION = 1


class PausesUnreadable(Exception):
    """The file is damaged, or a later version's: one line."""


@dataclass(frozen=True, slots=True)
class Pause:
    """One pipeline's pause. ``reason``: what the person said about it, or empty."""

    since_ms: int
    reason: str = ""


class Pauses:
    """The pauses of one state directory. Any thread."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "pauses.json"
        self._lock = threading.Lock()
        self._pipelines: Mapping[str, Pause] = {}

    def load(self) -> None:
        """Read what is recorded. Raises PausesUnreadable, OSError."""
        if not self._path.exists():
            return
        try:
            document = json.loads(self._path.read_text(encoding="utf-8"))
            version, pipelines = document["version"], document["pipelines"]
            found = {name: Pause(p["since_ms"], p["reason"]) for name, p in pipelines.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PausesUnreadable(
                f"{self._path}: damaged ({error}); without the file all pipelines run"
            ) from error
        if version != VERSION:
            raise PausesUnreadable(f"{self._path}: of version {version}, this reads {VERSION}")
        self._pipelines = found

    def now(self) -> Mapping[str, Pause]:
        """The paused pipelines."""
        return self._pipelines

    def put(self, pipeline: str, pause: Pause | None) -> None:
        """Record a pause, or (None) that there is none. Durable. Raises OSError."""
        with self._lock:
            found = {name: p for name, p in self._pipelines.items() if name != pipeline}
            if pause is not None:
                found[pipeline] = pause
            recorded = {name: asdict(p) for name, p in sorted(found.items())}
            document = {"version": VERSION, "pipelines": recorded}
            make_private_folder(self._path.parent)
            write_durably(self._path, json.dumps(document, ensure_ascii=False, indent=1))
            self._pipelines = found
