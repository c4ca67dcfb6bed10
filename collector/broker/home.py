"""The broker's folder in the state directory: its port and its secret, and what clients make of it.

The daemon alone makes them (``make``), under the state directory's lock. Everybody else reads.
"""

from __future__ import annotations

import secrets
import threading
import time
from pathlib import Path

from actors.runtime.files import close_folder, make_private_folder, write_durably
from actors.runtime.programs import HOST, free_port, is_free
from collector.broker.properties import MECHANISM, USER
from settings.shell import quoted

ClientSettings = dict[str, str | int | float | bool]

_FREE_WITHIN_S = 10.0
"""A broker whose daemon was killed gives its port back within a second or two."""


class BrokerUnusable(Exception):
    """The broker's files can't be used: one line, with what leads out."""


class BrokerHome:
    """The folder ``broker`` in a state directory. ``port`` is the configuration's; 0: any."""

    def __init__(self, state_dir: Path, port: int) -> None:
        """Reads and makes nothing yet."""
        self.folder = state_dir / "broker"
        self.logs = self.folder / "logs"
        self._port = port
        self._secret = self.folder / "secret"
        self._chosen = self.folder / "port"

    def make(self) -> None:
        """Make what is missing, and choose another port where anybody else has the chosen one.

        Raises BrokerUnusable. May wait for 10 s for a port.
        """
        try:
            make_private_folder(self.folder.parent)
            close_folder(self.folder)
            if not self._secret.exists():
                self._make_secret()
            self.secret()
            if self._port == 0 and not self._is_free_soon():
                write_durably(self._chosen, f"{free_port()}\n")
        except OSError as error:
            raise BrokerUnusable(f"[broker] {self.folder} can't be used: {error}") from error

    def _make_secret(self) -> None:
        if self.logs.exists():
            raise BrokerUnusable(
                f"[broker] {self._secret} is missing, and without it nobody reads what is in "
                f"{self.logs}: bring the file back from a backup, or remove that folder (what the "
                "log holds is lost, and tables that lack it are to be loaded again)"
            )
        write_durably(self._secret, f"{secrets.token_hex(32)}\n")

    def _is_free_soon(self) -> bool:
        """Whether a port was chosen, and is nobody's by now."""
        deadline, pause = time.monotonic() + _FREE_WITHIN_S, threading.Event()
        while (port := self.port()) and not is_free(port):
            if time.monotonic() > deadline:
                return False
            pause.wait(0.2)
        return port != 0

    def port(self) -> int:
        """The broker's port; 0 where none is chosen yet. Raises BrokerUnusable."""
        if self._port:
            return self._port
        try:
            text = self._chosen.read_text(encoding="ascii").strip()
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except (OSError, UnicodeDecodeError) as error:
            raise BrokerUnusable(f"[broker] {self._chosen} can't be read: {error}") from error
        if not text.isdecimal() or not 0 < int(text) < 1 << 16:
            raise BrokerUnusable(
                f"[broker] {self._chosen} holds no port: remove it, and another is chosen"
            )
        return int(text)

    def secret(self) -> str | None:
        """The clients' secret; None where there is none yet. Raises BrokerUnusable."""
        try:
            mode = self._secret.stat().st_mode
            text = self._secret.read_text(encoding="ascii").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise BrokerUnusable(f"[broker] {self._secret} can't be read: {error}") from error
        if mode & 0o077:
            raise BrokerUnusable(
                f"[broker] {self._secret} is open to others, who could read and write the log: "
                f"`chmod 600 {quoted(self._secret)}`"
            )
        if len(text) < 32 or not text.isalnum():
            raise BrokerUnusable(
                f"[broker] {self._secret} holds no secret of ours: bring it back from a backup"
            )
        return text

    def client_settings(self) -> ClientSettings:
        """What a Kafka client needs to reach the broker. Where it has never been started there is
        no port and no secret, and nobody answers. Raises BrokerUnusable."""
        return {
            "bootstrap.servers": f"{HOST}:{self.port() or 1}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": MECHANISM,
            "sasl.username": USER,
            "sasl.password": self.secret() or "none-yet",
        }
