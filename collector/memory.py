"""What a collector remembers between two runs: a small file below the state directory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from actors.runtime.files import close_folder, write_durably


class Remembered(msgspec.Struct, frozen=True, omit_defaults=True):
    """``put``: a fingerprint of the configuration that Connect was given last. ``identity``: the
    server that the position is of. ``by_file``: not empty where a MySQL's was read by file, without
    GTIDs. ``lost``: why the position is gone, until somebody decides.
    ``loads``: patterns of tables, a line each, until their loads are recorded: of all (``due``)
    from a new position on, of one that joins late from before that on. ``begun``:
    not empty once there was a position. ``removed``: not empty where people have removed it, and
    its section is still there. ``unread``: why changes were passed over, until there is a new
    position. ``xa_rollbacks``: the server's count; ``doubt``: why tables may have rows that the
    source does not have, until somebody has seen to it."""

    put: str = ""
    identity: str = ""
    by_file: str = ""
    lost: str = ""
    loads: str = ""
    begun: str = ""
    removed: str = ""
    unread: str = ""
    xa_rollbacks: str = ""
    doubt: str = ""


_FOLDER = "collectors"


def left_behind(state_dir: Path, names: Collection[str]) -> list[str]:
    """Collectors that ran here, were not removed, and are none of ``names``. Raises OSError."""
    found = []
    for path in sorted((state_dir / _FOLDER).glob("*.json")):
        memory = CollectorMemory(state_dir, path.stem)
        memory.load()
        if path.stem in names:
            continue
        if memory.now.removed:
            memory.forget()
        else:
            found.append(path.stem)
    return found


class CollectorMemory:
    """The file of one collector. One thread's."""

    def __init__(self, state_dir: Path, name: str) -> None:
        self.collector = name
        self._path = state_dir / _FOLDER / f"{name}.json"
        self.now = Remembered()

    def load(self) -> None:
        """Read it; a damaged one says nothing. Raises OSError."""
        close_folder(self._path.parent)
        try:
            self.now = msgspec.json.decode(self._path.read_bytes(), type=Remembered)
        except FileNotFoundError:
            return
        except msgspec.DecodeError:
            self.now = Remembered()

    def note(self, **changed: str) -> None:
        """Change it, durably; nothing where it says so already. Raises OSError."""
        fresh = msgspec.structs.replace(self.now, **changed)
        if fresh != self.now:
            write_durably(self._path, msgspec.json.encode(fresh).decode())
            self.now = fresh

    def add_loads(self, tables: Iterable[str]) -> None:
        """These are to be loaded, too. Raises OSError."""
        if self.now.loads != "due":
            self.set_loads([*self.now.loads.split("\n"), *tables])

    def set_loads(self, tables: Iterable[str]) -> None:
        """These are to be loaded, and no others. Raises OSError."""
        self.note(loads="\n".join(line for line in dict.fromkeys(tables) if line))

    def loads(self, every: Sequence[str]) -> list[str]:
        """Patterns of what is to be loaded; ``every``: of all tables."""
        return list(every) if self.now.loads == "due" else self.now.loads.split("\n")

    def forget(self) -> None:
        """Remove it. Raises OSError."""
        self._path.unlink(missing_ok=True)
        self.now = Remembered()
