"""A table that is there before any stream: a MariaDB of the comparison's own, for first loads.

The table is made once for a workload. It never changes, or its rows are changed at a rate while a
contestant loads it. What the contestants' tables must be is what the server itself writes of it
into a file, as text.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pymysql

from actors.runtime.programs import HOST, ProgramError
from bench.compare.job import NAMESPACE
from bench.compare.measure import family
from bench.compare.places import Place, Served
from bench.compare.rows import LOADED
from bench.compare.workloads import Workload
from demo.paced import AT_ONCE, Paced
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
        self._running: MariaDb | None = None
        self._folder: Path | None = None

    def prepare(self, make: Callable[[dict[str, str]], None] | None) -> None:
        """Start it and make the table. Raises ProgramError; ``close`` ends it then, too."""
        self._lakes.prepare(make)
        # A socket's path may have 107 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="binlogd-compare-"))
        self._running = MariaDb(self._folder / "server", options=_OPTIONS)
        self.server.start()
        for statement in statements(self._workload, self.dump):
            self._ask(statement)

    @property
    def server(self) -> MariaDb:
        """The one that runs since ``prepare``."""
        assert self._running is not None
        return self._running

    def close(self) -> None:
        """End it, and remove all of it. Once at least."""
        if self._running is not None:
            self._running.program.kill()
            self._running = None
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

    @contextmanager
    def changed(self, per_s: int, marker: str) -> Iterator[tuple[Callable[[], None], ...]]:
        """Have rows changed from the first function's call on, until the second one's, which names
        row 0 at last, and writes the dump. Nothing of that where ``per_s`` is 0."""
        if not per_s:
            yield (lambda: None, lambda: None)
            return
        churn = Churn(per_s, self._workload.changes, self.properties)

        def loaded() -> None:
            churn.stop()
            name = f"{NAMESPACE}.{self._workload.specs[0].name}"
            self._ask(f"REPLACE INTO {name} (id, name) VALUES (0, '{marker}');")
            self.dump.unlink(missing_ok=True)
            self._ask(dump_of(self._workload, self.dump))

        try:
            yield churn.start, loaded
        finally:
            churn.ended.set()

    @property
    def dump(self) -> Path:
        """The table as the server wrote it: a line a row, its columns between tabs."""
        assert self._folder is not None
        return self._folder / "dump.tsv"

    @property
    def properties(self) -> dict[str, str]:
        """How a contestant reaches it."""
        return {
            "host": HOST, "port": str(self.server.port), "user": USER, "password": PASSWORD,
        }  # fmt: skip

    def _cpu_s(self) -> float:
        return sum(process.cpu_s for process in family(self.server.program.pid))

    def _ask(self, statement: str) -> None:
        answer = self.server.ask(statement)
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
    yield f"ANALYZE TABLE {name};"
    yield dump_of(workload, dump)


def dump_of(workload: Workload, dump: Path) -> str:
    """The script that writes the table into a file, which may not be there."""
    names = ", ".join(column.name for column in LOADED)
    name = f"{NAMESPACE}.{workload.specs[0].name}"
    return f"SELECT {names} FROM {name} INTO OUTFILE '{dump}' CHARACTER SET utf8mb4;"


class Churn(Paced):
    """Updates random rows of the table at a rate."""

    def __init__(self, per_s: float, rows: int, source: Mapping[str, str]) -> None:
        """``source``: as of ``Source.properties``; it is connected at the first transaction."""
        super().__init__(per_s)
        self._rows, self._rng, self._source = rows, random.Random(1), source

    @cached_property
    def _session(self) -> Any:
        source = self._source
        return pymysql.connect(
            host=source["host"], port=int(source["port"]), user=source["user"],
            password=source["password"], database=NAMESPACE,
        )  # fmt: skip

    def transaction(self) -> None:
        """See ``Paced``."""
        with self._session.cursor() as cursor:
            for _ in range(AT_ONCE):
                key, qty = self._rng.randrange(1, self._rows + 1), self._rng.randrange(10**6)
                cursor.execute(f"UPDATE t0 SET qty = {qty}, name = 'new {qty}' WHERE id = {key}")
        self._session.commit()
        self.done += AT_ONCE
