"""Tables are filled from a replica that is behind: nothing that it lacks is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.operations.engine.record import State
from tests.databases.base.conftest import folder
from tests.databases.base.servers import PASSWORD, as_server, replicated, within
from tests.integration.rig import Rig, canal
from tests.integration.test_load import Life, Writer, in_source, next_of, prepared
from tests.integration.test_process import daemon, ended, run
from tests.live.mariadb import MariaDb
from tests.needs import needed

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

WAITS = "waits until the replica has applied mysql:2:"


def shown(config: Path) -> str:
    """What the jobs say."""
    command = [sys.executable, "-m", "daemon.cli", "jobs", "list", "--json", "--config", config]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def verified_behind(config: Path, life: Life, writer: Writer, replica: MariaDb) -> None:
    """A verification waits, too, and tells no row as different that the replica lacks."""
    assert replica.run(["STOP SLAVE SQL_THREAD"]) == ""
    changes = writer.changes
    within(60, lambda: writer.changes > changes + 300)
    verify = daemon("tables", "verify", "*.orders", "--config", str(config))
    within(60, lambda: WAITS in shown(config))
    assert replica.run(["START SLAVE SQL_THREAD"]) == ""
    status, said = ended(verify)
    (verified,) = life.jobs("verify")
    assert verified.result["differing"] == 0, (status, said, verified.result)
    assert verified.result["skipped"] == 0


def test_a_replica_that_is_behind_is_waited_for(rig: Rig) -> None:
    """It stands while the primary and the stream go on. What the stream has applied before the load
    begins comes in no message again: it must be in the rows."""
    with folder() as where, needed(), replicated(where) as (primary, replica):
        source, copy = as_server(primary), as_server(replica)
        config = prepared(rig, source, role="replica", primary="first")
        text = config.read_text().replace(str(source.port), str(copy.port))
        first = (
            f'[database.first]\nurl = "{source.section().url}"\nuser = "jobs"\n'
            f"password = {json.dumps(PASSWORD)}\n"
        )
        config.write_text(first + text)
        rig.produce(canal(f"{rig.db}.other", "INSERT", [{"id": 1, "name": "x", "qty": 1}]))
        life, writer = Life(rig, config), Writer(rig, source, per_s=100)
        behind = f"SELECT COUNT(*) FROM {rig.db}.orders"
        within(60, lambda: replica.ask(behind).rows == primary.ask(behind).rows)
        assert replica.run(["STOP SLAVE SQL_THREAD"]) == ""
        writer.start()
        within(60, lambda: writer.changes > 300)
        status, said = run("tables", "load", f"{rig.db}.orders", "--config", str(config))
        assert status == 0, said
        job = life.await_job("it waits", lambda job: WAITS in job.message)
        assert (job.state, next_of(job, rig)) == (State.WAITING, 0)
        assert replica.run(["START SLAVE SQL_THREAD"]) == ""
        job = life.await_job("its end", lambda job: job.state.is_final)
        assert job.state is State.DONE, job.message
        verified_behind(config, life, writer, replica)
        writer.stop()
        rig.produce(canal(f"{rig.db}.other", "INSERT", [{"id": 2, "name": "end", "qty": 1}]))
        life.stop()
        assert rig.run(config).value == 0
        assert rig.rows("orders") == in_source(rig, source)
