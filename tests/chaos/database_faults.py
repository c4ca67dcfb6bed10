"""Faults of a database: each goes on for a while, and then all is as it should be."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from databases.base.errors import Cause, DatabaseError
from databases.base.url import parse_url
from sparkwriter.sql.connect import connect
from tests.chaos.database_changes import CHANGES
from tests.chaos.databases import USER, DatabaseRig, end_sessions
from tests.chaos.lab import Lab, Outcome, lab

KILLS = 5


@contextmanager
def _lab(rig: DatabaseRig, fault: str) -> Iterator[Lab]:
    with lab(rig, fault) as made:
        made.wait_for("written", 5)
        yield made


def _ends(made: Lab, ended: float) -> Outcome:
    recovered = made.wait_for("written", 4)
    made.settle()
    return made.outcome(max(0.0, recovered - ended))


def _while(seconds: float) -> Iterator[None]:
    """Now and again until the time is over."""
    until, pause = time.monotonic() + seconds, threading.Event()
    while time.monotonic() < until:
        yield
        pause.wait(0.05)


def killed(rig: DatabaseRig) -> Outcome:
    """kill -9 of the server amid its commits, again and again."""
    server: Any = rig.server.program
    with _lab(rig, "database killed and started, five times") as made:
        for _ in range(KILLS):
            server.program.kill()
            server.start()
            made.wait_for("written", 2)
        return _ends(made, time.monotonic())


def stopped(rig: DatabaseRig) -> Outcome:
    """The server answers nothing for a while (SIGSTOP)."""
    with _lab(rig, "database stopped") as made:
        pids = _processes(rig)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            threading.Event().wait(rig.away_s)  # it is how long the fault lasts
        finally:
            for pid in reversed(pids):
                os.kill(pid, signal.SIGCONT)
        return _ends(made, time.monotonic())


def _processes(rig: DatabaseRig) -> list[int]:
    """The server and its children."""
    found = [int(rig.server.program.program.pid)]
    for pid in found:
        children = Path(f"/proc/{pid}/task/{pid}/children")
        found += [int(child) for child in children.read_text().split()]
    return found[1:]  # without the leash


def sessions_ended(rig: DatabaseRig) -> Outcome:
    """An administrator ends the daemons' sessions all the time."""
    session = rig.server.connect()
    with _lab(rig, "sessions ended") as made:
        ended = 0
        for _ in _while(rig.away_s):
            ended += end_sessions(rig.server, session)
        session.close()
        assert ended > KILLS
        return _ends(made, time.monotonic())


def locked(rig: DatabaseRig) -> Outcome:
    """Somebody else locks rows in another order: waits and deadlocks."""
    session = rig.server.connect()
    with _lab(rig, "locks and deadlocks") as made:
        tables = [f"{rig.db}.{table.name}" for table in made.source.tables]
        for number, _ in enumerate(_while(rig.away_s)):
            table = tables[number % len(tables)]
            try:
                session.run("BEGIN")
                for order in ("DESC", "ASC"):
                    session.rows(f"SELECT id FROM {table} ORDER BY id {order} LIMIT 40 FOR UPDATE")
                session.run("COMMIT")
            except DatabaseError as error:
                if error.cause is Cause.AWAY:
                    raise
                session.run("ROLLBACK")
        session.close()
        return _ends(made, time.monotonic())


def read_only(rig: DatabaseRig) -> Outcome:
    """The server takes no writes for a while, as one that another has taken over from."""
    on, off = (
        [f"ALTER ROLE {USER} SET default_transaction_read_only = {word}" for word in ("on", "off")]
        if rig.server.is_postgres
        else [f"SET GLOBAL read_only = {number}" for number in (1, 0)]
    )
    return _administered(rig, "database read-only", on, off)


def exhausted(rig: DatabaseRig) -> Outcome:
    """No connection is left for a while."""
    on, off = (
        [f"ALTER ROLE {USER} CONNECTION LIMIT {number}" for number in (0, -1)]
        if rig.server.is_postgres
        else [
            f"ALTER USER {USER}@'127.0.0.1' WITH MAX_USER_CONNECTIONS {number}" for number in (1, 0)
        ]
    )
    return _administered(rig, "connections exhausted", on, off)


def _administered(rig: DatabaseRig, fault: str, on: str, off: str) -> Outcome:
    session = rig.server.connect()
    with _lab(rig, fault) as made:
        taken = None
        session.run(on)
        end_sessions(rig.server, session)
        if "CONNECTIONS" in on:
            taken = _take(rig)
        try:
            made.wait_for("sink_unavailable", 3)
        finally:
            session.run(off)
            session.close()
            if taken is not None:
                taken.close()
        return _ends(made, time.monotonic())


def _take(rig: DatabaseRig) -> Any:
    """The one connection that is allowed."""
    session = rig.server.connect()
    while True:
        try:
            return connect(parse_url(rig.server.url), USER, None)
        except DatabaseError:
            end_sessions(rig.server, session)


DATABASE_FAULTS: dict[str, Callable[[DatabaseRig], Outcome]] = {
    "database killed and started, five times": killed,
    "database stopped": stopped,
    "sessions ended": sessions_ended,
    "locks and deadlocks": locked,
    "database read-only": read_only,
    "connections exhausted": exhausted,
    **CHANGES,
}
"""Beside those of any sink."""

OF_LAKES = ("compaction", "JVM", "middle of a write", "rolled back")
"""Faults of ``tests.chaos.faults`` that only a lake has, by a part of their names."""
