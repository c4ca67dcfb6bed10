"""A function that refuses to give a table another's name: its rebuild fails, and nothing else."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from daemon.operations.engine.record import State
from daemon.operations.engine.store import JobStore
from tests.integration.rig import Rig, canal
from tests.integration.test_process import Follower, ended, run
from tests.integration.test_sqlite_sink import start

FUNCTION = """
import json, pathlib

def kept(context):
    path = pathlib.Path(context.settings["file"])
    return path, json.loads(path.read_text()) if path.exists() else {}

def apply(batch, context):
    path, found = kept(context)
    rows = found.setdefault(context.table, {})
    for row in batch.read_all().to_pylist():
        rows[str(row["id"])] = row["name"]
    path.write_text(json.dumps(found))

def statement(context, kind, to):
    if kind == "rename":
        context.reject({}, "a name stays as it is")
    path, found = kept(context)
    found.pop(context.table, None)
    path.write_text(json.dumps(found))
"""


def write_config(rig: Rig) -> Path:
    """One table goes to the function, another one into a file of SQLite."""
    (rig.folder / "keeping.py").write_text(FUNCTION)
    lines = [
        "[daemon]", f'state_dir = "{rig.folder}/state"', f'staging_dir = "{rig.folder}/staging"',
        "commit_interval_s = 0.3",
        "[log]", 'format = "json"', f'file = "{rig.log_file}"', "[batch]", "max_age_s = 0.2",
        "[kafka]", f'"bootstrap.servers" = "{rig.broker.bootstrap}"',
        "[sink.kept]", 'kind = "python"', 'entry = "keeping:apply"', f'path = ["{rig.folder}"]',
        f'state = "{rig.folder}/kept"', "[sink.kept.settings]", f'file = "{rig.folder}/rows.json"',
        "[sink.copy]", 'kind = "sqlite"', f'path = "{rig.folder}/copy.db"',
        "[pipeline.p]", f'topics = ["{rig.topic}"]', 'format = "canal-json"',
        f'group = "g-{rig.db}"',
        "[[pipeline.p.route]]", f'tables = ["{rig.db}.orders"]',
        'target = "kept.{database}.{table}"',
        "[[pipeline.p.route]]", f'tables = ["{rig.db}.other"]',
        'target = "copy.{database}.{table}"',
    ]  # fmt: skip
    path = rig.folder / "config.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def produce(rig: Rig, number: int) -> None:
    """A row more in each table."""
    row = {"id": number, "name": f"n{number}", "qty": number}
    rig.produce(*(canal(f"{rig.db}.{table}", "INSERT", [row]) for table in ("orders", "other")))


def rows(rig: Rig, count: int) -> dict[str, dict[str, str]]:
    """What the function keeps, once both tables have so many rows."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        path = rig.folder / "rows.json"
        found = json.loads(path.read_text() or "{}") if path.exists() else {}
        with sqlite3.connect(rig.folder / "copy.db") as file:
            try:
                ((here,),) = file.execute(f'SELECT count(*) FROM "{rig.db}.other"').fetchall()
            except sqlite3.OperationalError:  # it is not made yet
                here = 0
        file.close()
        if len(found.get("orders", {})) >= count and here == count:
            return dict(found)
    raise AssertionError((found, here))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_refusal_at_the_end_of_a_rebuild_is_its_own_alone(rig: Rig) -> None:
    """The job fails by name; both tables go on, at once and after a restart."""
    config = write_config(rig)
    follower = Follower(rig.log_file)
    process = start(config)
    try:
        follower.wait_for("running")
        produce(rig, 1)
        assert rows(rig, 1) == {"orders": {"1": "n1"}}
        target = f"kept.{rig.db}.orders"
        status, said = run("tables", "rebuild", target, "--config", str(config))
        assert status == 0, said
        follower.wait_for("rebuild_refused")
        produce(rig, 2)
        follower.wait_for("rebuild_given_up")
        follower.wait_for("job_failed")
        produce(rig, 3)
        assert rows(rig, 3) == {"orders": {"1": "n1", "2": "n2", "3": "n3"}}
        (job,) = JobStore(rig.folder / "state").load().jobs
        assert job.state is State.FAILED
        assert "a name stays as it is" in job.message
        assert "is given up; what came meanwhile is read again" in job.message
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 0
        produce(rig, 4)
        again = start(config, "--until-caught-up")
        assert ended(again)[0] == 0
        assert len(rows(rig, 4)["orders"]) == 4
    finally:
        process.kill()
        follower.close()
