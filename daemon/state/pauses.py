"""Records which pipelines and targets are paused, in ``pauses.json`` of the state directory."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from actors.runtime.files import make_private_folder, write_durably
from changes.model.printable import own_json_text
from daemon.state.edits import EditRefused
from settings.shell import quoted

VERSION = 1


class PausesUnreadable(Exception):
    """The file is damaged, or a later version's: one line."""


def paused_by_a_person(name: str) -> str:
    """Why nothing is begun of what is paused, with the command that leads out."""
    return f"{name}: a person has paused it: `binlogd resume {quoted(name)}`"


@dataclass(frozen=True, slots=True)
class Pause:
    """The pause of a pipeline or a target. ``reason``: what the person said about it, or empty."""

    since_ms: int
    reason: str = ""


class _Versioned(msgspec.Struct):
    version: int


class Pauses:
    """The pauses of one state directory. Any thread."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "pauses.json"
        self._lock = threading.Lock()
        self._paused: Mapping[str, Pause] = {}

    def load(self) -> None:
        """Read what is recorded. Raises PausesUnreadable, OSError."""
        if not self._path.exists():
            return
        try:
            document = json.loads(self._path.read_text(encoding="utf-8"))
            version = msgspec.convert(document, _Versioned).version
            if version != VERSION:
                raise PausesUnreadable(f"{self._path}: of version {version}, this reads {VERSION}")
            self._paused = msgspec.convert(document["paused"], dict[str, Pause])
        except (ValueError, KeyError, OverflowError, RecursionError) as error:
            raise PausesUnreadable(
                f"{self._path}: damaged ({error}); without the file nothing is paused"
            ) from error

    def now(self) -> Mapping[str, Pause]:
        """What is paused, by its name. A target's name has a dot, a pipeline's has none."""
        return self._paused

    @contextmanager
    def none_of(self, targets: Collection[str]) -> Iterator[None]:
        """None of these is paused, nor gets paused meanwhile. Raises EditRefused."""
        with self._lock:
            for name in targets:
                if name in self._paused:
                    raise EditRefused(paused_by_a_person(name))
            yield

    def put(self, name: str, pause: Pause | None, check: Callable[[], None] = lambda: None) -> None:
        """Record a pause, or (None) that there is none. Durable. Raises OSError, and what
        ``check`` raises: whatever is done under ``none_of`` is done before it or sees the pause."""
        with self._lock:
            check()
            found = {other: p for other, p in self._paused.items() if other != name}
            if pause is not None:
                found[name] = pause
            recorded = {each: asdict(p) for each, p in sorted(found.items())}
            document = {"version": VERSION, "paused": recorded}
            make_private_folder(self._path.parent)
            write_durably(self._path, own_json_text(document, indent=1))
            self._paused = found
