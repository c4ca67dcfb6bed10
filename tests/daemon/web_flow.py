"""A daemon over a log in memory, with its page on a Unix socket."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

from tests.daemon.flow import Flow


class Web(http.client.HTTPConnection):
    """Over the Unix socket that ``metrics.listen`` names."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        """See ``HTTPConnection``."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(str(self._path))


class WebFlow(Flow):
    """Its page can be read."""

    def write(self, text: str) -> None:
        """See ``Flow``."""
        super().write(f'{text}\n[metrics]\nlisten = "unix:{self.folder}/web"')

    def get(self, path: str) -> tuple[int, str]:
        """What the web port answers."""
        web = Web(self.folder / "web")
        web.request("GET", path)
        answer = web.getresponse()
        found = answer.status, answer.read().decode()
        web.close()
        return found
