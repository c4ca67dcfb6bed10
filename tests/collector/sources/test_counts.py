"""``binlogd counts`` over what real collectors wrote, whole and with a message left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from demo.servers.postgres import Postgres
from offsets.position import TopicPartition
from sources.base.port import LogRecord
from sources.kafka.topics import KafkaTopics
from tests.collector.running import records, running
from tests.collector.sources import test_mariadb as mariadbs
from tests.collector.sources import test_postgres as postgreses

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]

ROWS = 20_000
"""Of a transaction that the worker needs several of Kafka's transactions for."""

Keep = Callable[[dict[str, Any]], bool]


class Log:
    """A collector's topic, and copies of it that lack something."""

    def __init__(self, folder: Path, bootstrap: str, topic: str) -> None:
        self.folder, self.bootstrap, self.topic = folder, bootstrap, topic

        self._log = KafkaTopics({"bootstrap.servers": self.bootstrap}).log(self.topic)
        self._source = TopicPartition(self.topic, 0)

    def end(self) -> int:
        """Where what is committed ends."""
        return self._log.questions().committed_ends([self._source])[self._source]

    def read(self, first: int = 0) -> Iterator[LogRecord]:
        """Its records from there on."""
        return self._log.reader().read(self._source, first, self.end() - 1)

    def ids_of_last(self) -> set[int]:
        """The ids of the rows among the last records, which their transaction's END follows."""
        records = [each.value for each in self.read(max(0, self.end() - 20))]
        last = [json.loads(each)["payload"] for each in records if each is not None]
        ended = [place for place, each in enumerate(last) if each.get("status") == "END"]
        return {each["after"]["id"] for each in last[: max(ended, default=0)] if "op" in each}

    def copied(self, keep: Keep) -> Log:
        """A copy with the same records and times, of those that are kept."""
        copy = f"{self.topic}-copy"
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(copy, 1, 1)])[copy].result(20)
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for each in self.read():
            if each.value is None or keep(json.loads(each.value)["payload"]):
                more = {"timestamp": each.time_ms or 0, "headers": list(each.headers)}
                producer.produce(copy, each.value, each.key, 0, **more)
        assert producer.flush(30) == 0
        return Log(self.folder, self.bootstrap, copy)

    def counts(self, begin: int, end: int) -> tuple[int, Any]:
        """The status and the document, from a second since 1970 to another."""
        config = self.folder / f"{self.topic}.toml"
        config.write_text(
            f'[daemon]\nstate_dir = "{self.folder / self.topic}"\n'
            f'[kafka]\nbootstrap.servers = "{self.bootstrap}"\n'
            '[sink.copy]\nkind = "sqlite"\npath = "x.db"\n'
            f'[pipeline.p]\ntopics = ["{self.topic}"]\nformat = "debezium-json"\n'
            'target = "copy.{database}.{table}"\ninclude = ["*.t", "*.u"]\n'
        )
        span = [datetime.fromtimestamp(at, UTC).isoformat() for at in (begin, end)]
        words = ("counts", "--from", span[0], "--to", span[1], "--json", "-c", str(config))
        done = CliRunner().invoke(app, words)
        assert done.stdout, done.stderr
        return done.exit_code, json.loads(done.stdout)


def is_row(record: dict[str, Any], table: str, op: str) -> bool:
    """Whether it is a change of a table."""
    return record.get("op") == op and record["source"].get("table") == table


