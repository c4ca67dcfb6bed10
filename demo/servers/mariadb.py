"""A real MariaDB of one's own: started, killed, asked through its own client."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from actors.runtime.programs import HOST, Program, ProgramError, free_port
from demo.servers.client import Answer, answer

MISSING = "MariaDB is missing: `apt-get install mariadb-server` (10.11 is what was tried)"
_START_WITHIN_S = 60.0


class MariaDb:
    """One server with a binary log of rows, on the loopback interface. One thread's."""

    name = "mariadb"

    def __init__(
        self,
        folder: Path,
        row_image: str = "FULL",
        number: int = 2,
        options: Sequence[str] = (),
    ) -> None:
        """``row_image``: FULL, NOBLOB or MINIMAL; ``number``: its ``server_id``. ``options`` come
        after its own. Nothing runs yet; raises ProgramError."""
        self._server = shutil.which("mariadbd", path="/usr/sbin:/usr/bin:/usr/local/bin")
        self._client, self._install = shutil.which("mariadb"), shutil.which("mariadb-install-db")
        if not (self._server and self._client and self._install):
            raise ProgramError(MISSING)
        self._folder = folder
        self._data, self._socket = folder / "data", folder / "s"
        self._image, self._number, self._options = row_image, number, options
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self.program = Program("MariaDB", folder / "mariadb.log")

    def start(self) -> None:
        """Start it, with the data there are; raises ProgramError."""
        assert self._install
        assert self._server
        if not self._data.exists():
            done = subprocess.run(
                [self._install, "--no-defaults", "--user=root", f"--datadir={self._data}",
                 "--auth-root-authentication-method=normal", "--skip-test-db"],
                capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                # Servers that start at the same time would remove one another's temporary tables.
                env=os.environ | {"TMPDIR": str(self._folder)},
            )  # fmt: skip
            if done.returncode:
                raise ProgramError(f"mariadb-install-db: {done.stderr or done.stdout}")
        self.program.launch([
            self._server, "--no-defaults", "--user=root", f"--datadir={self._data}",
            f"--bind-address={HOST}", f"--port={self.port}", f"--socket={self._socket}",
            f"--tmpdir={self._folder}", f"--server-id={self._number}",
            f"--log-bin={self._folder}/bin", "--binlog-format=ROW",
            # Of another row metadata Canal 1.1.7 reads signs where MariaDB has none, and stops.
            f"--binlog-row-image={self._image}", "--binlog-row-metadata=NO_LOG",
            "--binlog-annotate-row-events=OFF",
            "--character-set-server=utf8mb4", "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M",
            "--skip-name-resolve=0", "--lower-case-table-names=0",
            *self._options,
        ])  # fmt: skip
        self.program.await_ready(lambda: not self.ask("SELECT 1").error, _START_WITHIN_S)

    def ask(self, script: str) -> Answer:
        """Run a script in a session of its own; the first error ends it, and rolls back."""
        assert self._client
        command = [
            self._client, "--no-defaults", "--user=root", f"--socket={self._socket}", "--batch",
            "--skip-column-names", "--default-character-set=utf8mb4",
        ]  # fmt: skip
        return answer(command, script)

    def run(self, statements: Sequence[str]) -> str:
        """Run statements of one session; gives the error that the server answered, or nothing.

        Raises ProgramError where the server is gone.
        """
        script = "".join(f"{one};\n" for one in ("SET time_zone = '+00:00'", *statements))
        return self.ask(script).problem(self.program)
