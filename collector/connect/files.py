"""The worker's files: its settings, and secrets, which are its owner's alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from actors.runtime.files import close_folder, private_opener
from actors.runtime.programs import ProgramError
from collector.connect.clients import properties

PROVIDER = "file"
"""Connect's name of what looks secrets up."""


class WorkerFiles:
    """The folder ``connect`` below the state directory. Any thread."""

    def __init__(self, state_dir: Path) -> None:
        self.folder = state_dir.absolute() / "connect"
        self.secrets = self.folder / "secrets"
        self.settings = self.folder / "worker.properties"
        self.jaas = self.folder / "jaas.conf"
        self.log = self.folder / "connect.log"

    def open(self) -> None:
        """Make the folders. Raises OSError; ProgramError where a path can't be referred to."""
        if any(sign in str(self.folder) for sign in ":${}"):
            raise ProgramError(
                f"{self.folder}: Connect's references to files can't have : $ {{ or }} in a path; "
                "give daemon.state_dir another one"
            )
        close_folder(self.folder)
        close_folder(self.secrets)

    def keep_secrets(self, name: str, values: Mapping[str, str]) -> bool:
        """Write the secrets of a collector; whether they are others than before. Raises OSError."""
        path, text = self._secrets_of(name), properties(values)
        if path.exists() and path.read_text(encoding="ascii") == text:
            return False
        write_private(path, text)
        return True

    def forget_secrets(self, name: str) -> None:
        """Remove them: its connector can't log in any more. Raises OSError."""
        self._secrets_of(name).unlink(missing_ok=True)

    def reference(self, name: str, option: str) -> str:
        """What stands in a configuration in the place of a secret."""
        return f"${{{PROVIDER}:{self._secrets_of(name)}:{option}}}"

    def _secrets_of(self, name: str) -> Path:
        return self.secrets / f"{name}.properties"


def write_private(path: Path, text: str) -> None:
    """Replace a file's text at once; it is this user's alone. Raises OSError."""
    temporary = path.with_name(f"{path.name}.new")
    with open(temporary, "w", encoding="ascii", opener=private_opener) as file:
        file.write(text)
    os.replace(temporary, path)
