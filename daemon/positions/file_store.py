"""The local offset file as a store: the most reliable one, and the fastest."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path

from daemon.positions.offset_file import OffsetFile
from offsets.snapshot import Snapshot
from offsets.store import Loaded, StoreError, merged


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
                done.set_exception(StoreError(f"{self.name}: {self._file.path}: {error}"))
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
