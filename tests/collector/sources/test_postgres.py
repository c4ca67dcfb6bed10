"""Collectors of a real PostgreSQL, by a real worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from collector import collector
from demo.broker import DevBroker
from demo.servers.postgres import Postgres
from tests.collector.running import records, rows, running

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


def source(postgres: Postgres, name: str) -> str:
    return f'url = "postgresql://127.0.0.1:{postgres.port}/{name}"\nuser = "postgres"'


def made(postgres: Postgres, name: str) -> None:
    assert not postgres.run("postgres", [f"CREATE DATABASE {name}"])
    assert not postgres.run(name, [
        "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (0, 0)",
    ])  # fmt: skip


def test_each_row_is_there_once_through_kills(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """In the topic itself, read committed, in order; the slot is the collector's, and its place
    moves although nothing but heartbeats is written."""
    made(postgres, name)
    with running(tmp_path, broker, source(postgres, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        count = 0
        for _ in range(3):
            for _ in range(40):
                count += 1
                assert not postgres.run(name, ["BEGIN", f"INSERT INTO t VALUES ({2 * count}, 1)",
                    f"INSERT INTO t VALUES ({2 * count + 1}, 1)", "COMMIT"])  # fmt: skip
                if count % 40 == 20:
                    starts = it.keeper.figures()[0].starts
                    it.kill_worker()
            it.until("running", lambda f, n=starts: it.keeper.figures()[0].starts > n)
        assert not postgres.run(name, ["INSERT INTO t VALUES (1, 1)"])
        it.until(
            "running", lambda _: [o["after"]["id"] for o in rows(broker, name, "t")[-1:]] == [1]
        )
        ids = [one["after"]["id"] for one in rows(broker, name, "t")]
        assert ids == [*range(2, 2 * count + 2), 1]
        place = (
            "SELECT confirmed_flush_lsn FROM pg_replication_slots "
            f"WHERE slot_name = 'binlogd_{name}'"
        )
        before = postgres.ask(place).rows[0][0]
        it.until("running", lambda f: postgres.ask(place).rows[0][0] != before)


def test_a_slot_that_was_dropped_stops_it_by_name(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """Nothing is read by a slot that somebody made anew; a reset reads on, and loads."""
    made(postgres, name)
    with running(tmp_path, broker, source(postgres, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        shop = it.collectors.of("shop")
        assert shop is not None
        shop.hands.pause()
        it.until("paused")
        drop(postgres, name)
        assert not postgres.run(name, ["INSERT INTO t VALUES (5, 5)"])
        found = it.until("lost")
        assert found["reason"] == f"the slot binlogd_{name} is not there any more"
        shop.hands.reset()
        it.until("running", lambda f: bool(it.loads))
        assert not postgres.run(name, ["INSERT INTO t VALUES (9, 9)"])
        it.until("running", lambda f: rows(broker, name, "t")[-1:] != [])
        assert [one["after"]["id"] for one in rows(broker, name, "t")] == [9]


def drop(postgres: Postgres, name: str) -> None:
    assert not postgres.run(name, [f"SELECT pg_drop_replication_slot('binlogd_{name}')"])


def test_a_slot_dropped_under_a_running_reader_loses_nothing_in_silence(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """Whether Debezium makes another one or not: what was between is told as lost."""
    made(postgres, name)
    with running(tmp_path, broker, source(postgres, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        end = (
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
            f"WHERE slot_name = 'binlogd_{name}'"
        )
        assert not postgres.run(name, [
            f"{end}; SELECT pg_sleep(0.2); SELECT pg_drop_replication_slot('binlogd_{name}')",
            "INSERT INTO t VALUES (5, 5)",
        ])  # fmt: skip
        it.until("lost")
        assert not rows(broker, name, "t")


def test_another_reader_of_the_slot_is_told_by_name(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """The second collector waits, and says who has it; the first one reads on."""
    made(postgres, name)
    second = tmp_path / "b"
    with running(tmp_path / "a", broker, source(postgres, name), "public.*", topic=name) as one:
        one.until("running", lambda f: bool(f["position"]))
        more = 'config = { "slot.max.retries" = 1 }'
        with running(
            second, broker, source(postgres, name), "public.*", more, topic=name, group=f"{name}-b"
        ) as two:
            found = two.until(
                "failed", lambda f: "another reader has this collector's slot" in f["reason"]
            )
            assert "it is PID" in found["reason"]
        assert not postgres.run(name, ["INSERT INTO t VALUES (1, 1)"])
        one.until("running", lambda f: bool(rows(broker, name, "t")))
        assert len(rows(broker, name, "t")) == 1
        assert records(broker, name)


def test_a_reader_that_hangs_is_told(
    tmp_path: Path,
    broker: DevBroker,
    postgres: Postgres,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its task runs, its connection is there, and nothing comes: its position stays."""
    monkeypatch.setattr(collector, "STUCK_S", 6.0)
    made(postgres, name)
    with running(tmp_path, broker, source(postgres, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        slots = f"pg_replication_slots WHERE slot_name = 'binlogd_{name}'"
        sender = int(postgres.ask(f"SELECT active_pid FROM {slots}").rows[0][0])
        os.kill(sender, signal.SIGSTOP)
        try:
            assert not postgres.run(name, ["INSERT INTO t VALUES (1, 1)"])
            found = it.until("failed")
            assert "its position has not moved for" in found["reason"]
        finally:
            os.kill(sender, signal.SIGCONT)
        it.until("running", lambda _: len(rows(broker, name, "t")) == 1)
