"""Collectors of a real MariaDB, by a real worker: what happens to them, and what is told."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from collector import kept_connector
from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from tests.collector.running import Running, records, rows, running

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


def source(mariadb: MariaDb, password: str = "first") -> str:
    return f'url = "mariadb://127.0.0.1:{mariadb.port}/"\nuser = "reader"\npassword = "{password}"'


def made(mariadb: MariaDb, name: str) -> None:
    assert not mariadb.run([
        f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {name}.t VALUES (0, 0)",
    ])  # fmt: skip


def test_changes_reach_one_topic_and_its_rows_before_do_not(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """In the source's order, between their transaction's boundaries; the password is nowhere."""
    made(mariadb, name)
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        insert = [f"INSERT INTO {name}.t VALUES ({n}, {n})" for n in (1, 2)]
        assert not mariadb.run(["BEGIN", *insert, "COMMIT"])
        it.until("running", lambda f: len(rows(broker, name, "t")) == 2)
        status = [one for one in records(broker, name) if "op" in one or "status" in one]
        told = [one.get("status") or one["after"]["id"] for one in status]
        assert told[told.index(1) - 1 : told.index(1) + 3] == ["BEGIN", 1, 2, "END"]
        config = it.rest.config("binlogd-shop")
        assert "first" not in str(config)
        assert config["database.password"].startswith("${file:")
        secret = tmp_path / "state" / "connect" / "secrets" / "shop.properties"
        assert secret.stat().st_mode & 0o777 == 0o600


def test_a_killed_worker_is_replaced_and_each_row_is_there_once(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """The topic itself, read committed, has each transaction's rows once and in order."""
    made(mariadb, name)
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        count = 0
        for _ in range(3):
            for _ in range(40):
                count += 1
                assert not mariadb.run(["BEGIN", f"INSERT INTO {name}.t VALUES ({2 * count}, 1)",
                    f"INSERT INTO {name}.t VALUES ({2 * count + 1}, 1)", "COMMIT"])  # fmt: skip
                if count % 40 == 20:
                    starts = it.keeper.figures()[0].starts
                    it.kill_worker()
            it.until("running", lambda f, n=starts: it.keeper.figures()[0].starts > n)
        assert not mariadb.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
        it.until(
            "running", lambda _: [o["after"]["id"] for o in rows(broker, name, "t")[-1:]] == [1]
        )
        ids = [one["after"]["id"] for one in rows(broker, name, "t")]
        assert ids == [*range(2, 2 * count + 2), 1]


