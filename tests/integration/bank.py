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
    """Writes as Maxwell does. One thread's."""

    def __init__(self, rig: Rig, tables: int, partitions: int = 1) -> None:
        """Each table is in one of the topic's partitions."""
        self._rig, self._tables, self._rng, self._xid = rig, tables, random.Random(1), 0
        self._partitions = partitions
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
        for number, (table, account) in enumerate(accounts, 1):
            held, transfers = self._held[table, account]
            told: dict[str, Any] = {
                "database": self._rig.db, "table": f"accounts{table}", "type": kind,
                "ts": 1_700_000_000 + self._xid, "xid": self._xid,
            }  # fmt: skip
            told |= {"commit": True} if number == len(accounts) else {"xoffset": number - 1}
            told["data"] = {"id": account, "held": held, "transfers": transfers}
            if kind == "update":
                told["old"] = {"held": 0, "transfers": 0}
            key = {"database": self._rig.db, "table": f"accounts{table}", "pk.id": account}
            value = json.dumps(told, separators=(",", ":"))
            place = table % self._partitions
            self._producer.produce(self._rig.topic, value, key=json.dumps(key), partition=place)
        self._producer.poll(0)

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
