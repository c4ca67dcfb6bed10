"""A Connect cluster that exists and can't be reached for a while."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from collector.connect.worker import ConnectWorker
from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from tests.collector.running import rows, running
from tests.collector.sources.test_mariadb import made, source
from tests.collector.sources.test_mysql import cluster
from tests.lake.faults.wire import Wire

__all__ = ["cluster"]
pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]


def test_a_cluster_that_can_not_be_reached(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str, cluster: ConnectWorker
) -> None:
    """It is said by its address, and its connector reads on. What somebody changed there meanwhile
    is put right, and said."""
    made(mariadb, name)
    rest = cluster.rest
    assert rest is not None
    path = tmp_path / "theirs" / "connect" / "secrets" / "shop.properties"
    with Wire(urlsplit(rest.url).port or 0) as wire:
        adopted = (
            f'connect = "http://127.0.0.1:{wire.port}"\nconnect_auth = "{rest.auth}"\n'
            f'references = {{ "database.password" = "file:{path}:password" }}'
        )
        with running(tmp_path, broker, source(mariadb), f"{name}.*", adopted, topic=name) as it:
            it.until("running", lambda f: bool(f["position"]))
            wire.refuse = True
            found = it.until("away")
            assert f"Connect at http://127.0.0.1:{wire.port} does not answer" in found["reason"]
            assert not mariadb.run([f"INSERT INTO {name}.t VALUES (1, 1)"])
            it.until("away", lambda _: len(rows(broker, name, "t")) == 1)
            config = rest.config("binlogd-shop")
            assert config is not None
            rest.put_config("binlogd-shop", config | {"skipped.operations": "d"})
            wire.refuse = False
            found = it.until("running", lambda f: bool(f["edited"]))
            assert found["edited"] == ["skipped.operations"]

            def deletes(_: object) -> bool:
                """What comes before its tasks have started anew is skipped by the old ones."""
                more = f"INSERT INTO {name}.t VALUES (2, 2)", f"DELETE FROM {name}.t WHERE id = 2"
                assert not mariadb.run([*more])
                return any(row["op"] == "d" for row in rows(broker, name, "t"))

            it.until("running", deletes)
