"""``binlogd reload`` while a table is loaded: the load goes on, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.operations.engine.record import Job, State
from tests.databases.base.conftest import folder
from tests.databases.base.servers import Server, mariadb
from tests.integration.loads.copies import selected, write_config
from tests.integration.rig import Rig, canal
from tests.integration.test_load import ROWS, Life, Writer, in_source, prepared
from tests.integration.test_process import run
from tests.needs import needed

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with folder() as where, needed(), mariadb(where / "mariadb") as started:
        yield started


def next_of(job: Job, target: str) -> int:
    """The first range that is not written."""
    return int(job.memory.get("targets", {}).get(target, {}).get("next", 0))


def reloaded(life: Life, config: Path, text: str, target: str) -> None:
    """Take this configuration, while rows are read: the next range is written behind that."""
    before = next_of(life.jobs()[-1], target)
    config.write_text(text)
    status, said = run("reload", "--config", str(config))
    assert status == 0, said
    life.await_job("a range more", lambda job: next_of(job, target) > before)


def begun(rig: Rig, config: Path, writer: Writer, target: str) -> Life:
    """A daemon, and a load of which two ranges are written, beside changes."""
    rig.produce(canal(f"{rig.db}.other", "INSERT", [{"id": 1, "name": "x", "qty": 1}]))
    life = Life(rig, config)
    writer.start()
    status, said = run("tables", "load", f"{rig.db}.orders", "--config", str(config))
    assert status == 0, said
    life.await_job("rows", lambda job: next_of(job, target) >= 2)
    return life


def ended(rig: Rig, server: Server, life: Life, config: Path, writer: Writer) -> int:
    """The load is done, and the table is equal; how many tables were begun for it."""
    job = life.await_job("its end", lambda job: job.state.is_final)
    assert job.state is State.DONE, job.message
    writer.stop()
    rig.produce(canal(f"{rig.db}.other", "INSERT", [{"id": 2, "name": "end", "qty": 1}]))
    life.stop()
    status, said = run("run", "--until-caught-up", "--config", str(config))
    assert status == 0, said
    wanted = f"SELECT id, name, qty FROM {rig.db}_copy.orders ORDER BY id"
    assert selected(server, wanted) == in_source(rig, server)
    return len({event["into"] for event in rig.events("rebuilding")})


def test_a_load_goes_on_through_reloads(rig: Rig, server: Server) -> None:
    """Twice while rows are read: a table less, a quota. The same attempt goes on with the next
    range, and the table is equal. A configuration in which no route leads to the table is refused.
    """
    prepared(rig, server)
    config = write_config(rig, server, chunk_rows=2000, rows_per_s=3000)
    target, text = f"copy.{rig.db}_copy.orders", config.read_text()
    writer = Writer(rig, server, per_s=100)
    life = begun(rig, config, writer, target)
    route, named = f'tables = ["{rig.db}.*"]', 'database = "shop"\n'
    config.write_text(text.replace(route, f'tables = ["{rig.db}.other"]'))
    status, said = run("reload", "--config", str(config))
    assert (status, target in said) == (2, True), said
    reloaded(life, config, text + f'exclude = ["{rig.db}.none"]\n', target)
    slower = named + "quota = { messages_per_s = 5000 }\n"
    reloaded(life, config, text.replace(named, slower), target)
    assert next_of(life.jobs()[-1], target) < ROWS // 2000, "it was read before the reloads"
    assert ended(rig, server, life, config, writer) == 1
    assert len(rig.events("reloaded")) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [('drop_columns = ["qty"]\n', ""), ('database = "shop"\n', 'database = "second"\n')],
    ids=["a column more", "another database"],
)
def test_a_load_begins_again_where_its_rows_come_otherwise(
    before: str, after: str, rig: Rig, server: Server
) -> None:
    """Rows that were read before would lack the column. Another database may be behind, which was
    looked at of the first one alone."""
    prepared(rig, server)
    shape = (before.strip(),) if "drop" in before else ()
    config = write_config(rig, server, *shape, chunk_rows=2000, rows_per_s=5000)
    text = config.read_text()
    section = text[text.index("[database.shop]") : text.index("[load]")]
    text = section.replace("shop", "second") + text
    config.write_text(text)
    writer = Writer(rig, server, per_s=100)
    life = begun(rig, config, writer, f"copy.{rig.db}_copy.orders")
    assert text.count(before) == 1
    config.write_text(text.replace(before, after))
    status, said = run("reload", "--config", str(config))
    assert status == 0, said
    assert ended(rig, server, life, config, writer) == 2
