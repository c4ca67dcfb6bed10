"""The folder of one replication: its configuration, and the note of what it replicates.

The note is there before the configuration is, so that a crash between the two leaves nothing that
looks like somebody else's. Nothing of another's is ever written over.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors.runtime.files import make_private_folder, write_durably
from daemon.cli.replicate.text import FOLDER


class NotOurs(Exception):
    """The folder is of something else: one line."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a folder replicates. ``tables``: those of the plan, with their estimated rows."""

    source: str
    into: str
    asked: tuple[str, ...]
    tables: dict[str, int]

    def unlike(self, other: Note) -> str | None:
        """What ``other`` wants otherwise, in one line."""
        for what, mine, theirs in (
            ("source", self.source, other.source),
            ("into", self.into, other.into),
            ("tables", " ".join(self.asked), " ".join(other.asked)),
        ):
            if mine != theirs:
                return f"{what} is {mine or 'all'} here, and {theirs or 'all'} was requested"
        return None


class Folder:
    """``config.toml`` and what stands beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.own = self.path / FOLDER
        self.config = self.path / "config.toml"
        self._note = self.own / "replicate.json"

    def note(self) -> Note | None:
        """What it replicates; None where nothing yet. Raises NotOurs, OSError."""
        if not self._note.exists():
            if self.config.exists():
                raise NotOurs(f"{self.config} exists already, and not from this command: --dir")
            if self.own.exists() and any(self.own.iterdir()):
                raise NotOurs(f"{self.own} exists already, and not from this command: --dir")
            return None
        try:
            found: Any = json.loads(self._note.read_text(encoding="utf-8"))
            tables = {str(name): int(rows) for name, rows in found["tables"].items()}
            asked = tuple(map(str, found["asked"]))
            return Note(str(found["source"]), str(found["into"]), asked, tables)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotOurs(f"{self._note} can't be read: {error}; --dir names another") from error

    def begin(self, note: Note) -> None:
        """Write down what it replicates. Raises OSError."""
        make_private_folder(self.own)
        made = {"source": note.source, "into": note.into, "asked": list(note.asked),
                "tables": note.tables}  # fmt: skip
        write_durably(self._note, json.dumps(made, indent=1, ensure_ascii=False))

    def keep_secret(self, name: str, secret: str) -> str:
        """Keep a password for its owner alone; the reference to it, which counts from the
        configuration's folder. Raises OSError."""
        make_private_folder(self.own / "secrets")
        write_durably(self.own / "secrets" / name, secret)
        return f"${{file:{FOLDER}/secrets/{name}}}"

    def configure(self, configuration: str) -> None:
        """Write the configuration. Raises OSError, FileExistsError where one has come meanwhile."""
        draft = self.own / f"config.{os.getpid()}"
        write_durably(draft, configuration)
        try:
            os.link(draft, self.config)  # unlike a rename it replaces nothing
        finally:
            draft.unlink()
