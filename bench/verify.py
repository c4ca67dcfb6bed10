"""What ``tables verify`` costs: one table in a database and in Iceberg, compared three times.

``python -m bench.verify --database postgresql --rows 10000000``. The table is loaded by the daemon,
verified twice, and once more after a row was changed behind the stream's back. Processor time is
the family's of the daemon (Spark's JVM apart) and of the database's server.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors.runtime.programs import HOST
from bench.compare.measure import family
from demo.broker import DevBroker
from demo.load.daemon import Daemon, write_config
from demo.produce import create_topic
from demo.servers.mariadb import MariaDb
from demo.servers.postgres import Postgres

USER, PASSWORD = "binlogd", "only-for-the-bench"
TABLE = "shop.customers"
_AT_ONCE = 500_000
_POSTGRES = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
_MARIADB = ("--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M")
"""The table is in memory: what is measured is not the disk."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of server: how it is made, and what it calls things."""

    make: Callable[[Path], Postgres | MariaDb]
    driver: str
    user: tuple[str, ...]
    table: str
    rows: str


KINDS = {
    "postgresql": Kind(
        lambda folder: Postgres(folder, _POSTGRES),
        "postgresql://{host}:{port}/postgres",
        (f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}' IN ROLE pg_read_all_data",
         "CREATE SCHEMA shop"),
        "id bigint PRIMARY KEY, name text, city text, amount numeric(12,2), qty int,"
        " created timestamp(6)",
        "SELECT n, CASE WHEN n % 17 = 0 THEN NULL ELSE 'customer ' || n END,"
        " (ARRAY['Amsterdam','Berlin','Kraków','','Oslo','Žilina'])[n % 6 + 1],"
        " (n % 20000000 - 10000000) / 100.0, n % 1000,"
        " timestamp '2026-01-01' + n % 31536000 * interval '1 s' + n % 999983 * interval '1 us'"
        " FROM generate_series({first}::bigint, {last}) AS n",
    ),
    "mariadb": Kind(
        lambda folder: MariaDb(folder, options=_MARIADB),
        "mariadb://{host}:{port}/",
        (f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'",
         f"GRANT SELECT, PROCESS, BINLOG MONITOR ON *.* TO {USER}@'%'", "CREATE DATABASE shop",
         "SET GLOBAL binlog_row_metadata = FULL"),
        "id bigint PRIMARY KEY, name varchar(60), city varchar(40), amount decimal(12,2), qty int,"
        " created datetime(6)",
        "SELECT seq, IF(seq % 17 = 0, NULL, CONCAT('customer ', seq)),"
        " ELT(seq % 6 + 1, 'Amsterdam', 'Berlin', 'Kraków', '', 'Oslo', 'Žilina'),"
        " (CAST(seq % 20000000 AS SIGNED) - 10000000) / 100, seq % 1000,"
        " '2026-01-01' + INTERVAL seq % 31536000 SECOND + INTERVAL seq % 999983 MICROSECOND"
        " FROM seq_{first}_to_{last}",
    ),
}  # fmt: skip


def main() -> int:
    """Measure, and print a line of JSON for each verification."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--database", choices=KINDS, default="postgresql")
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    kind = KINDS[options.database]
    # A socket's path may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="binlogd-verify-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server runs as a user of its own
        server = kind.make(folder / "server")
        try:
            server.start()
            fill(server, kind, options.rows)
            measured(folder, server, kind, options.rows)
        finally:
            server.program.kill()
    return 0


def fill(server: Postgres | MariaDb, kind: Kind, rows: int) -> None:
    """Make the table, of whose rows no stream tells."""
    columns = f"CREATE TABLE {TABLE} ({kind.table})"
    ranges = range(1, rows + 1, _AT_ONCE)
    pieces = ((first, min(rows, first + _AT_ONCE - 1)) for first in ranges)
    asked(server, *kind.user, columns)
    for first, last in pieces:
        into = "SET sql_log_bin = 0; USE shop; " if kind.driver.startswith("mariadb") else ""
        asked(server, f"{into}INSERT INTO {TABLE} {kind.rows.format(first=first, last=last)}")
    asked(server, f"ANALYZE {'TABLE ' if into else ''}{TABLE}")


def asked(server: Postgres | MariaDb, *statements: str) -> None:
    """Run statements. Raises RuntimeError where the server refuses one."""
    error = server.ask(";\n".join(statements) + ";").error
    if error:
        raise RuntimeError(error)


def measured(folder: Path, server: Postgres | MariaDb, kind: Kind, rows: int) -> None:
    """Load the table, then compare it three times."""
    with DevBroker(folder / "broker") as broker:
        create_topic(broker.bootstrap, "shop")
        config = write_config(folder, server.port)
        config.write_text(with_database(config.read_text(), kind, server.port))
        with Daemon(folder, config, broker.bootstrap) as daemon:
            daemon.start()
            begun = time.monotonic()
            daemon.await_job(daemon.begin_load([TABLE]))
            said("load", rows=rows, seconds=round(time.monotonic() - begun, 1))
            one(daemon, server, "first", equal=True)
            one(daemon, server, "again", equal=True)
            asked(server, f"UPDATE {TABLE} SET qty = qty + 1 WHERE id = {rows // 3}")
            one(daemon, server, "a row differs", equal=False)


def with_database(text: str, kind: Kind, port: int) -> str:
    """The configuration with this server in place of the demo's."""
    if kind.driver.startswith("postgresql"):
        text = text.replace('"canal-json"', '"debezium-json"')
    # Nothing changes, so ends are taken by time.
    for section in ("[load]\n", "[pipeline.shop.verify]\n"):
        text = text.replace(section, f"{section}idle_s = 5.0\n")
    begin = text.index("[database.shop]")
    url = f"jdbc:{kind.driver.format(host=HOST, port=port)}"
    section = f'[database.shop]\nurl = "{url}"\nuser = "{USER}"\npassword = "{PASSWORD}"\n'
    return text[:begin] + section


def one(daemon: Daemon, server: Postgres | MariaDb, name: str, *, equal: bool) -> None:
    """One verification: its seconds, and the processor time of each part."""
    before = spent(daemon, server)
    begun = time.monotonic()
    result = daemon.verified("lake.shop.*")
    seconds = time.monotonic() - begun
    after = spent(daemon, server)
    if result["equal"] is not equal:
        raise RuntimeError(f"{name}: {json.dumps(result)}")
    said(name, seconds=round(seconds, 1),
         **{part: round(after[part] - before[part], 1) for part in after})  # fmt: skip


def spent(daemon: Daemon, server: Postgres | MariaDb) -> dict[str, float]:
    """Processor seconds until now."""
    of_daemon = family(daemon.pid)
    return {
        "spark_cpu_s": sum(process.cpu_s for process in of_daemon if process.java),
        "python_cpu_s": sum(process.cpu_s for process in of_daemon if not process.java),
        "database_cpu_s": sum(process.cpu_s for process in family(server.program.pid)),
    }


def said(what: str, **figures: Any) -> None:
    """A line of the output."""
    print(json.dumps({"what": what, **figures}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
