"""A real MySQL of one's own, from Debian's packages beside the machine's: ``setup/mysql.sh``."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from actors.runtime.java import CHECKOUT
from actors.runtime.programs import HOST, Program, ProgramError, ProgramMissing, free_port
from demo.servers.client import Answer, answer

ROOT = CHECKOUT / "var" / "mysql"
_START_WITHIN_S = 90.0


class MySql:
    """One server with a binary log of rows and GTIDs, on the loopback interface. One thread's."""

    def __init__(self, folder: Path) -> None:
        """Nothing runs yet; raises ProgramMissing."""
        libraries = ROOT / "usr" / "lib" / "x86_64-linux-gnu"
        loader = libraries / "ld-linux-x86-64.so.2"
        if not loader.exists():
            raise ProgramMissing("mysql", "run setup/mysql.sh")
        # Its libraries are newer than the machine's: both come from the same distribution.
        path = f"{libraries}:{ROOT}/usr/lib/mysql/private"
        self._program = [str(loader), "--library-path", path]
        self._folder, self._data, self._socket = folder, folder / "data", folder / "s"
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self.program = Program("MySQL", folder / "mysql.log")

    def start(self) -> None:
        """Start it, with the data there are; raises ProgramError."""
        server = [
            *self._program, f"{ROOT}/usr/sbin/mysqld", "--no-defaults", "--user=root",
            f"--basedir={ROOT}/usr", f"--lc-messages-dir={ROOT}/usr/share/mysql",
            f"--plugin-dir={ROOT}/usr/lib/mysql/plugin", f"--datadir={self._data}",
        ]  # fmt: skip
        if not self._data.exists():
            done = subprocess.run(
                [*server, "--initialize-insecure"],
                capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            if done.returncode:
                raise ProgramError(f"mysqld --initialize: {done.stderr or done.stdout}")
        self.program.launch([
            *server, "--secure-file-priv=", f"--bind-address={HOST}", f"--port={self.port}",
            f"--socket={self._socket}", "--mysqlx=OFF", "--server-id=1", "--log-bin=binlog",
            "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--binlog-row-metadata=FULL",
            "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=2",
            "--performance-schema=OFF",
        ])  # fmt: skip
        self.program.await_ready(lambda: not self.ask("SELECT 1").error, _START_WITHIN_S)

    def ask(self, script: str) -> Answer:
        """Run a script in a session of its own; the first error ends it, and rolls back."""
        command = [
            *self._program, f"{ROOT}/usr/bin/mysql", "--no-defaults", "--user=root",
            f"--socket={self._socket}", "--batch", "--skip-column-names",
            "--default-character-set=utf8mb4",
        ]  # fmt: skip
        return answer(command, script)

    def run(self, statements: Sequence[str]) -> str:
        """Run statements of one session; gives the error that the server answered, or nothing.

        Raises ProgramError where the server is gone.
        """
        script = "".join(f"{one};\n" for one in ("SET time_zone = '+00:00'", *statements))
        return self.ask(script).problem(self.program)
