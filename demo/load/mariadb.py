"""A MariaDB of the demo's own, on the loopback interface."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql

from actors.runtime.programs import HOST, Program, ProgramMissing, free_port

USER, PASSWORD = "binlogd", "only-for-the-load-s-demonstration"
_START_WITHIN_S = 60.0
_PLACES = "/usr/sbin:/usr/bin:/usr/local/bin"


class MariaDb:
    """A running server."""

    def __init__(self, port: int, socket: Path) -> None:
        self.port = port
        self._socket = str(socket)

    def connect(self) -> Any:
        """A connection of its owner."""
        return pymysql.connect(unix_socket=self._socket, user="root", charset="utf8mb4")

    def answers(self) -> bool:
        """Whether it can be asked."""
        try:
            self.connect().close()
        except pymysql.OperationalError:
            return False
        return True

    def run(self, *statements: str) -> None:
        """Run statements in one session."""
        connection = self.connect()
        with connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            connection.commit()


@contextmanager
def mariadb(folder: Path) -> Iterator[MariaDb]:
    """A server with a binary log of rows and a user for jobs. Raises ProgramError."""
    server = shutil.which("mariadbd", path=_PLACES)
    install = shutil.which("mariadb-install-db", path=_PLACES)
    if server is None or install is None:
        raise ProgramMissing("mariadb", "`apt-get install mariadb-server` (10.11 was tried)")
    folder.mkdir(parents=True)
    data, socket, port = folder / "data", folder / "s", free_port()
    subprocess.run(
        [install, "--no-defaults", "--user=root", f"--datadir={data}", "--skip-test-db",
         "--auth-root-authentication-method=normal"],
        check=True, capture_output=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    program = Program("MariaDB", folder / "mariadb.log")
    program.launch([
        server, "--no-defaults", "--user=root", f"--datadir={data}", f"--bind-address={HOST}",
        f"--port={port}", f"--socket={socket}", "--server-id=1", f"--log-bin={folder}/bin",
        "--binlog-format=ROW", "--binlog-row-metadata=FULL", "--character-set-server=utf8mb4",
        "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=256M",
    ])  # fmt: skip
    try:
        found = MariaDb(port, socket)
        program.await_ready(found.answers, _START_WITHIN_S)
        rights = "SELECT, PROCESS, BINLOG MONITOR"
        found.run(
            f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT {rights} ON *.* TO {USER}@'%'",
        )
        yield found
    finally:
        program.kill()
