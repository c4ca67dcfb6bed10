"""The local offset file: a durable snapshot, with the one before kept beside it.

Temp file, fsync, rename, fsync of the folder: a crash at any point leaves the old file or the new
one, whole, never an empty one. (An earlier design rewrote the file in place: one crash lost every
position.)
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import IO

from actors.runtime.files import close_folder, private_opener, write_durably
from daemon.state.layout import claim_layout
from offsets.snapshot import Snapshot
from offsets.snapshot_text import DamagedSnapshot, NewerSnapshot, decode, encode
from offsets.store import Loaded, StoreError, merged
from settings.shell import quoted


class NewerFile(OSError):
    """A newer binlogd wrote it. An older one must not treat its records (a reset to carry out, a
    rebuild) as damage and overwrite them."""


class OffsetFile:
    """The file of one pipeline: ``<state>/<pipeline>.offsets.json``. Used by one thread."""

    def __init__(self, state_dir: Path, pipeline: str) -> None:
        self.path = state_dir / f"{pipeline}.offsets.json"
        self.previous = state_dir / f"{pipeline}.offsets.previous.json"
        self._whole: bool | None = None  # whether the newest is, as far as it was checked

    def load(self) -> Loaded:
        """Read the newest whole snapshot. What is damaged is reported, never overwritten here.

        Raises OSError, NewerFile among them.
        """
        damage: list[str] = []
        self._whole = False
        for path in (self.path, self.previous):
            try:
                found = decode(path.read_text(encoding="utf-8"))
                self._whole = path == self.path
                return Loaded(found, tuple(damage))
            except FileNotFoundError:
                if path == self.path and self.previous.exists():
                    damage.append(f"{path}: missing, though an older one is there")
            except NewerSnapshot as error:
                raise NewerFile(f"{error}: start the one that wrote it") from error
            except (DamagedSnapshot, UnicodeDecodeError) as error:
                damage.append(f"{path}: {error}")
        return Loaded(None, tuple(damage))

    def save(self, snapshot: Snapshot) -> None:
        """Make the snapshot durable. Raises OSError, and then the old file is whole."""
        write_durably(self.path, encode(snapshot), self._keep_previous)
        self._whole = True

    def _keep_previous(self) -> None:
        if self._is_worth_keeping():
            # A link, not a rename: the file's name always exists.
            self.previous.unlink(missing_ok=True)
            os.link(self.path, self.previous)

    def _is_worth_keeping(self) -> bool:
        """Whether to keep the file as the previous one. Not if it is damaged and there is a
        previous one: a crash right after that would leave no whole file."""
        if not self.path.exists() or not self.previous.exists():
            return self.path.exists()
        if self._whole is None:
            self.load()
        return self._whole is True


class StateDirBusy(Exception):
    """Another process uses the state directory."""


def lock_state_dir(state_dir: Path) -> IO[str]:
    """Lock a state directory for this process. The lock ends with the process, however it ends.

    Raises StateDirBusy with the owner's process id, OSError when the folder can't be written,
    NewerLayout among them: a newer binlogd has used it.
    """
    close_folder(state_dir)
    file = locked(
        state_dir / "lock",
        lambda owner: (
            f"{state_dir} is used by another binlogd (process {owner}): `binlogd status --state-dir"
            f" {quoted(state_dir)}` shows what it does; stop it, or choose another daemon.state_dir"
        ),
    )
    try:
        claim_layout(state_dir)
        own(file)
    except BaseException:
        file.close()
        raise
    return file


def locked(path: Path, said: Callable[[str], str]) -> IO[str]:
    """A file's lock for this process, which ends with it. ``said``: what is said where a process of
    that id has it. Raises StateDirBusy, OSError."""
    file = open(path, "a+", encoding="utf-8", opener=private_opener)  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        owner = file.read().strip() or "unknown"
        file.close()
        raise StateDirBusy(said(owner)) from None
    return file


def own(file: IO[str]) -> None:
    """Write this process's id into a file that it has locked. Raises OSError."""
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()


# The local offset file as a store: the most reliable one, and the fastest.


class FileStore:
    """One pipeline's file. The caller holds the state directory's lock.

    A batch is stored whole or not at all. Other members' writes are not visible: each has a file of
    its own.
    """

    name = "file"

    def __init__(self, state_dir: Path, pipeline: str) -> None:
        self._file = OffsetFile(state_dir, pipeline)
        self._lock = threading.Lock()
        self._held: Snapshot | None = None
        self._open = False

    def start(self) -> None:
        """Read the file; later batches are merged into it. Raises StoreError."""
        with self._lock:
            self._held = self._load().snapshot
            self._open = True

    def get(self) -> Loaded:
        """The newest whole snapshot on the disk, with what is damaged. Raises StoreError."""
        with self._lock:
            if not self._open:
                raise StoreError(f"{self.name}: is not open")
            return self._load()

    def set(self, batch: Snapshot) -> Future[None]:
        """Written on the calling thread; durable when it returns."""
        done: Future[None] = Future()
        with self._lock:
            if not self._open:
                done.set_exception(StoreError(f"{self.name}: is not open"))
                return done
            whole = merged(self._held, batch)
            try:
                self._file.save(whole)
            except OSError as error:
                said = error.strerror or error
                done.set_exception(StoreError(f"{self.name}: {self._file.path}: {said}"))
            else:
                self._held = whole
                done.set_result(None)
        return done

    def stop(self) -> None:
        """Accept no more sets. Every accepted one is on the disk already."""
        with self._lock:
            self._open = False

    def _load(self) -> Loaded:
        try:
            return self._file.load()
        except OSError as error:
            raise StoreError(f"{self.name}: {self._file.path} can't be read: {error}") from error
