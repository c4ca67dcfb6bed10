"""Parts of a table's files, read by one request each, and kept for a while: files never change."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from io import RawIOBase
from os import SEEK_CUR, SEEK_END, SEEK_SET
from pathlib import Path

from sparkwriter.session.java_api import Java

SOURCE = Path(__file__).with_name("Ranges.java")
CLASS = "binlogd.Ranges"

WHOLE_BYTES = 1 << 18
"""A file of at most so many bytes is read whole: less than a second request takes."""

KEPT_BYTES = 32 << 20
"""So many bytes of footers, key columns and vectors does a writer keep, beside the memory budget.
A batch mostly replaces rows of few files, the same ones as the batch before: without it each write
reads their keys again."""


class Ranges:
    """Parts of files, for one writer; called on its thread. Raises JavaFailure."""

    def __init__(self, jvm: Java) -> None:
        self._jvm = jvm
        self._kept: OrderedDict[tuple[str, int, int], bytes] = OrderedDict()
        self._bytes = 0

    def read(self, io: Java, location: str, size: int, start: int, length: int) -> bytes:
        """So many bytes of a file of ``size`` bytes. ``io`` is the table's FileIO."""
        if size <= WHOLE_BYTES:
            return self._range(io, location, size, 0, size)[start : start + length]
        return self._range(io, location, size, start, length)

    def put(self, location: str, local: Path) -> None:
        """Know a file that was put there by its local copy: the next write likely reads it."""
        if (size := local.stat().st_size) <= WHOLE_BYTES:
            self._keep((location, 0, size), local.read_bytes())

    def _range(self, io: Java, location: str, size: int, start: int, length: int) -> bytes:
        key = (location, start, length)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        found = bytes(self._read(io.newInputFile(location, size), start, length))
        if length <= KEPT_BYTES // 4:  # one large column does not drive out all others
            self._keep(key, found)
        return found

    def _keep(self, key: tuple[str, int, int], found: bytes) -> None:
        self._kept[key] = found  # each key comes once: it is looked up first
        self._bytes += len(found)
        while self._bytes > KEPT_BYTES:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= len(gone)

    @cached_property
    def _read(self) -> Java:
        """Java's ``Ranges.read``, compiled in the JVM itself by what Spark ships."""
        compiler = self._jvm.org.codehaus.janino.SimpleCompiler()
        # Iceberg is on the class path of Spark's loader, not on that of the JVM.
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        compiler.setParentClassLoader(loader)
        compiler.cook(SOURCE.read_text(encoding="utf-8"))
        made = compiler.getClassLoader().loadClass(CLASS)
        return made.newInstance().read


class RangeFile(RawIOBase):
    """A file of the table's storage as Arrow reads one."""

    def __init__(self, ranges: Ranges, io: Java, location: str, size: int) -> None:
        self._ranges, self._io, self._location, self._size = ranges, io, location, size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        start = {SEEK_SET: 0, SEEK_CUR: self._at, SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """All of it, or less at the end: no caller asks twice."""
        wanted = self._size - self._at if size is None or size < 0 else size
        wanted = max(0, min(wanted, self._size - self._at))
        if not wanted:
            return b""
        found = self._ranges.read(self._io, self._location, self._size, self._at, wanted)
        self._at += len(found)
        return found
