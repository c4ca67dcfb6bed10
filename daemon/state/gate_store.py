"""The files of gates in the state directory: ``gates/NAME.json`` is what a gate has closed.

That record is the outbox, too: what was not taken by each way is in it. Beside it ``NAME.look`` is
what the last look found, for people, and ``NAME.reopen`` a folder of requests. ``binlogd gate run``
holds the folder's lock; the daemon and other commands only read, or add a request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from actors.runtime.files import close_folder, make_private_folder, sync, write_durably
from changes.model.printable import own_json_text
from daemon.state.layout import check_layout
from daemon.state.offset_file import locked, own
from offsets.gate_record import GateRecord
from settings.shell import quoted

FOLDER = "gates"

VERSION = 1
"""Of both files. An unknown one is reported, never guessed at."""

T = TypeVar("T")


class DamagedGate(Exception):
    """A gate's file is none of ours, or of a later version: one line."""


@dataclass(frozen=True, slots=True)
class WayFailure:
    """Why a way takes nothing, and since when."""

    reason: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class LookFound:
    """What a look at a gate found. ``shut``: by table why the partition that begins then is not
    complete. ``failing``: by way. ``looking_ms``: another look began then, and goes on."""

    at_ms: int
    begin_ms: int | None = None
    shut: Mapping[str, str] = field(default_factory=dict)
    failing: Mapping[str, WayFailure] = field(default_factory=dict)
    looking_ms: int | None = None


class GateStore:
    """The files of one state directory. Any thread; of one gate one at a time writes."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir, self.folder = state_dir, state_dir / FOLDER

    def lock(self) -> IO[str]:
        """The folder's lock, until it is closed. Raises StateDirBusy, OSError (NewerLayout)."""
        check_layout(self._state_dir)
        make_private_folder(self._state_dir)
        close_folder(self.folder)
        file = locked(
            self.folder / "lock",
            lambda owner: (
                f"{self.folder} is used by another `binlogd gate run` (process {owner}): stop it, "
                "or choose another daemon.state_dir"
            ),
        )
        own(file)
        return file

    def names(self) -> list[str]:
        """The gates that have a record."""
        return sorted(path.stem for path in self.folder.glob("*.json"))

    def record(self, gate: str) -> GateRecord | None:
        """What a gate has closed; None: it has no file. Raises DamagedGate, OSError."""
        return _read(self._path(gate), GateRecord, f"binlogd gate forget {quoted(gate)}")

    def save(self, record: GateRecord) -> None:
        """Make a record durable. Raises OSError, and then the old one is whole."""
        _write(self._path(record.gate), record)

    def look(self, gate: str) -> LookFound | None:
        """What the last look found; None: there was none. Raises DamagedGate, OSError."""
        return _read(
            self._path(gate, ".look"), LookFound, f"rm {quoted(self._path(gate, '.look'))}"
        )

    def note(self, gate: str, found: LookFound) -> None:
        """Show what a look found. Raises OSError."""
        _write(self._path(gate, ".look"), found)

    def request(self, gate: str, begin_ms: int) -> None:
        """Have a partition reopened with the next look. Raises OSError."""
        folder = self._path(gate, ".reopen")
        make_private_folder(folder)
        write_durably(folder / str(begin_ms), "")

    def requests(self, gate: str) -> list[int]:
        """The partitions that are to be reopened, by where they begin. Raises OSError."""
        folder = self._path(gate, ".reopen")
        names = (path.name for path in folder.iterdir()) if folder.exists() else ()
        return sorted(int(name) for name in names if name.isdecimal())

    def done(self, gate: str, begin_ms: int) -> None:
        """A request was carried out. Raises OSError."""
        (self._path(gate, ".reopen") / str(begin_ms)).unlink(missing_ok=True)

    def forget(self, gate: str) -> None:
        """Remove all that is kept of a gate. Under the lock. Raises OSError."""
        folder = self._path(gate, ".reopen")
        if folder.exists():
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
        self._path(gate, ".look").unlink(missing_ok=True)
        self._path(gate).unlink(missing_ok=True)
        sync(self.folder)

    def has(self, gate: str) -> bool:
        """Whether it has a record, readable or not."""
        return self._path(gate).exists()

    def stamp(self, gate: str) -> tuple[object, ...]:
        """Differs where one of both files does."""
        return tuple(_stamp(self._path(gate, suffix)) for suffix in (".json", ".look"))

    def _path(self, gate: str, suffix: str = ".json") -> Path:
        return self.folder / f"{gate}{suffix}"


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_ino


def _write(path: Path, value: object) -> None:
    make_private_folder(path.parent)
    document = {"version": VERSION, "gate": msgspec.to_builtins(value)}
    write_durably(path, own_json_text(document, indent=1) + "\n")


def _read(path: Path, kind: Callable[..., T], way_out: str) -> T | None:
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        if (version := document["version"]) != VERSION:
            raise DamagedGate(f"{path}: of version {version!r}, this binlogd reads {VERSION}")
        return msgspec.convert(document["gate"], kind)  # type: ignore[no-any-return]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise DamagedGate(
            f"{path}: damaged ({type(error).__name__}: {error}): put back a copy, or begin anew by "
            f"`{way_out}`"
        ) from error