def test_a_message_of_mariadb_that_is_left_out_is_named(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """Its table, minute and transaction. The topic itself agrees; a changed key, a truncation and
    a table that no route takes make no difference."""
    mariadbs.made(mariadb, name)
    base = int(datetime.now(UTC).timestamp()) // 60 * 60 - 3600
    assert not mariadb.run([
        f"CREATE TABLE {name}.u (id INT PRIMARY KEY, v INT)",
        f"CREATE TABLE {name}.other (id INT PRIMARY KEY)",
    ])  # fmt: skip
    with running(tmp_path, broker, mariadbs.source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        insert = f"INSERT INTO {name}.t VALUES"
        for statements in (
            [f"SET TIMESTAMP={base - 600}", f"{insert} (1, 1)"],
            [f"SET TIMESTAMP={base + 30}", "BEGIN", f"{insert} (2, 2)", f"{insert} (3, 3)",
             f"INSERT INTO {name}.u VALUES (1, 1)", f"INSERT INTO {name}.other VALUES (1)",
             f"UPDATE {name}.t SET id = 9 WHERE id = 2", "COMMIT"],
            [f"SET TIMESTAMP={base + 70}", f"DELETE FROM {name}.t WHERE id = 9"],
            [f"SET TIMESTAMP={base + 80}", f"TRUNCATE {name}.u"],
            [f"SET TIMESTAMP={base + 3000}", f"{insert} (8, 8)"],
        ):  # fmt: skip
            assert not mariadb.run(statements)
        it.until("running", lambda f: ends(broker, name) >= 4)
    log = Log(tmp_path, broker.bootstrap, name)
    status, found = log.counts(base, base + 120)
    assert (status, found["transactions"]) == (0, [])
    assert numbers(found, f"copy.{name}.t") == {0: (2, 1, 0, 3), 1: (0, 0, 1, 1)}
    assert numbers(found, f"copy.{name}.u") == {0: (1, 0, 0, 1)}
    left = iter([False])
    lacks = log.copied(lambda one: not is_row(one, "u", "c") or next(left, True))
    status, found = lacks.counts(base, base + 120)
    assert status == 1
    (one,) = found["transactions"]
    assert (one["minute"], one["source_table"]) == (base // 60, f"{name}.u")
    assert one["transaction"].startswith("0-")
    assert (one["expected"], one["found"]) == (1, 0)
    assert found["tables"][f"copy.{name}.t"]["verdict"] == "agrees"


def test_a_message_of_postgresql_that_is_left_out_is_named(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """Its transactions have another name in each record; a message and a truncation are among the
    END's numbers. The collector's heartbeats tell that the range is over."""
    postgreses.made(postgres, name)
    assert not postgres.run(name, ["CREATE TABLE u (id int PRIMARY KEY, v int)"])
    with running(tmp_path, broker, postgreses.source(postgres, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not postgres.run(name, [
            "BEGIN", "INSERT INTO t VALUES (1, 1)", "INSERT INTO u VALUES (1, 1)",
            "UPDATE t SET id = 5 WHERE id = 1", "SELECT pg_logical_emit_message(true, 'x', 'y')",
            "UPDATE u SET v = 5", "DELETE FROM t WHERE id = 0", "TRUNCATE u", "COMMIT",
        ])  # fmt: skip
        now = int(datetime.now(UTC).timestamp())
        end = now // 60 * 60 + 60
        it.until("running", lambda f: latest_s(broker, name) > end + 1)
    log = Log(tmp_path, broker.bootstrap, name)
    status, found = log.counts(end - 180, end)
    assert (status, found["transactions"]) == (0, [])
    assert sum_of(found, "copy.public.t") == (1, 1, 1, 3)
    assert sum_of(found, "copy.public.u")[:3] == (1, 1, 0)
    lacks = log.copied(lambda one: not is_row(one, "t", "d") or one["before"]["id"] != 0)
    status, found = lacks.counts(end - 180, end)
    (one,) = found["transactions"]
    assert (status, one["source_table"], one["expected"], one["found"]) == (1, "public.t", 4, 3)
    assert one["minute"] in range((end - 180) // 60, end // 60)
    assert one["transaction"].isdecimal()


def test_a_reader_killed_inside_transactions_is_never_said_to_differ(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """Each change is there, whatever the ENDs say: they agree, or are not trusted."""
    mariadbs.made(mariadb, name)
    base = int(datetime.now(UTC).timestamp()) // 60 * 60 - 3600
    log = Log(tmp_path, broker.bootstrap, name)
    rows = f"INSERT INTO {name}.t SELECT seq, 1 FROM seq_{{}}_to_{{}}"
    with running(tmp_path, broker, mariadbs.source(mariadb), f"{name}.t", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not mariadb.run([f"USE {name}", f"SET TIMESTAMP={base - 600}", rows.format(1, 1)])
        for turn in range(3):
            begin, starts = turn * ROWS + 2, it.keeper.figures()[0].starts
            insert, at = rows.format(begin, begin + ROWS - 1), log.end()
            assert not mariadb.run([f"USE {name}", f"SET TIMESTAMP={base + turn}", insert])
            it.until("running", lambda f, n=at: log.end() > n + 1000)
            it.kill_worker()
            it.until("running", lambda f, n=starts: it.keeper.figures()[0].starts > n)
        last = rows.format(900_000, 900_000)
        assert not mariadb.run([f"USE {name}", f"SET TIMESTAMP={base + 3000}", last])
        it.until("running", lambda f: log.ids_of_last() >= {900_000}, within_s=200)
    status, found = log.counts(base, base + 60)
    ((total, *_),) = numbers(found, f"copy.{name}.t").values()
    assert (found["transactions"], total, found["repeated"]) == ([], 3 * ROWS, {})
    assert status in (0, 2)
    told = found["tables"][f"copy.{name}.t"]
    assert status == 0 or any("END" in why for why in told["why"]), told


def ends(broker: DevBroker, topic: str) -> int:
    """The transactions that ended with changes."""
    return sum(bool(each.get("event_count")) for each in records(broker, topic))


def latest_s(broker: DevBroker, topic: str) -> float:
    """The latest time of the source, in seconds since 1970."""
    told = (each["source"]["ts_ms"] for each in records(broker, topic) if "op" in each)
    return max(told, default=0) / 1000


def numbers(found: Any, table: str) -> dict[int, tuple[int, int, int, int | None]]:
    """By minute of the range: inserted, updated, deleted, expected."""
    return {
        each["minute"] - found["from_ms"] // 60_000: (
            each["inserted"], each["updated"], each["deleted"], each["expected"],
        )
        for each in found["counts"]
        if each["table"] == table
    }  # fmt: skip


def sum_of(found: Any, table: str) -> tuple[int, int, int, int | None]:
    each = found["tables"][table]
    return each["inserted"], each["updated"], each["deleted"], each["expected"]