def test_a_connector_edited_by_hand_is_put_right_and_told(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """By the names of the options; it goes on."""
    made(mariadb, name)
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        wanted = it.rest.config("binlogd-shop")
        it.rest.put_config("binlogd-shop", wanted | {"skipped.operations": "d", "more": "x"})
        found = it.until("running", lambda f: bool(f["edited"]))
        assert found["edited"] == ["more", "skipped.operations"]
        it.until("running", lambda _: it.rest.config("binlogd-shop") == wanted)


def test_a_log_purged_while_it_slept_stops_it_by_name(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """It stays stopped; a new position is taken when asked, and then its tables are loaded."""
    made(mariadb, name)
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        shop = it.collectors.of("shop")
        assert shop is not None
        shop.hands.pause()
        it.until("paused")
        purge(mariadb, name)
        found = it.until("lost")
        assert "is purged" in found["reason"]
        assert found["tables"] == [f"{name}.*"]
        it.until("lost", lambda f: it.rest.state("binlogd-shop").connector == "STOPPED")
        shop.hands.reset()
        it.until("running", lambda f: bool(it.loads))
        assert it.loads == [(f"{name}.*",)]
        assert not mariadb.run([f"INSERT INTO {name}.t VALUES (9, 9)"])
        it.until("running", lambda f: rows(broker, name, "t")[-1:] != [])
        assert [one["after"]["id"] for one in rows(broker, name, "t")] == [9]


def purge(mariadb: MariaDb, name: str) -> None:
    """Write a change that nobody has read, and remove the file that has it."""
    assert not mariadb.run([
        f"INSERT INTO {name}.t VALUES (5, 5)", "FLUSH BINARY LOGS",
        f"INSERT INTO {name}.t VALUES (6, 6)", "FLUSH BINARY LOGS",
    ])  # fmt: skip
    last = mariadb.ask("SHOW BINARY LOGS").rows[-1][0]
    for _ in range(100):
        # Connections of workers that are gone, which the server has not noticed, hold files.
        for (reader,) in mariadb.ask(_READERS).rows:
            mariadb.run([f"KILL {reader}"])
        assert not mariadb.run([f"PURGE BINARY LOGS TO '{last}'"])
        if mariadb.ask("SHOW BINARY LOGS").rows[0][0] == last:
            return
        Event().wait(0.1)
    raise AssertionError(mariadb.ask("SHOW PROCESSLIST").rows)


_READERS = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog%'"


def test_two_collectors_of_one_source_are_told_by_name(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """A second daemon's worker is not started beside the first; by another group both meet at
    the server, where one number is one reader's."""
    made(mariadb, name)
    with running(tmp_path / "a", broker, source(mariadb), f"{name}.*", topic=name) as one:
        one.until("running", lambda f: bool(f["position"]))
        with running(tmp_path / "b", broker, source(mariadb), f"{name}.*", topic=name) as two:
            why = two.until(None, lambda f: two.keeper.figures()[0].state == "down")
            assert why["state"] == "waiting"
            assert "has a member already" in str(two.keeper.figures()[0].why)
        with running(
            tmp_path / "c", broker, source(mariadb), f"{name}.*", topic=name, group=f"{name}-c"
        ) as two:
            said = "another reader of the server has this collector's server_id"
            deadline = monotonic() + 120
            while not any(said in each.figures()["reason"] for each in (one, two)):
                assert monotonic() < deadline, (one.figures(), two.figures())
                one.collectors.look_now()
                two.collectors.look_now()
                Event().wait(0.2)


def test_a_lost_position_loads_by_choice(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """Without anybody: it begins at the present, and its tables are to be loaded."""
    made(mariadb, name)
    chosen = 'on_lost_position = "load"'
    with running(tmp_path, broker, source(mariadb), f"{name}.*", chosen, topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        shop = it.collectors.of("shop")
        assert shop is not None
        shop.hands.pause()
        it.until("paused")
        purge(mariadb, name)
        it.until("running", lambda f: it.loads == [(f"{name}.*",)])


def test_a_rotated_password_is_taken(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """The connector is told by name that its login is refused, and goes on with the new one."""
    made(mariadb, name)
    assert not mariadb.run([
        f"CREATE USER {name}@'%' IDENTIFIED BY 'old-word'", f"GRANT ALL ON *.* TO {name}@'%'",
    ])  # fmt: skip
    login = source(mariadb, "old-word").replace('"reader"', f'"{name}"')
    with running(tmp_path, broker, login, f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        _rotate(it, mariadb, name)
        assert not mariadb.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
        it.until("running", lambda f: rows(broker, name, "t")[-1:] != [])


def _rotate(it: Running, mariadb: MariaDb, name: str) -> None:
    assert not mariadb.run([f"ALTER USER {name}@'%' IDENTIFIED BY 'new-word'"])
    section = it.config.database["shop"].model_copy(update={"password": "new-word"})
    it.config.database["shop"] = section  # as the file's reference gives it then


def test_a_removal_that_was_cut_short_is_carried_to_its_end(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """It was written down, and Connect did not answer then: nothing reads on behind "removed"."""
    made(mariadb, name)
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        shop = it.collectors.of("shop")
        assert shop is not None
        with shop.hands.lock:
            shop.hands.memory.note(removed="by hand")
        it.until("removed", lambda f: it.rest.config("binlogd-shop") is None)
        shop.hands.resume()
        it.until("running", lambda f: bool(f["position"]))
        assert it.loads == [(f"{name}.*",)]


def test_a_topic_that_was_given_partitions_is_written_no_more(
    tmp_path: Path,
    broker: DevBroker,
    mariadb: MariaDb,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By their keys rows would go to others, past those that are read later."""
    monkeypatch.setattr(kept_connector, "TOPICS_EVERY_S", 1.0)
    made(mariadb, name)
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_partitions([NewPartitions(name, 3)])[name].result(30)
        found = it.until("unfit", lambda _: it.rest.state("binlogd-shop").connector == "STOPPED")
        assert f"topic {name!r} has 3 partitions" in found["reason"]
