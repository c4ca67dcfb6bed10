"""A real PostgreSQL of one's own: started, killed, asked through psql."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from actors.runtime.programs import HOST, Program, ProgramError, free_port
from demo.servers.client import Answer, answer

MISSING = "PostgreSQL is missing: `apt-get install postgresql` (15 is what was tried)"
_START_WITHIN_S = 60.0
_USER = "postgres"


class Postgres:
    """One server with logical decoding, on the loopback interface. One thread's."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        """``settings`` come after its own. Nothing runs yet; raises ProgramError."""
        self._settings = dict(settings or {})
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        client = shutil.which("psql")
        if not found or client is None:
            raise ProgramError(MISSING)
        self._bin, self._client = found[-1].parent, client
        self._data = folder / "data"
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self._as: list[str] = []
        if os.geteuid() == 0:  # it refuses to run as root
            self._as = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups"]
            shutil.chown(folder, _USER, _USER)
        self._folder = folder
        self.program = Program("PostgreSQL", folder.parent / "postgres.log")

    def start(self) -> None:
        """Start it, with the data there are; raises ProgramError."""
        if not self._data.exists():
            done = subprocess.run(
                [*self._as, self._bin / "initdb", "-A", "trust", "-U", _USER, "-E", "UTF8",
                 "--locale=C", "-N", "-D", self._data],
                capture_output=True, text=True, check=False, cwd=self._folder,
            )  # fmt: skip
            if done.returncode:
                raise ProgramError(f"initdb: {done.stderr}")
        settings = {
            "listen_addresses": HOST, "port": self.port, "wal_level": "logical",
            "unix_socket_directories": self._folder, "max_replication_slots": 40,
            "max_wal_senders": 40, "timezone": "UTC",
            **self._settings,
        }  # fmt: skip
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self.program.launch([*self._as, self._bin / "postgres", "-D", self._data, *options])
        self.program.await_ready(lambda: not self.ask("SELECT 1").error, _START_WITHIN_S)

    def ask(self, script: str, database: str = "postgres") -> Answer:
        """Run a script in a session of its own; the first error ends it, and rolls back."""
        command = [
            self._client, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-P", "null=NULL",
            "-F", "\t", "-h", HOST, "-p", str(self.port), "-U", _USER, "-d", database,
        ]  # fmt: skip
        return answer(command, script, {"PGCLIENTENCODING": "UTF8"})

    def run(self, database: str, statements: Sequence[str]) -> str:
        """Run statements of one session; gives the error that the server answered, or nothing.

        Raises ProgramError where the server is gone.
        """
        script = "".join(f"{one};\n" for one in statements)
        return self.ask(script, database).problem(self.program)
