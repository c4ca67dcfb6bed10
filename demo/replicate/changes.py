"""A session that changes rows all the time, and goes on where the server was killed."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pymysql

from actors.runtime.programs import ProgramError
from demo.paced import AT_ONCE, Paced
from demo.replicate.source import DATABASE, KEYS, Source, columns_of, sizes

LEAST = 0.02
"""A table's share of the changes goes by its rows, but is so large at least."""

AGAIN_S = 0.2
"""Between two tries to connect."""

_AWAY = (pymysql.err.OperationalError, pymysql.err.InterfaceError, psycopg.OperationalError)


class Changes(Paced):
    """Changes rows at a rate until it is stopped.

    A transaction that a kill has met counts as none, whether the server kept it or not: the
    comparison reads what the server has.
    """

    def __init__(self, source: Source, rows: int, per_s: float, seed: int) -> None:
        super().__init__(per_s)
        self._source, self._sizes = source, sizes(rows)
        self._rng = random.Random(seed)
        self._weights = [max(size, rows * LEAST) for size in self._sizes.values()]
        self._connection: Any = None

    def stop(self) -> int:
        """See ``Paced``. Raises ProgramError."""
        try:
            return super().stop()
        except Exception as error:
            raise ProgramError(f"the changes have ended: {error}") from error

    def transaction(self) -> None:
        """See ``Paced``."""
        try:
            if self._connection is None:
                self._connection = self._source.connect()
            with self._connection.cursor() as cursor:
                for _ in range(AT_ONCE):
                    self._change(cursor)
            self._connection.commit()
            self.done += AT_ONCE
        except _AWAY:
            self._connection = None
            self.ended.wait(AGAIN_S)

    def _change(self, cursor: Any) -> None:
        rng = self._rng
        (table,) = rng.choices(list(self._sizes), self._weights)
        number = rng.randrange(1, self._sizes[table] * 11 // 10 + 10)
        key = {"id": number, "code": f"Code {number}", "line": number % 7}
        key = {name: key[name] for name in KEYS[table]}
        where = " AND ".join(f"{name} = %s" for name in key)
        fate = rng.random()
        if fate < 0.2:
            cursor.execute(f"DELETE FROM {DATABASE}.{table} WHERE {where}", tuple(key.values()))
            if cursor.rowcount:
                return
        elif fate < 0.8:
            column, value = self._new()
            sql = f"UPDATE {DATABASE}.{table} SET {column} = %s WHERE {where}"
            cursor.execute(sql, (value, *key.values()))
            if cursor.rowcount:
                return
        self._insert(cursor, table, key, where)

    def _new(self) -> tuple[str, Any]:
        if self._rng.random() < 0.5:
            return "name", f"changed {self.done} {self._rng.randrange(10**6)} é"
        return "qty", self._rng.randrange(10**9)

    def _insert(self, cursor: Any, table: str, key: dict[str, Any], where: str) -> None:
        cursor.execute(f"SELECT 1 FROM {DATABASE}.{table} WHERE {where}", tuple(key.values()))
        if cursor.fetchone() is not None:
            return
        row = key | {
            "name": f"new {self.done}", "price": None, "qty": self._rng.randrange(10**9),
            "made": None, "note": "", "ratio": -1.5, "big": 2**64 - 1,
        }  # fmt: skip
        names = columns_of(table)
        marks = ", ".join(["%s"] * len(names))
        cursor.execute(
            f"INSERT INTO {DATABASE}.{table} ({', '.join(names)}) VALUES ({marks})",
            tuple(row[name] for name in names),
        )
