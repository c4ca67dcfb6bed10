"""A table that is there before any stream: a MariaDB of the comparison's own, for first loads.

The table is made once for a workload and never changes, so each contestant reads the same. What
the contestants' tables must be is what the server itself writes of it into a file, as text.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from actors.runtime.programs import HOST, ProgramError
from bench.compare.job import NAMESPACE
from bench.compare.measure import family
from bench.compare.places import Place, Served
from bench.compare.rows import LOADED
from bench.compare.workloads import Workload
from demo.servers.mariadb import MariaDb

USER = "bench"
PASSWORD = "only-for-the-comparison"
_VALUES = {
    "name": "IF(seq % 17 = 0, NULL, CONCAT('customer ', seq))",
    "city": "ELT(seq % 6 + 1, 'Amsterdam', 'Berlin', 'Kraków', '', 'Oslo', 'Žilina')",
    "amount": "(CAST(seq % 20000000 AS SIGNED) - 10000000) / 100",
    "qty": "seq % 1000",
    "created": "'2026-01-01' + INTERVAL seq % 31536000 SECOND + INTERVAL seq % 999983 MICROSECOND",
}
_EVEN = "seq"
_SKEWED = (
    "CASE WHEN seq % 10 = 0 THEN seq * 1000003"
    " WHEN seq % 2 = 0 THEN 8000000000001 + seq ELSE 9000000000001 + seq END"
)
"""A tenth lies wide apart, all others in two dense ranges."""
_OPTIONS = ("--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M")
"""The table is in memory for everybody: what is compared is not the disk."""
_AT_ONCE = 250_000


class Source(Place):
    """The database of one workload, and the lakes into which its table is loaded."""

    def __init__(self, lakes: Place, workload: Workload) -> None:
        """``lakes``: where the loaded tables lie."""
        super().__init__(lakes.var)
        self._lakes, self._workload = lakes, workload
        self._before_s = 0.0
        self._server: MariaDb | None = None
        self._folder: Path | None = None

    def prepare(self, make: Callable[[dict[str, str]], None] | None) -> None:
        """Start it and make the table. Raises ProgramError; ``close`` ends it then, too."""
        self._lakes.prepare(make)
        # A socket's path may have 107 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="binlogd-compare-"))
        self._server = MariaDb(self._folder / "server", options=_OPTIONS)
        self._server.start()
        for statement in statements(self._workload, self.dump):
            self._ask(statement)

    def close(self) -> None:
        """End it, and remove all of it. Once at least."""
        if self._server is not None:
            self._server.program.kill()
            self._server = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    @contextmanager
    def lake(self, prepared: bool) -> Iterator[dict[str, str]]:
        with self._lakes.lake(prepared) as catalog:
            self._before_s = self._cpu_s()
            yield catalog

    def served(self) -> Served:
        """The database's processor time."""
        return Served(None, self._cpu_s() - self._before_s)

    @property
    def dump(self) -> Path:
        """The table as the server wrote it: a line a row, its columns between tabs."""
        assert self._folder is not None
        return self._folder / "dump.tsv"

    @property
    def properties(self) -> dict[str, str]:
        """How a contestant reaches it."""
        assert self._server is not None
        return {
            "host": HOST, "port": str(self._server.port), "user": USER, "password": PASSWORD,
        }  # fmt: skip

    def _cpu_s(self) -> float:
        assert self._server is not None
        return sum(process.cpu_s for process in family(self._server.program.pid))

    def _ask(self, statement: str) -> None:
        assert self._server is not None
        answer = self._server.ask(statement)
        if answer.error:
            raise ProgramError(answer.error)


def statements(workload: Workload, dump: Path) -> Iterator[str]:
    """The scripts that make the table, and write it into a file. Its rows are in no binary log."""
    rows, name = workload.changes, f"{NAMESPACE}.{workload.specs[0].name}"
    columns = ", ".join(f"{column.name} {column.mysql}" for column in LOADED)
    names = ", ".join(column.name for column in LOADED)
    yield (
        f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO {USER}@'%';"
        f" CREATE DATABASE {NAMESPACE};"
        f" CREATE TABLE {name} ({columns}, PRIMARY KEY (id)) CHARACTER SET utf8mb4;"
    )
    values = ", ".join([_SKEWED if workload.source == "skewed" else _EVEN, *_VALUES.values()])
    for first in range(1, rows + 1, _AT_ONCE):
        last = min(rows, first + _AT_ONCE - 1)
        yield (
            f"SET SESSION sql_log_bin = 0; USE {NAMESPACE};"
            f" INSERT INTO {name} ({names}) SELECT {values} FROM seq_{first}_to_{last};"
        )
    yield (
        f"ANALYZE TABLE {name};"
        f" SELECT {names} FROM {name} INTO OUTFILE '{dump}' CHARACTER SET utf8mb4;"
    )
