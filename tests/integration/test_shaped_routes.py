"""The daemon with routes that shape rows, from the broker to a file of SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.rig import Rig, ddl
from tests.integration.test_process import Follower, ended, workload
from tests.integration.test_sqlite_sink import read, start

SALT = "a salt of many characters"


def write_config(rig: Rig, *lines: str) -> Path:
    """One pipeline whose tables all take one shaped route."""
    text = [
        "[daemon]", f'state_dir = "{rig.folder}/state"', f'staging_dir = "{rig.folder}/staging"',
        "commit_interval_s = 0.3", "[log]", 'level = "debug"',
        'format = "json"', f'file = "{rig.log_file}"',
        "[batch]", "max_age_s = 0.2", "[kafka]", f'"bootstrap.servers" = "{rig.broker.bootstrap}"',
        "[sink.copy]", 'kind = "sqlite"', 'path = "copy.db"', "[pipeline.p]",
        f'topics = ["{rig.topic}"]', 'format = "canal-json"', f'group = "g-{rig.db}"',
        f'include = ["{rig.db}.*"]', "[[pipeline.p.route]]", 'target = "copy.{database}.{table}"',
        *lines,
    ]  # fmt: skip
    path = rig.folder / "config.toml"
    path.write_text("\n".join(text) + "\n")
    return path


@pytest.mark.timeout(300)
def test_a_shaped_target_after_a_kill_equals_the_shape_of_the_source(rig: Rig) -> None:
    """Then another shape is refused, with the command that fills the table again, and a statement
    about a masked column stops it."""
    stream, tables = workload(rig.db, 6000)
    shape = ('filter = "qty % 2 = 0"', 'mask = { name = "keep_last(1)" }',
             'computed = { twice = "qty * 2" }')  # fmt: skip
    path = write_config(rig, *shape)
    follower = Follower(rig.log_file)
    try:
        process = start(path)
        follower.wait_for("running")
        rig.produce(*stream[:3000])
        follower.wait_for("written", times=2)
        process.kill()
        ended(process)
    finally:
        follower.close()
    rig.produce(*stream[3000:])
    status, said = ended(start(path, "--until-caught-up"))
    assert (status, said) == (0, "")
    for name, rows in tables.items():
        wanted = [
            (key, "*" * (len(text) - 1) + text[-1], qty, qty * 2)
            for key, (text, qty) in sorted(rows.items())
            if qty % 2 == 0
        ]
        assert read(rig, name, "id, name, qty, twice") == wanted
    rig.produce(stream[-1])
    other = write_config(rig, *shape[1:])
    status, said = ended(start(other, "--until-caught-up"))
    assert status != 0
    assert "were shaped by another route than the present one (filter)" in said
    assert f"binlogd tables rebuild copy.{rig.db}." in said
    rig.produce(ddl(f"{rig.db}.t1", "ALTER", "ALTER TABLE t1 RENAME COLUMN name TO title"))
    status, said = ended(start(write_config(rig, *shape), "--until-caught-up"))
    assert status != 0
    assert "where the route's mask names name" in said
