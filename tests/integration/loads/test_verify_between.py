"""``tables verify --between``: a lake and a database, filled by two pipelines from one topic."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from demo.broker import DevBroker
from demo.lake import embedded, open_session
from demo.load.daemon import FINAL, Daemon, write_config
from demo.load.mariadb import MariaDb, mariadb
from demo.load.shop import DATABASE, TABLES, Changes, create
from demo.produce import create_topic
from tests.needs import needed

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

ROWS = 8_000
LAKE, COPY = f"lake.{DATABASE}", f"copy.{DATABASE}_copy"

COPIES = """
[sink.copy]
kind = "jdbc"
url = "jdbc:mariadb://127.0.0.1:{port}/"
user = "copier"
password = "copier"

[pipeline.copies]
topics = ["shop"]
format = "canal-json"
start = "earliest"
exclude = ["*.beat"]
target = "copy.{{database}}_copy.{{table}}"
database = "shop"

[pipeline.copies.verify]
margin_s = 2.0
wait_s = 5.0
"""


def configured(folder: Path, server: MariaDb) -> Path:
    """Two pipelines over one topic; the lake's makes cuts."""
    server.run("CREATE USER copier@'%' IDENTIFIED BY 'copier'")
    server.run("GRANT ALL ON *.* TO copier@'%'")
    config = write_config(folder, server.port)
    head = "[pipeline.shop]\n"
    text = config.read_text().replace(head, f'{head}cut_every = "2s"\n')
    config.write_text(text + COPIES.format(port=server.port))
    return config


def load(daemon: Daemon) -> None:
    """Fill both sinks from the source, beside the stream."""
    daemon.asked("tables", "load", *(f"{DATABASE}.{table}" for table in TABLES))
    end = time.monotonic() + 300
    while time.monotonic() < end:
        jobs: Any = daemon.asked("jobs", "list", "--json")
        if all(job["state"] in FINAL for job in jobs):
            assert {job["state"] for job in jobs} == {"done"}, jobs
            return
        threading.Event().wait(1.0)
    raise AssertionError("the loads do not end")


def newest(daemon: Daemon) -> int:
    """The newest cut, once there is one."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found: Any = daemon.asked("cuts", "list", "--json", check=False)
        if found and not found[0]["left_out"]:
            return int(found[0]["number"])
        threading.Event().wait(1.0)
    raise AssertionError("no cut is made")


def between(daemon: Daemon, first: str, second: str, *options: str) -> dict[str, Any]:
    return daemon.verified(first, second, "--between", *options)


def told(result: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    return [
        (one["target"], row["key"]) for one in result["tables"] for row in one["rows_that_differ"]
    ]


def paused_since(daemon: Daemon, wanted: list[tuple[str, dict[str, str]]]) -> bool:
    """Compare with a paused target until rows have changed since: these alone are undecided."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        result = between(daemon, f"{LAKE}.orders_0", f"{COPY}.orders_0")
        assert told(result) == wanted
        whys = {each["why"] for one in result["tables"] for each in one["undecided"]}
        assert all("does not follow" in why for why in whys), whys
        if whys:
            return True
    return False


def test_two_sinks_are_compared_while_all_tables_change(tmp_path: Path) -> None:
    """None of the rows on their way is told, and each that is planted is: on either side, in a cut,
    and beside a target that is paused."""
    with DevBroker(tmp_path / "broker") as broker, needed(), mariadb(tmp_path / "m") as server:
        create_topic(broker.bootstrap, "shop")
        create(server, ROWS)
        config = configured(tmp_path, server)
        changes = Changes(server, broker.bootstrap, "shop", ROWS, 7)
        changes.per_s = 100.0
        changes.start()
        with Daemon(tmp_path, config, broker.bootstrap) as daemon:
            daemon.start()
            load(daemon)
            result = between(daemon, "lake", "copy")
            assert len(result["tables"]) == len(TABLES)
            assert (result["differing"], result["undecided"], result["skipped"]) == (0, 0, 0), (
                result
            )
            session = open_session(tmp_path, embedded(tmp_path))
            session.sql(f"INSERT INTO {LAKE}.orders_0 (id, name) VALUES (-7, 'nobody')")
            session.stop()
            server.run(f"DELETE FROM {DATABASE}_copy.orders_1 WHERE id = 5")
            wanted = [(f"{LAKE}.orders_0", {"id": "-7"}), (f"{LAKE}.orders_1", {"id": "5"})]
            assert told(between(daemon, "lake", "copy")) == wanted
            cut = newest(daemon)
            result = between(daemon, f"{LAKE}.orders_[01]", f"{COPY}.*", "--cut", str(cut))
            assert (told(result), result["cut"]["number"]) == (wanted, cut)
            daemon.asked("pause", f"{COPY}.orders_0")
            assert paused_since(daemon, wanted[:1])
        assert changes.stop() > 100
