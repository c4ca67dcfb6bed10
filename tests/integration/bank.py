"""A bank in a log: transfers between accounts of several tables, each a transaction over two."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import duckdb
from confluent_kafka import Producer

from changes.model.model import TargetName
from sparkwriter.iceberg.local_tables import metadata_of
from sparkwriter.iceberg.queries import load_extensions
from tests.integration.rig import Rig

ACCOUNTS, START = 20, 1000
TYPES = {"held": "bigint", "transfers": "bigint"}
"""Maxwell writes numbers without a type."""


class Sums(NamedTuple):
    """Of all accounts: what they hold together, and how many transfers they have seen."""

    held: int
    transfers: int


class Bank:
    """Writes as Maxwell does, or as Debezium. One thread's."""

    def __init__(
        self, rig: Rig, tables: int, partitions: int = 1, *, debezium: bool = False
    ) -> None:
        """Each table is in one of the topic's partitions; Debezium's transactions in one more."""
        self._rig, self._tables, self._rng, self._xid = rig, tables, random.Random(1), 0
        self._partitions, self._debezium = partitions, debezium
        self._held = {(t, a): (START, 0) for t in range(tables) for a in range(ACCOUNTS)}
        self._producer = Producer({"bootstrap.servers": rig.broker.bootstrap, "linger.ms": 5})

    @property
    def total(self) -> int:
        """What all accounts hold, at any time."""
        return self._tables * ACCOUNTS * START

    def open(self) -> None:
        """All accounts, in one transaction."""
        self._transaction("insert", [*self._held])
        self.flush()

    def transfer(self) -> None:
        """From one account to one of another table."""
        accounts = [
            (table, self._rng.randrange(ACCOUNTS))
            for table in self._rng.sample(range(self._tables), 2)
        ]
        amount = self._rng.randrange(1, 50)
        for account, change in zip(accounts, (-amount, amount), strict=True):
            held, transfers = self._held[account]
            self._held[account] = held + change, transfers + 1
        self._transaction("update", accounts)

    @contextmanager
    def open_for_business(self, per_second: int) -> Iterator[None]:
        """Transfers go on all the time."""
        closed = threading.Event()

        def go_on() -> None:
            while not closed.wait(0.02):
                for _ in range(per_second // 50):
                    self.transfer()
                self.flush()

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            closed.set()
            thread.join()

    def _transaction(self, kind: str, accounts: list[tuple[int, int]]) -> None:
        self._xid += 1
        if self._debezium:
            self._mark("BEGIN", None)
        for number, (table, account) in enumerate(accounts, 1):
            as_it_is = self._as_debezium if self._debezium else self._as_maxwell
            key, value = as_it_is(kind, table, account, number, len(accounts))
            self._produce(value, key, table % self._partitions)
        if self._debezium:
            self._mark("END", len(accounts))
        self._producer.poll(0)

    def _produce(self, value: Any, key: Any, partition: int) -> None:
        texts = (json.dumps(each, separators=(",", ":")) for each in (value, key))
        self._producer.produce(self._rig.topic, *texts, partition=partition)

    def _as_maxwell(
        self, kind: str, table: int, account: int, number: int, count: int
    ) -> tuple[Any, Any]:
        held, transfers = self._held[table, account]
        told: dict[str, Any] = {
            "database": self._rig.db, "table": f"accounts{table}", "type": kind,
            "ts": 1_700_000_000 + self._xid, "xid": self._xid,
        }  # fmt: skip
        told |= {"commit": True} if number == count else {"xoffset": number - 1}
        told["data"] = {"id": account, "held": held, "transfers": transfers}
        if kind == "update":
            told["old"] = {"held": 0, "transfers": 0}
        return {"database": self._rig.db, "table": f"accounts{table}", "pk.id": account}, told

    def _as_debezium(
        self, kind: str, table: int, account: int, number: int, count: int
    ) -> tuple[Any, Any]:
        """Each statement has a time of its own, and a transaction that began earlier may end
        later."""
        held, transfers = self._held[table, account]
        row = {"id": account, "held": held, "transfers": transfers}
        time_ms = 1_700_000_000_000 + 10 * self._xid - self._rng.randrange(200)
        source = {
            "version": "3.4.0.Final", "connector": "mariadb", "name": "bank", "ts_ms": time_ms,
            "snapshot": "false", "db": self._rig.db, "table": f"accounts{table}",
        }  # fmt: skip
        told = {
            "before": row if kind == "update" else None, "after": row, "source": source,
            "transaction": {
                "id": f"0-1-{self._xid}", "total_order": number, "data_collection_order": 1,
            },
            "op": "u" if kind == "update" else "c", "ts_ms": time_ms,
        }  # fmt: skip
        return {"id": account}, told

    def _mark(self, status: str, events: int | None) -> None:
        name, time_ms = f"0-1-{self._xid}", 1_700_000_000_000 + 10 * self._xid
        counts = [{"data_collection": f"{self._rig.db}.accounts", "event_count": events}]
        told = {"status": status, "id": name, "ts_ms": time_ms, "event_count": events}
        told["data_collections"] = None if events is None else counts
        self._produce(told, {"id": name}, self._partitions)

    def flush(self) -> None:
        """Wait until the broker has it all."""
        assert self._producer.flush(30) == 0


def by_spark(rig: Rig, tables: int, versions: Mapping[str, str] | None = None) -> Sums:
    """Of these versions, or of the tables as they are when they are read."""
    parts = []
    for number in range(tables):
        name = f"lake.{rig.db}.accounts{number}"
        at = "" if versions is None else f" VERSION AS OF {versions[name]}"
        parts.append(f"SELECT held, transfers FROM lake.`{rig.db}`.accounts{number}{at}")
    every = " UNION ALL ".join(parts)
    (found,) = rig.spark.sql(f"SELECT sum(held), sum(transfers) FROM ({every})").collect()
    return Sums(int(found[0]), int(found[1]))


class ByDuckdb:
    """Reads versions of a lake's tables on this machine. One thread's."""

    def __init__(self, rig: Rig) -> None:
        self._rig, self._connection = rig, duckdb.connect()
        load_extensions(duckdb, self._connection)

    def sums(self, versions: Mapping[str, str]) -> Sums:
        """Of these versions."""
        parts = []
        for name, version in versions.items():
            path = metadata_of(self._rig.lake, TargetName.parse(name))
            scan = f"iceberg_scan('{path}', snapshot_from_id = {version})"
            parts.append(f"SELECT held, transfers FROM {scan}")
        every = " UNION ALL ".join(parts)
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(f"SELECT sum(held), sum(transfers) FROM ({every})")
            found = cursor.fetchone()
        assert found is not None
        return Sums(int(found[0]), int(found[1]))
