"""Where the compared tables lie if not in a lake: a database, started anew for each run.

The tables are there before, as a person would declare them, the same for every contestant. They
are read by the server's own client, as text, and compared with the texts of the expected rows. The
messages have their values from numbers (bench/compare/debezium.py), on another way.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.compare.declared import created
from bench.compare.expected import Expected, fold
from bench.compare.job import NAMESPACE, TableSpec
from bench.compare.lake import Verdict
from bench.compare.measure import family
from bench.compare.places import Place, Served
from bench.compare.rows import COLUMNS, SENT, texts
from bench.compare.run import NoFigure
from bench.compare.workloads import Workload
from tests.live.mariadb import MariaDb
from tests.live.postgres import Postgres
from tests.live.program import LiveError

SHOWN = 5
POSTGRES = {
    "shared_buffers": "512MB", "max_wal_size": "4GB", "wal_level": "replica",
    "track_commit_timestamp": "on",
}  # fmt: skip
"""Larger than its defaults for a small machine; a commit is durable. Freshness is by its times."""
MARIADB = (
    "--skip-log-bin", "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=512M",
    "--innodb-log-file-size=512M", "--max-allowed-packet=64M",
)  # fmt: skip
"""The same."""


class Database(Place):
    """The tables of one workload, empty at the start of each run."""

    def __init__(self, var: Path, workload: Workload) -> None:
        super().__init__(var)
        self._workload = workload
        self._server: Postgres | MariaDb | None = None
        self._before_s = 0.0

    def prepare(self, make: Callable[[dict[str, str]], None] | None) -> None:
        """Nothing of it outlasts a run."""

    @contextmanager
    def lake(self, prepared: bool) -> Iterator[dict[str, str]]:
        """Raises NoFigure where the machine has no such server."""
        # PostgreSQL runs as a user of its own, and a socket's path may have 107 bytes.
        folder = Path(tempfile.mkdtemp(prefix="binlogd-compare-"))
        folder.chmod(0o755)
        try:
            server = self._server = self._made(folder / "server")
            try:
                server.start()
                tables = created(self._workload.database, NAMESPACE, self._workload.specs)
                self.ask("".join(f"{one};\n" for one in tables))
                self._before_s = self._cpu_s()
                yield self._properties(server.port)
            finally:
                server.program.kill()
        except LiveError as error:
            raise NoFigure(str(error)) from error
        finally:
            self._server = None
            shutil.rmtree(folder)

    def served(self) -> Served:
        return Served(None, self._cpu_s() - self._before_s)

    def verdict(self, reached: int) -> Verdict:
        """How the tables are, compared with the messages below ``reached``."""
        workload, differences, scan_s = self._workload, [], 0.0
        for table, expected in zip(workload.specs, fold(workload, reached), strict=True):
            began = time.perf_counter()
            rows = self.ask(read_sql(table))
            scan_s += time.perf_counter() - began
            differences += compare(table.name, expected, rows, self._shown)
        delays: list[float] = []
        if workload.per_second and not differences:
            delays = [delay for table in workload.specs for delay in self._delays_s(table)]
        return Verdict(differences[:SHOWN], scan_s, delays)

    @property
    def _shown(self) -> str:
        """What the client shows of a time's fraction, which is 0: PostgreSQL's nothing."""
        return "" if self._workload.database == "postgresql" else ".000000"

    def _made(self, folder: Path) -> Postgres | MariaDb:
        if self._workload.database == "postgresql":
            return Postgres(folder, POSTGRES)
        return MariaDb(folder, options=MARIADB)

    def _properties(self, port: int) -> dict[str, str]:
        kind = self._workload.database
        if kind == "postgresql":
            url = f"jdbc:postgresql://127.0.0.1:{port}/postgres"
            return {"type": kind, "url": url, "user": "postgres"}
        return {"type": kind, "url": f"jdbc:mariadb://127.0.0.1:{port}/", "user": "root"}

    def _cpu_s(self) -> float:
        assert self._server is not None
        return sum(process.cpu_s for process in family(self._server.program.pid))

    def ask(self, script: str) -> tuple[tuple[str, ...], ...]:
        """What the server's own client answers to a script, in a run. Raises LiveError."""
        assert self._server is not None
        answer = self._server.ask(script)
        if answer.error:
            raise LiveError(answer.error)
        return answer.rows

    def _delays_s(self, table: TableSpec) -> list[float]:
        """From sent to committed, of each row that there is: PostgreSQL knows when its last
        version was committed."""
        committed = "extract(epoch FROM pg_xact_commit_timestamp(xmin))"
        found = self.ask(
            f"SELECT {committed} - {SENT.name} / 1000.0 FROM {NAMESPACE}.{table.name};"
        )
        return [float(delay) for (delay,) in found]


def read_sql(table: TableSpec) -> str:
    """The query of a table's rows, in the columns that are compared."""
    names = ", ".join(column.name for column in COLUMNS)
    return f"SELECT {names} FROM {NAMESPACE}.{table.name};"


def compare(
    table: str, expected: Expected, rows: tuple[tuple[str, ...], ...], fraction: str = ""
) -> list[str]:
    """The rows that one of both has more often than the other, a line each.

    ``fraction``: what comes after the seconds of the last column.
    """
    pairs = zip(expected.keys, expected.versions, strict=True)
    told = ((*texts(key, version).values(),) for key, version in pairs)
    wanted = Counter((*row[:-1], row[-1] + fraction) for row in told)
    found = Counter(rows)
    missing, more = wanted - found, found - wanted
    return [f"{table}: {count} missing: {row}" for row, count in missing.most_common(SHOWN)] + [
        f"{table}: {count} too many: {row}" for row, count in more.most_common(SHOWN)
    ]
