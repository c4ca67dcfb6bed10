"""The daemon with a file of SQLite as its only sink: no Java, no Spark, the same exactness."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.changes.formats.json_messages import ogg
from tests.integration.rig import Rig, ddl
from tests.integration.test_process import CHECKOUT, Follower, ended, workload
from tests.sparkwriter.sql.waiting import until

MESSAGES = 12_000


def write_config(rig: Rig, **pipeline: object) -> Path:
    """One pipeline into ``copy``: rows of now, and all changes beside them."""
    routes = [
        {"target": "copy.{database}.{table}"},
        {"target": "copy.{database}.{table}_log", "mode": "append"},
    ]
    section = {
        "topics": [rig.topic], "format": "canal-json", "group": f"g-{rig.db}",
        "include": [f"{rig.db}.*"], "route": routes,
    } | pipeline  # fmt: skip
    text = [
        "[daemon]", f'state_dir = "{rig.folder}/state"', f'staging_dir = "{rig.folder}/staging"',
        "commit_interval_s = 0.3", "writers = 2",
        "[log]", 'level = "debug"',
        'format = "json"', f'file = "{rig.log_file}"', "[batch]", "max_age_s = 0.2",
        "[kafka]", f'"bootstrap.servers" = "{rig.broker.bootstrap}"',
        "[sink.copy]", 'kind = "sqlite"', 'path = "copy.db"', "[pipeline.p]",
    ]  # fmt: skip
    for key, value in section.items():
        if key != "route":
            text.append(f"{key} = {json.dumps(value)}")
    for route in routes:
        text += ["[[pipeline.p.route]]", *(f"{k} = {json.dumps(v)}" for k, v in route.items())]
    path = rig.folder / "config.toml"
    path.write_text("\n".join(text) + "\n")
    return path


def start(path: Path, *options: str) -> subprocess.Popen[str]:
    """The daemon, on a machine without Java."""
    return subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", "run", "--config", str(path), *options],
        cwd=CHECKOUT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={"PATH": str(path.parent)}, start_new_session=True,
    )  # type: ignore[call-overload]  # fmt: skip


def read(rig: Rig, table: str, columns: str = "id, name, qty") -> list[tuple[object, ...]]:
    """A table's rows as any reader of the file finds them."""
    with sqlite3.connect(rig.folder / "copy.db") as file:
        name = f'"{rig.db}.{table}"'
        found = file.execute(f"SELECT {columns} FROM {name} ORDER BY 1, 2, 3").fetchall()
    file.close()
    return found


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_kill_9_loses_and_doubles_nothing(rig: Rig) -> None:
    """Twice in mid-stream; in the end the tables equal the source, each change came once."""
    stream, tables = workload(rig.db, MESSAGES)
    path = write_config(rig)
    follower = Follower(rig.log_file)
    try:
        for kill in range(2):
            process = start(path)
            follower.wait_for("running")
            rig.produce(*stream[kill * 4000 : (kill + 1) * 4000])
            follower.wait_for("written", times=kill + 2)
            process.kill()
            ended(process)
    finally:
        follower.close()
    rig.produce(*stream[8000:])
    status, said = ended(start(path, "--until-caught-up"))
    assert (status, said) == (0, "")
    sent = Counter(json.loads(message)["table"] for message in stream)
    for name, rows in tables.items():
        assert read(rig, name) == [(key, *row) for key, row in sorted(rows.items())]
        offsets = read(rig, f"{name}_log", "_partition, _offset, _index")
        assert len(offsets) == len(set(offsets)) == sent[name]
    assert not rig.events("spark_started")
    assert not (rig.folder / "state" / "jvm.log").exists()


