"""Replays the system calls of a run: what a power cut at any moment would have left.

Read from ``strace -f -y``. A file's content is durable from its fsync on, its name from the fsync
of its folder on; a catalog's pointer may be durable as soon as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

CALLS = (
    "openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir,"
    "write,writev,pwrite64,pwritev,sendfile,copy_file_range,ftruncate,fsync,fdatasync"
)

_LINE = re.compile(r"^(\d+)\s+(?:<\.\.\. )?(\w+)(?:\((.*)| resumed>(.*))$")
_FILE = re.compile(r"\d+<(/[^>]*)>")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass
class Disk:
    """What of a folder is durable, in the order of the calls; ``catalog`` is the pointers' file."""

    warehouse: str
    catalog: str
    offsets: str
    """The file of positions: written when all that it stands for is durable, the catalog too."""
    kind: str = ""
    """What the names of files that count end with; the others may be lost."""
    unsynced: set[str] = field(default_factory=set)
    """Paths whose content may be lost."""
    unnamed: set[str] = field(default_factory=set)
    """Paths whose name may be."""
    files: set[str] = field(default_factory=set)
    undone: set[str] = field(default_factory=set)
    """Of the catalog: content that may be lost, and a journal that may be there again and undo."""
    saved: int = 0
    pointers: int = 0
    early: list[tuple[str, ...]] = field(default_factory=list)
    """What could have been lost, at each pointer's write at which something could."""

    def replay(self, lines: Iterable[str]) -> None:
        """Take the lines of a trace."""
        begun: dict[str, str] = {}
        for line in lines:
            found = _LINE.match(line)
            if found is None:
                continue
            thread, call, arguments, rest = found.groups()
            if arguments is None:
                self._call(call, begun.pop(thread, "") + rest, ended=True)
            elif arguments.endswith("<unfinished ...>"):
                begun[thread] = arguments.removesuffix("<unfinished ...>")
                self._call(call, begun[thread], ended=False)
            else:
                self._call(call, arguments, ended=True)

    def _call(self, call: str, text: str, *, ended: bool) -> None:
        """A write counts from its begin, whatever makes durable from its end."""
        if ended and re.search(r"\)\s+= -1 ", text):
            return
        if call in ("fsync", "fdatasync"):
            if ended:
                self._synced(_paths(_FILE, text)[0])
        elif call.startswith(("write", "pwrite", "sendfile", "copy_file", "ftrunc")):
            paths = _paths(_FILE, text)
            if call == "sendfile" and _FILE.match(text) is None:
                return  # a file that is read, into a socket
            if paths:
                self._wrote(paths[-1] if call == "copy_file_range" else paths[0])
        elif ended:
            self._named(call, text)

    def _named(self, call: str, text: str) -> None:
        paths = [path for path in _paths(_TEXT, text) if path.startswith("/")]
        if not paths:
            return
        if call in ("unlink", "unlinkat", "rmdir"):
            self._gone(paths[0])
            if paths[0] == f"{self.catalog}-journal":
                self.undone.add(paths[0])
        elif call.startswith(("rename", "link")):
            if paths[0] in self.unsynced:
                self.unsynced.add(paths[-1])
            if call.startswith("rename"):
                self._gone(paths[0])
            self._made(paths[-1])
        elif call.startswith("mkdir") or "O_CREAT" in text:
            self._made(paths[0])

    def _made(self, path: str) -> None:
        if self._counts(path) and path not in self.files:
            self.files.add(path)
            self.unnamed.add(path)

    def _gone(self, path: str) -> None:
        for paths in (self.unsynced, self.unnamed, self.files):
            paths.discard(path)

    def _wrote(self, path: str) -> None:
        if path == self.offsets:
            self.saved += 1
            if self.undone:
                self.early.append(tuple(sorted(self.undone)))
        if path == self.catalog:
            self.pointers += 1
            self.undone.add(path)
            if lost := (*sorted(self.unsynced), *sorted(f"name of {x}" for x in self.unnamed)):
                self.early.append(lost)
        elif self._counts(path):
            self.unsynced.add(path)

    def _synced(self, path: str) -> None:
        self.unsynced.discard(path)
        self.undone.discard(path)
        if path == str(PurePosixPath(self.catalog).parent):
            self.undone.discard(f"{self.catalog}-journal")
        for named in [each for each in self.unnamed if str(PurePosixPath(each).parent) == path]:
            self.unnamed.discard(named)

    def _counts(self, path: str) -> bool:
        """Not the catalog, which is its own to make durable, nor its journal."""
        inside = path.startswith(f"{self.warehouse}/") and path.endswith(self.kind)
        return inside and not path.startswith(self.catalog)


def _paths(kind: re.Pattern[str], text: str) -> list[str]:
    return kind.findall(text)
