"""A real replica: its position is the primary's, and the check says what it is."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.daemon.databases.conftest import folder
from tests.daemon.databases.servers import Server, users
from tests.live.mariadb import MariaDb
from tests.live.program import HOST

pytestmark = [pytest.mark.integration, pytest.mark.long]
RIGHTS = ("SELECT, BINLOG MONITOR, REPLICA MONITOR",)


def now_us() -> int:
    return time.time_ns() // 1000


def started(where: Path, number: int, stack: ExitStack) -> MariaDb:
    server = MariaDb(where / str(number), number=number)
    server.start()
    stack.callback(server.program.kill)
    assert server.run(users(RIGHTS)) == ""
    return server


def end_of_log(server: MariaDb) -> tuple[str, str]:
    file, offset = server.ask("SHOW MASTER STATUS").rows[0][:2]
    return file, offset


def test_a_replica_tells_the_primarys_position(servers: dict[str, Server]) -> None:
    """Up to which it has applied everything; stopped, or taken for a primary, it is told."""
    assert servers["mariadb"]  # or it is missing
    with folder() as where, ExitStack() as stack:
        primary, replica = (started(where, number, stack) for number in (2, 3))
        made, right = "CREATE USER repl@'%' IDENTIFIED BY 'r'", "GRANT REPLICATION SLAVE ON *.*"
        assert primary.run([made, f"{right} TO repl@'%'"]) == ""
        file, offset = end_of_log(primary)
        source = (
            f"CHANGE MASTER TO MASTER_HOST='{HOST}', MASTER_PORT={primary.port},"
            " MASTER_USER='repl', MASTER_PASSWORD='r',"
            f" MASTER_LOG_FILE='{file}', MASTER_LOG_POS={offset}"
        )
        assert replica.run([source, "START SLAVE"]) == ""
        assert primary.run(["CREATE SCHEMA s", "CREATE TABLE s.t (id INT PRIMARY KEY)"]) == ""
        server = Server("mariadb", replica.port, replica.run, "")
        database, wanted = server.open(role="replica"), "mysql:{}:{}".format(*end_of_log(primary))
        deadline, pause = time.monotonic() + 60, threading.Event()
        while database.moment().position != wanted:
            assert time.monotonic() < deadline, database.moment()
            pause.wait(0.1)
        assert database.check([], now_us).problems == ()
        assert replica.run(["STOP SLAVE SQL_THREAD"]) == ""
        (stopped,) = database.check([], now_us).problems
        assert stopped == "its replication has stopped: START REPLICA"
        (mistaken,) = server.open().check([], now_us).problems
        assert mistaken == f'role is "primary", but it replicates {HOST}: role = "replica"'
        database.close()
