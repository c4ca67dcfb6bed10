"""``binlogd replicate`` alone: its broker, its collector, the load, the verification, the stream.

Nothing of it runs before the clock does. The end: it has said that all tables are equal, and the
last change is in the table. ``visible_s`` of the figures is without its verification.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pymysql

from actors.runtime.jars import JarsError, fetch_extra
from bench.compare.job import NAMESPACE, Begin, End, Job, Loaded, Missing, read_job, tell
from bench.peers.loads.seen import await_marker, await_rows
from demo.replicate.command import Replicate
from tests.live.jars import bring_collector


def main() -> None:
    """Run it, or say why that can't be."""
    job = read_job()
    try:
        bring_collector()
        fetch_extra("mariadb")
    except JarsError as problem:
        tell(Missing(str(problem)))
        return
    folder, source = Path(job.folder), job.source
    password = folder / "password"
    password.write_text(source["password"])
    url = f"mariadb://{source['user']}@{source['host']}:{source['port']}/{NAMESPACE}"
    tables = "--tables", f"{NAMESPACE}.{job.tables[0].name}"
    into = Path(job.catalog["warehouse"])
    with Replicate(folder / "replica", url, password, *tables, into=into) as command:
        _grant(job, command)
        tell(Begin())
        began = time.monotonic()
        command.start()
        equal_s: list[float] = []

        def listen() -> None:
            command.await_line(r"all 1 table equal")
            equal_s.append(time.monotonic() - began)

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        await_rows(job, command.check)
        loaded_s = time.monotonic() - began
        tell(Loaded())
        await_marker(job, command.check)
        visible_s = time.monotonic() - began
        listener.join()
        if not equal_s:
            raise SystemExit("the command did not say that the table is equal")
        found = {"loaded_s": loaded_s, "visible_s": visible_s, "equal_s": equal_s[0]}
        tell(End(job.end, {name: round(value, 1) for name, value in found.items()}))


def _grant(job: Job, command: Replicate) -> None:
    """Run what the command says that the source lacks."""
    _, plan = command.plan()
    source = job.source
    with pymysql.connect(
        host=source["host"], port=int(source["port"]), user=source["user"],
        password=source["password"], autocommit=True,
    ) as session, session.cursor() as cursor:  # fmt: skip
        for lacking in plan["lacks"]:
            for statement in lacking["statements"]:
                cursor.execute(statement)


if __name__ == "__main__":
    main()
