"""Verification of a running daemon's tables for two minutes (``VERIFY_FOR_S``), at 500 changes a
second: none of the rows on their way is told as different, and each that is planted is."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from demo.broker import DevBroker
from demo.lake import embedded, open_session
from demo.load.daemon import Daemon, write_config
from demo.load.mariadb import mariadb
from demo.load.shop import DATABASE, TABLES, Changes, create
from demo.produce import create_topic
from tests.needs import needed

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

ROWS = 80_000
FOR_S = float(os.environ.get("VERIFY_FOR_S", "120"))


def test_no_row_on_its_way_is_told_as_different(tmp_path: Path) -> None:
    """All tables, over and over, while all of them change. Then two rows that the source has not,
    which are told alone, beside the changes."""
    with DevBroker(tmp_path / "broker") as broker, needed(), mariadb(tmp_path / "m") as server:
        create_topic(broker.bootstrap, "shop")
        create(server, ROWS)
        config = write_config(tmp_path, server.port)
        changes = Changes(server, broker.bootstrap, "shop", ROWS, 7)
        changes.per_s = 500.0
        changes.start()
        with Daemon(tmp_path, config, broker.bootstrap) as daemon:
            daemon.start()
            tables = [f"{DATABASE}.{table}" for table in TABLES]
            daemon.await_job(daemon.begin_load(tables))
            end, runs = time.monotonic() + FOR_S, 0
            while runs == 0 or time.monotonic() < end:
                result = daemon.verified(f"lake.{DATABASE}.*")
                assert result["differing"] == 0, result
                assert result["skipped"] == 0, result
                runs += 1
            session = open_session(tmp_path, embedded(tmp_path))
            place = f"lake.{DATABASE}"
            session.sql(f"INSERT INTO {place}.orders_0 (id, name) VALUES (-7, 'nobody')")
            session.sql(f"INSERT INTO {place}.codes (code, name) VALUES ('None', 'nobody')")
            session.stop()
            result = daemon.verified(f"lake.{DATABASE}.*")
            found = [row["key"] for one in result["tables"] for row in one["rows_that_differ"]]
            assert sorted(found, key=str) == [{"code": "None"}, {"id": "-7"}]
        assert changes.stop() > 500
