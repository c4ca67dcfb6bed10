"""``tables verify --cut``: a busy database's tables compared as they were at one of its moments."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from demo.broker import DevBroker
from demo.lake import embedded, open_session
from demo.load.daemon import Daemon, write_config
from demo.load.mariadb import mariadb
from demo.load.shop import DATABASE, TABLES, Changes, create
from demo.produce import create_topic
from tests.needs import needed

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

ROWS = 8_000
PLACE = f"lake.{DATABASE}"


def newest(daemon: Daemon, above: int = 0) -> int:
    """The newest cut once there is one above that number."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found: Any = daemon.asked("cuts", "list", "--json", check=False)
        if found and found[0]["number"] > above and not found[0]["left_out"]:
            return int(found[0]["number"])
        time.sleep(1.0)
    raise AssertionError("no cut is made")


def test_what_is_wrong_in_a_cut_is_told_while_all_tables_change(tmp_path: Path) -> None:
    """And a cut from before it was planted stays equal."""
    with DevBroker(tmp_path / "broker") as broker, needed(), mariadb(tmp_path / "m") as server:
        create_topic(broker.bootstrap, "shop")
        create(server, ROWS)
        config = write_config(tmp_path, server.port)
        head = "[pipeline.shop]\n"
        config.write_text(config.read_text().replace(head, f'{head}cut_every = "2s"\n'))
        changes = Changes(server, broker.bootstrap, "shop", ROWS, 7)
        changes.per_s = 100.0
        changes.start()
        with Daemon(tmp_path, config, broker.bootstrap) as daemon:
            daemon.start()
            loaded = daemon.begin_load([f"{DATABASE}.{table}" for table in TABLES])
            daemon.await_job(loaded)
            before = newest(daemon, newest(daemon))
            session = open_session(tmp_path, embedded(tmp_path))
            session.sql(f"INSERT INTO {PLACE}.orders_0 (id, name) VALUES (-7, 'nobody')")
            session.stop()
            after = newest(daemon, newest(daemon, before))
            result = daemon.verified(f"{PLACE}.orders_[01]", "--cut", str(before))
            assert (result["differing"], result["undecided"]) == (0, 0), result
            assert result["cut"]["number"] == before
            result = daemon.verified(f"{PLACE}.orders_0", "--cut", str(after))
            found = [row["key"] for one in result["tables"] for row in one["rows_that_differ"]]
            assert found == [{"id": "-7"}]
            assert sum(one["changed_since"] for one in result["tables"]) > 0
        assert changes.stop() > 100
