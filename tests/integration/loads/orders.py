"""A load that is stopped by locks at known places, so that changes come exactly there.

Locks of the database hold it: one on the target's ledger between the read of a range and its
write, one on the source's table before the next range is read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from offsets.position import TopicPartition
from tests.databases.base.servers import Server, within
from tests.integration.loads.copies import selected, session
from tests.integration.rig import Rig, canal
from tests.integration.test_load import Life
from tests.integration.test_process import run

RANGE_ROWS = 1000
KEYS = range(2, 4 * RANGE_ROWS - 100, 2)
"""Two ranges of them: the second one has room. Odd keys are free."""

Rows = dict[int, tuple[str, int]]

_HELD = "SELECT 1 FROM information_schema.innodb_lock_waits"
_WAITS_TO_READ = (
    "SELECT 1 FROM information_schema.processlist"
    " WHERE user = 'jobs' AND state = 'Waiting for table metadata lock'"
)


class Table:
    """A table of the source, and what the stream tells of it."""

    def __init__(self, rig: Rig, server: Server, name: str) -> None:
        self._rig, self._server = rig, server
        self.name = f"{rig.db}.{name}"
        self.target = f"copy.{rig.db}_copy.{name}"
        server.run(
            [
                f"CREATE TABLE {self.name} (id INT PRIMARY KEY, name VARCHAR(20), qty BIGINT)",
                f"USE {rig.db}",
                f"INSERT INTO {name} SELECT seq, CONCAT('n', seq), seq * 7"
                f" FROM seq_{KEYS.start}_to_{KEYS[-1]}_step_2",
            ]
        )
        self._connection = session(server)

    def close(self) -> None:
        """End its session."""
        self._connection.close()

    def rows(self) -> Rows:
        """What it has, as its own session sees it."""
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT id, name, qty FROM {self.name}")
            return {key: (name, qty) for key, name, qty in cursor.fetchall()}

    def insert(self, key: int) -> None:
        """A row of a free key."""
        self._run(f"INSERT INTO {self.name} VALUES ({key}, 'new', 1)")
        self._tell("INSERT", {"id": key, "name": "new", "qty": 1})

    def update(self, key: int) -> None:
        """A row's name."""
        name, qty = self.rows()[key]
        self._run(f"UPDATE {self.name} SET name = 'changed' WHERE id = {key}")
        self._tell("UPDATE", {"id": key, "name": "changed", "qty": qty}, {"name": name})

    def delete(self, key: int) -> None:
        """A row."""
        name, qty = self.rows()[key]
        self._run(f"DELETE FROM {self.name} WHERE id = {key}")
        self._tell("DELETE", {"id": key, "name": name, "qty": qty})

    def move(self, key: int, to: int) -> None:
        """A row to a free key."""
        name, qty = self.rows()[key]
        self._run(f"UPDATE {self.name} SET id = {to} WHERE id = {key}")
        self._tell("UPDATE", {"id": to, "name": name, "qty": qty}, {"id": str(key)})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else reads it inside; its own session changes it."""
        self._run(f"LOCK TABLES {self.name} WRITE")
        yield
        self._run("UNLOCK TABLES")

    def _run(self, sql: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)

    def _tell(self, kind: str, row: dict[str, Any], old: dict[str, Any] | None = None) -> None:
        """Write its message, and wait until the pipeline has it."""
        es = int(time.time()) * 1000
        self._rig.produce(canal(self.name, kind, [row], es=es, old=None if old is None else [old]))
        read(self._rig)


def read(rig: Rig) -> None:
    """The pipeline has done with all that is in the log: it is written, or kept."""
    place = TopicPartition(rig.topic, 0)
    end = rig.log_ends(rig.topic)[str(place)]
    within(60, lambda: (at := rig.snapshot().partitions.get(place)) and at.frontier >= end)


def beat(rig: Rig, ahead_s: float = 0.0) -> None:
    """A change of another table, so much later by the source's clock."""
    es = int((time.time() + ahead_s) * 1000)
    rig.produce(canal(f"{rig.db}.other", "INSERT", [{"id": 1, "name": "x", "qty": 1}], es=es))


class HeldLoad:
    """One load of a table, which stops at each place until it is sent on."""

    def __init__(self, rig: Rig, server: Server, life: Life, config: str, table: Table) -> None:
        self._rig, self._server, self._life = rig, server, life
        self._config, self._table = config, table

    @contextmanager
    def first_range_is_read(self) -> Iterator[None]:
        """The load has begun, and has read the first range. It writes it behind this block."""
        ledger = session(self._server, autocommit=False)
        with ledger, ledger.cursor() as cursor:
            cursor.execute("SELECT version FROM binlogd.__binlogd_targets FOR UPDATE")
            before = len(self._life.jobs())
            status, said = run("tables", "load", self._table.name, "--config", self._config)
            assert status == 0, said
            within(60, lambda: bool(selected(self._server, _HELD)))
            assert len(self._life.jobs()) == before + 1
            yield
            assert selected(self._server, _HELD), "it did not wait so long"
            ledger.commit()

    def await_first_write(self) -> None:
        """The first range is written, and the read of the second one waits for the table's lock."""
        self._life.await_job("a range", lambda job: self._state(job).get("next") == 1)
        within(60, lambda: bool(selected(self._server, _WAITS_TO_READ)))

    def await_rows(self) -> tuple[Rows, int]:
        """Both ranges are written, and nothing of the stream is: the rows of the new table, and the
        last key of the first range."""
        job = self._life.await_job("rows", lambda job: self._state(job).get("stage") == "filled")
        assert job.attempts == 0
        state = self._state(job)
        first, second = state["parts"]
        assert first["high"] == second["low"]
        return self._rows(str(state["into"])), int(first["high"][0])

    def await_end(self) -> Rows:
        """The log passes what was read, and the new table takes its name: its rows."""
        # Only what comes from then on is looked at.
        self._life.await_job("the look for the end", lambda job: job.memory.get("ending"))
        beat(self._rig, ahead_s=60.0)
        job = self._life.await_job("its end", lambda job: job.state.is_final)
        assert str(job.state) == "done", job.message
        return self._rows(self._table.target)

    def _state(self, job: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = job.memory.get("targets", {}).get(self._table.target, {})
        return found

    def _rows(self, target: str) -> Rows:
        name = target.removeprefix("copy.")
        found = selected(self._server, f"SELECT id, name, qty FROM {name}")
        assert len(found) == len({row[0] for row in found})
        return {key: (name, qty) for key, name, qty in found}
