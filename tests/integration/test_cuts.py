"""Cuts of a bank: in each, the accounts of all tables hold what they held together at first."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.integration.rig import Rig
from tests.integration.test_process import Follower, daemon, ended, follower

__all__ = ["follower"]

TABLES, ACCOUNTS, START = 5, 20, 1000
TOTAL = TABLES * ACCOUNTS * START


class Bank:
    """Writes as Maxwell does: each transfer is a transaction over two tables."""

    def __init__(self, rig: Rig) -> None:
        self._rig, self._rng, self._xid = rig, random.Random(1), 0
        self._held = {(t, a): START for t in range(TABLES) for a in range(ACCOUNTS)}
        self._producer = Producer({"bootstrap.servers": rig.broker.bootstrap, "linger.ms": 5})

    def open(self) -> None:
        """All accounts, in one transaction."""
        self._transaction([("insert", account, held) for account, held in self._held.items()])

    def transfer(self) -> None:
        """From one account to one of another table."""
        one, other = self._rng.sample(range(TABLES), 2)
        accounts = [(t, self._rng.randrange(ACCOUNTS)) for t in (one, other)]
        amount = self._rng.randrange(1, 50)
        for account, change in zip(accounts, (-amount, amount), strict=True):
            self._held[account] += change
        self._transaction([("update", account, self._held[account]) for account in accounts])

    def _transaction(self, changes: list[tuple[str, tuple[int, int], int]]) -> None:
        self._xid += 1
        for number, (kind, (table, account), held) in enumerate(changes, 1):
            told: dict[str, Any] = {
                "database": self._rig.db, "table": f"accounts{table}", "type": kind,
                "ts": 1_700_000_000 + self._xid, "xid": self._xid,
            }  # fmt: skip
            told |= {"commit": True} if number == len(changes) else {"xoffset": number - 1}
            told["data"] = {"id": account, "held": held}
            if kind == "update":
                told["old"] = {"held": 0}
            key = {"database": self._rig.db, "table": f"accounts{table}", "pk.id": account}
            value = json.dumps(told, separators=(",", ":"))
            self._producer.produce(self._rig.topic, value, key=json.dumps(key), partition=0)
        self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(30) == 0


@pytest.fixture
def transfers(rig: Rig) -> Iterator[Callable[[], None]]:
    """Starts transfers, some 500 a second, until the test ends."""
    bank, ended_ = Bank(rig), threading.Event()

    def go_on() -> None:
        while not ended_.wait(0.02):
            for _ in range(10):
                bank.transfer()
            bank.flush()

    bank.open()
    bank.flush()
    thread = threading.Thread(target=go_on)
    yield thread.start
    ended_.set()
    if thread.ident is not None:
        thread.join()


def total(rig: Rig, versions: dict[str, str] | None = None) -> int:
    """What all accounts hold: of these versions, or as the tables are when they are read."""
    parts = []
    for number in range(TABLES):
        name = f"lake.{rig.db}.accounts{number}"
        at = "" if versions is None else f" VERSION AS OF {versions[name]}"
        parts.append(f"SELECT held FROM lake.`{rig.db}`.accounts{number}{at}")
    found = rig.spark.sql(f"SELECT sum(held) FROM ({' UNION ALL '.join(parts)})")
    return int(found.collect()[0][0])


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_cut_is_between_two_transactions(
    rig: Rig, follower: Follower, transfers: Callable[[], None]
) -> None:
    """Each of them, also behind a kill; what is read without one hardly ever is."""
    name = f"lake.{rig.db}.cuts"
    # Maxwell writes numbers without a type.
    kind = {"format": "maxwell-json", "cut_every": "1s", "cuts.table": name}
    section = rig.pipeline(**kind, **{"types": {"held": "bigint"}, "write": None})
    config = rig.write_config(p=section)
    process = daemon("run", "--config", str(config), start_new_session=True)
    follower.wait_for("running")
    follower.wait_for("cut")
    transfers()
    follower.wait_for("cut", times=4)
    plain = [total(rig) for _ in range(5)]
    process.kill()
    ended(process)
    process = daemon("run", "--config", str(config), start_new_session=True)
    follower.wait_for("running")
    follower.wait_for("cut", times=4)
    process.send_signal(signal.SIGTERM)
    assert ended(process, 120)[0] == 0
    rows = rig.spark.sql(f"SELECT * FROM lake.`{rig.db}`.cuts ORDER BY number").collect()
    assert len(rows) >= 9
    whole = 0
    for row in rows[-12:]:
        assert row.boundary == "transaction"
        versions, left_out = json.loads(row.tables), json.loads(row.left_out)
        assert len(versions) + len(left_out) == TABLES
        if not left_out:
            assert total(rig, versions) == TOTAL, row
            whole += 1
    assert whole >= 8
    assert set(plain) != {TOTAL}
    places = [json.loads(row.positions)[f"{rig.topic}:0"] for row in rows]
    assert places == sorted(set(places))
