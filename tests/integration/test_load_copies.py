"""A table is filled in a database by a daemon without Spark, in the shape of its route, beside a
stream of changes; then both are compared by the running daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.operations.engine.record import State
from tests.databases.base.conftest import folder
from tests.databases.base.servers import Server, mariadb
from tests.integration.loads.copies import selected, write_config
from tests.integration.rig import Rig, canal
from tests.integration.test_load import ROWS, Life, Writer, in_source, prepared
from tests.integration.test_process import daemon, run
from tests.needs import needed

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with folder() as where, needed(), mariadb(where / "mariadb") as started:
        yield started


def config_of(rig: Rig, server: Server) -> Path:
    """The source's table with its rows; the target is another schema of its server."""
    prepared(rig, server)
    shape = (
        'filter = "qty IS NOT NULL AND id % 3 <> 0"',
        'mask = { name = "keep_last(2)" }',
        'rename = { id = "number" }',
    )
    return write_config(rig, server, *shape)


def shown(row: tuple[Any, ...]) -> tuple[Any, ...]:
    number, name, qty = row
    length = len(name)
    hidden = "*" * (length - 2) + name[-2:] if length > 2 else "*" * length
    return number, hidden, qty


def in_target(rig: Rig, server: Server) -> list[tuple[Any, ...]]:
    wanted = f"SELECT number, name, qty FROM {rig.db}_copy.orders ORDER BY number"
    return selected(server, wanted)


def verified(config: Path, rig: Rig, *more: str) -> tuple[int, dict[str, Any]]:
    words = ("tables", "verify", f"copy.{rig.db}_copy.orders", "--json", *more)
    process = daemon(*words, "--config", str(config))
    printed, said = process.communicate(timeout=200)
    assert printed, said
    return process.returncode, json.loads(printed)[0]["tables"][0]


def is_equal(table: dict[str, Any]) -> bool:
    """But for the row that the writer changes all the time."""
    hot = [each["key"] for each in table["undecided"]]
    return not table["skipped"] and not table["differing"] and hot in ([], [["1"]])


def test_a_shaped_copy_is_loaded_beside_changes_and_compared(rig: Rig, server: Server) -> None:
    """A kill while rows are read; then equal to the route of the source's table, told as equal
    while both change, and a planted difference is found and repaired."""
    config = config_of(rig, server)
    writer = Writer(rig, server, per_s=100)
    rig.produce(canal(f"{rig.db}.other", "INSERT", [{"id": 1, "name": "x", "qty": 1}]))
    life = Life(rig, config)
    writer.start()
    status, said = run("tables", "load", f"{rig.db}.orders", "--config", str(config))
    assert status == 0, said
    target = f"copy.{rig.db}_copy.orders"
    life.await_job("rows", lambda job: job.memory.get("targets", {}).get(target, {}).get("next"))
    life.kill()
    job = life.await_job("done", lambda job: job.state.is_final)
    assert job.state is State.DONE, job.message
    _, table = verified(config, rig)
    assert is_equal(table), json.dumps(table)[:4000]
    server.run([f"INSERT INTO {rig.db}_copy.orders VALUES ({ROWS * 4 + 1}, 'x', 1)"])
    _, table = verified(config, rig, "--repair")
    assert [row["what"] for row in table["rows_that_differ"]] == ["extra"], table
    _, table = verified(config, rig)
    assert is_equal(table), json.dumps(table)[:4000]
    writer.stop()
    rig.produce(canal(f"{rig.db}.other", "INSERT", [{"id": 2, "name": "end", "qty": 1}]))
    life.stop()
    status, said = run("run", "--until-caught-up", "--config", str(config))
    assert status == 0, said
    wanted = [shown(row) for row in in_source(rig, server) if row[2] is not None and row[0] % 3]
    assert in_target(rig, server) == wanted
