"""One table into two sinks, of which one stands still: the other's rows come as ever."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.integration.rig import Rig, canal
from tests.integration.test_process import Follower, ended
from tests.integration.test_sqlite_sink import read, start, write_config

TABLES = 4
"""More than the sink that stands has writers."""

ROUNDS = 10
FRESH_WITHIN_S = 10.0
"""Some writes of 20 ms each, on a machine that is busy with other tests."""

HANDLER = """
import time
from pathlib import Path

def apply(batch, context):
    rows = batch.read_all().to_pylist()
    while not Path(context.settings["go"]).exists():
        time.sleep(0.05)
    with open(context.settings["file"], "a") as file:
        file.writelines(f"{context.table} {row['id']} {row['qty']}\\n" for row in rows)
"""


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_a_sink_that_stands_holds_no_other(rig: Rig) -> None:
    """Each change is in the file of SQLite soon, though every writer of the other sink hangs. Once
    that goes on it gets all of them, and the daemon ends as ever."""
    path = with_handler(rig)
    follower = Follower(rig.log_file)
    process = start(path)
    try:
        follower.wait_for("running")
        for number in range(ROUNDS):
            row = {"id": number, "name": "n", "qty": number}
            rig.produce(*(canal(f"{rig.db}.t{t}", "INSERT", [row]) for t in range(TABLES)))
            sent = time.monotonic()
            while not all(arrived(rig, table) == number + 1 for table in range(TABLES)):
                left_s = sent + FRESH_WITHIN_S - time.monotonic()
                follower.wait_for("written", within_s=max(left_s, 0.0))
        assert not (rig.folder / "rows").exists()
        (rig.folder / "go").touch()
        process.terminate()
        assert ended(process)[0] == 0
    finally:
        process.kill()
        follower.close()
    lines = sorted(set((rig.folder / "rows").read_text().splitlines()))
    assert lines == sorted(f"t{t} {n} {n}" for t in range(TABLES) for n in range(ROUNDS))


def with_handler(rig: Rig) -> Path:
    """The configuration of one sink, and a handler's as second."""
    path = write_config(rig)
    folder = rig.folder
    (folder / "standing.py").write_text(HANDLER)
    sink = {
        "kind": "python", "entry": "standing:apply", "path": [str(folder)],
        "state": str(folder / "standing"), "settings.go": str(folder / "go"),
        "settings.file": str(folder / "rows"),
    }  # fmt: skip
    lines = [f"{key} = {json.dumps(value)}" for key, value in sink.items()]
    route = ["[[pipeline.p.route]]", 'target = "standing.{database}.{table}"']
    text = path.read_text().replace(
        "[sink.copy]", "\n".join(["[sink.standing]", *lines, "[sink.copy]"])
    )
    path.write_text("\n".join([text, *route, ""]))
    return path


def arrived(rig: Rig, table: int) -> int:
    """How many rows the file has of a table."""
    try:
        return len(read(rig, f"t{table}"))
    except Exception as error:
        if "no such table" in str(error):
            return 0
        raise
