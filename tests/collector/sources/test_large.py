"""Large rows, by the worker's default heap."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.broker import DevBroker
from demo.servers.postgres import Postgres
from tests.collector.running import rows, running
from tests.collector.sources.test_postgres import made, source

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


def test_a_row_of_20_mb_before_and_after(
    tmp_path: Path, broker: DevBroker, postgres: Postgres, name: str
) -> None:
    """Both images in one record, by the worker's default heap, which does not end by it."""
    made(postgres, name)
    with running(tmp_path, broker, source(postgres, name), "public.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        assert not postgres.run(name, [
            "CREATE TABLE big (id int PRIMARY KEY, v text)",
            "ALTER TABLE big REPLICA IDENTITY FULL",
        ])  # fmt: skip
        it.until("running", lambda f: bool(it.loads))
        assert not postgres.run(name, [
            "INSERT INTO big VALUES (1, repeat('a', 20000000))",
            "UPDATE big SET v = repeat('b', 20000000)", "INSERT INTO t VALUES (1, 1)",
        ])  # fmt: skip
        it.until("running", lambda f: bool(rows(broker, name, "t")), 100)
        found = rows(broker, name, "big")
        assert [len(one["after"]["v"]) for one in found] == [20_000_000] * 2
        assert len(found[1]["before"]["v"]) == 20_000_000
        assert it.keeper.figures()[0].starts == 1