@pytest.mark.integration
@pytest.mark.parametrize("lost", ["all of it", "its state alone"])
def test_a_copy_under_an_old_groups_name_says_what_its_tables_lack(rig: Rig, lost: str) -> None:
    """``start`` counts for a new group alone: without a word the tables would begin in the middle.
    Where the tables are there nothing lacks. It stays known when the daemon starts again, unless
    the start is forced: that declares the tables right."""
    stream, tables = workload(rig.db, 40)
    late = json.dumps(json.loads(stream[0]) | {"table": "late"}).encode()
    path = write_config(rig)
    rig.produce(*stream[:30])
    assert ended(start(path, "--until-caught-up")) == (0, "")
    shutil.rmtree(rig.folder / "state")
    if lost == "all of it":
        rig.folder.joinpath("copy.db").unlink()
    rig.produce(*stream[30:])
    checked = command(path, "check-config", "--connect")
    assert "pipeline.p: its group has read" in checked.stderr
    assert ended(start(path, "--until-caught-up")) == (0, "")
    assert "its group has read" not in command(path, "check-config", "--connect").stderr
    listed = command(path, "tables", "list", "--json")
    said = {event["target"] for event in rig.events("rows_may_differ")}
    rig.produce(late)
    assert ended(start(path, "--until-caught-up")) == (0, "")
    told = {event["target"]: event["what"] for event in rig.events("rows_may_differ")}
    assert told.keys() - said == {f"copy.{rig.db}.late", f"copy.{rig.db}.late_log"}
    assert "where the group's commit was" in told[f"copy.{rig.db}.late"]
    forced = start_forced(path)
    rig.produce(json.dumps(json.loads(stream[0]) | {"table": "later"}).encode())
    assert ended(start(forced, "--until-caught-up")) == (0, "")
    assert not {e["target"] for e in rig.events("rows_may_differ")} & {f"copy.{rig.db}.later"}
    if lost == "its state alone":
        assert not said
        assert read(rig, "t1") == [(key, *row) for key, row in sorted(tables["t1"].items())]
        return
    assert f"copy.{rig.db}.t1" in said
    assert "where the group's commit was" in listed.stdout


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_a_kill_between_crossing_changes_of_keys_is_told(rig: Rig) -> None:
    """``SET id = 3 - id``: the process that saw a row come to key 2 is gone when another leaves it.
    Elsewhere in the same statement nothing is doubted."""
    route = {"target": "copy.{database}.{table}", "keys": ["id"]}
    path = write_config(rig, format="ogg-json", route=[route])

    def change(op: str, key: int, before: int | None, name: str) -> bytes:
        was = None if before is None else {"id": before, "name": name, "qty": 1}
        now = {"id": key, "name": name, "qty": 1}
        return ogg(op, now, was, table=f"{rig.db}.t1")

    def told() -> list[str]:
        return [event["what"] for event in rig.events("rows_may_differ")]

    rig.produce(change("I", 1, None, "a"), change("I", 2, None, "b"), change("U", 1, 1, "a"))
    assert ended(start(path, "--until-caught-up")) == (0, "")
    rig.produce(change("U", 2, 2, "b"), change("U", 2, 1, "a"))
    process = start(path)
    until(lambda: read(rig, "t1") == [("2", "a", "1")])
    process.kill()
    ended(process)
    assert told() == []
    rig.produce(change("U", 1, 2, "b"))
    assert ended(start(path, "--until-caught-up")) == (0, "")
    assert read(rig, "t1") == [("1", "b", "1")]
    (what,) = told()
    assert what.startswith(f"copy.{rig.db}.t1: reading began amid changes of keys")
    assert what in command(path, "tables", "list", "--json").stdout


def start_forced(path: Path) -> Path:
    """The configuration with a start that declares the tables right as they are."""
    text = path.read_text().replace(
        "[[pipeline.p.route]]",
        '[pipeline.p.start]\nat = "earliest"\nforce = "as they are"\n[[pipeline.p.route]]',
        1,
    )
    path.write_text(text)
    return path


def command(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One that must end well."""
    return subprocess.run(
        [sys.executable, "-m", "daemon.cli", *arguments, "--config", str(path)],
        cwd=CHECKOUT, text=True, capture_output=True, check=True,
    )  # fmt: skip


@pytest.mark.integration
def test_statements_are_followed(rig: Rig) -> None:
    """A column that comes with a default, a table that is renamed."""
    stream, _ = workload(rig.db, 8)
    rig.produce(
        *stream,
        ddl(f"{rig.db}.t1", "ALTER", "ALTER TABLE t1 ADD COLUMN state int NOT NULL DEFAULT 7"),
        ddl(f"{rig.db}.t2", "RENAME", f"RENAME TABLE {rig.db}.t2 TO {rig.db}.moved"),
    )
    status, said = ended(start(write_config(rig), "--until-caught-up"))
    assert (status, said) == (0, "")
    assert {row[-1] for row in read(rig, "t1", "id, name, qty, state")} == {7}
    assert read(rig, "moved") == [(0, "n6", 6)]


@pytest.mark.integration
def test_a_file_that_was_put_back_is_not_written_on(rig: Rig) -> None:
    """Yesterday's copy shows yesterday's marks: what came since would be missing in silence."""
    stream, _ = workload(rig.db, 80)
    path = write_config(rig)
    rig.produce(*stream[:40])
    assert ended(start(path, "--until-caught-up"))[0] == 0
    shutil.copy(rig.folder / "copy.db", rig.folder / "yesterday.db")
    rig.produce(*stream[40:60])
    assert ended(start(path, "--until-caught-up"))[0] == 0
    for left in ("copy.db-wal", "copy.db-shm"):
        (rig.folder / left).unlink(missing_ok=True)
    shutil.copy(rig.folder / "yesterday.db", rig.folder / "copy.db")
    rig.produce(*stream[60:])
    status, said = ended(start(path, "--until-caught-up"))
    assert status != 0
    assert "copy." in said
