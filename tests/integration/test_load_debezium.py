"""Tables are filled from PostgreSQL and MySQL 9 beside Debezium's stream of them, all of it real:
``kill -9`` of the daemon while rows are read and while the stream is applied over them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.operations.engine.record import State
from tests.databases.base.conftest import folder
from tests.databases.base.servers import SERVERS, Server, within
from tests.integration.debezium_source import Shop, debezium, section
from tests.integration.rig import Rig
from tests.integration.test_load import Life, again, next_of
from tests.integration.test_process import run
from tests.needs import needed

pytestmark = pytest.mark.timeout(900)

ROWS = 60_000


@pytest.fixture(params=["postgresql", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with folder() as where, needed(), SERVERS[request.param](where / request.param) as started:
        yield started


def configured(rig: Rig, server: Server, margin_s: float = 3.0) -> Path:
    """A configuration that names the database."""
    config = rig.write_config(p=rig.pipeline(database="shop", format="debezium-json"))
    lines = [f"{key} = {json.dumps(value)}" for key, value in section(server).items()]
    text = ["[database.shop]", *lines, "[load]", f"margin_s = {margin_s}", "chunk_rows = 5000"]
    config.write_text("\n".join(text) + "\n" + config.read_text())
    return config


def has(rig: Rig, key: int) -> bool:
    """Whether the target has it, and so all that is before it in the log."""
    return bool(rig.spark.sql(f"SELECT 1 FROM lake.{rig.db}.orders WHERE id = {key}").collect())


@pytest.mark.long
@pytest.mark.parametrize("server", ["postgresql", "mysql", "mariadb"], indirect=True)
def test_a_load_beside_debezium_waits_for_positions_alone(
    rig: Rig, server: Server, tmp_path: Path
) -> None:
    """The margin would be longer than the test may take."""
    shop = Shop(server, rig.db, ROWS, per_s=200)
    config = configured(rig, server, margin_s=900.0)
    with debezium(server, rig.db, rig.topic, tmp_path / "connect", rig.broker.bootstrap):
        shop.start()
        life = Life(rig, config)
        within(120, lambda: rig.log_ends(rig.topic).get(f"{rig.topic}:0", 0) > 100)
        status, said = run("tables", "load", f"{rig.db}.orders", "--config", str(config))
        assert status == 0, said
        job = life.await_job("its end", lambda job: job.state.is_final)
        assert job.state is State.DONE, job.message
        shop.stop()
        within(120, lambda: has(rig, -1))
        life.stop()
    assert rig.rows("orders") == shop.rows()


@pytest.mark.soak
def test_a_load_with_kills_and_a_statement_beside_debezium_is_equal(
    rig: Rig, server: Server, tmp_path: Path
) -> None:
    """A column is added amid it, of which PostgreSQL's log does not tell: it begins again by
    itself."""
    shop = Shop(server, rig.db, ROWS, per_s=200)
    config = configured(rig, server)
    with debezium(server, rig.db, rig.topic, tmp_path / "connect", rig.broker.bootstrap):
        shop.start()
        life = Life(rig, config)
        status, said = run("tables", "load", f"{rig.db}.orders", "--config", str(config))
        assert status == 0, said
        life.await_job("rows", lambda job: next_of(job, rig) >= 2)
        life.kill()
        life.await_job("more rows", lambda job: next_of(job, rig) >= 4)
        shop.execute(f"ALTER TABLE {shop.table} ADD COLUMN more VARCHAR(20) DEFAULT 'd'")
        life.await_job("another attempt", lambda job: again(job, rig))
        life.await_job("rows again", lambda job: next_of(job, rig) >= 3)
        life.kill()
        job = life.await_job("its end", lambda job: job.state.is_final)
        assert job.state is State.DONE, job.message
        changes = shop.stop()
        within(120, lambda: has(rig, -1))
        life.stop()
    assert changes > 1000
    assert rig.rows("orders") == shop.rows()
    assert not rig.snapshot().rebuilds
