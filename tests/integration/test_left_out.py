"""Inserts of MINIMAL images behind a statement that added a column: its default is in no message,
so each target has a mark that names the column."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from settings.exit import Exit
from tests.integration.rig import Rig, canal, ddl
from tests.integration.test_process import daemon, ended
from tests.integration.test_sqlite_sink import read, start, write_config

TYPES = {"id": "int(11)", "v": "int(11)"}
HANDLER = """
import json

def apply(batch, context):
    with open(context.settings["file"], "a") as file:
        for row in batch.read_all().to_pylist():
            file.write(json.dumps([context.table, row["id"], context.left_out]) + "\\n")
"""


def insert(rig: Rig, key: int) -> bytes:
    """With the columns that the statement gave a value."""
    return canal(f"{rig.db}.t", "INSERT", [{"id": key, "v": key}], mysqlType=TYPES)


def statement(rig: Rig) -> bytes:
    return ddl(f"{rig.db}.t", "ALTER", "ALTER TABLE t ADD c INT DEFAULT 5")


def marks(path: Path) -> Mapping[str, str | None]:
    """What ``tables list`` shows of each table, by its name."""
    listed = daemon("tables", "list", "--json", "-c", str(path)).communicate()[0]
    rows: list[dict[str, Any]] = json.loads(listed)
    return {row["target"].rpartition(".")[2]: row["rows_may_differ"] for row in rows}


def names_c(mark: str | None) -> bool:
    return mark is not None and ": column c: inserts come without it" in mark


@pytest.mark.timeout(300)
def test_iceberg_over_a_restart(rig: Rig) -> None:
    """Both ways to write, a changelog, a history."""
    target = "lake.{database}.{table}"
    routes = [
        {"target": target},
        {"target": f"{target}_eq", "write": "equality"},
        {"target": f"{target}_log", "mode": "append"},
        {"target": f"{target}_hist", "history": True},
    ]
    path = rig.write_config(p=rig.pipeline(target=None, write=None, route=routes))
    rig.produce(insert(rig, 1), statement(rig))
    assert rig.run(path) is Exit.OK
    assert set(marks(path).values()) == {None}
    rig.produce(insert(rig, 2))
    assert rig.run(path) is Exit.OK
    shown = marks(path)
    assert {name: names_c(mark) for name, mark in shown.items()} == dict.fromkeys(
        ("t", "t_eq", "t_log", "t_hist"), True
    )
    told = {said["target"] for said in rig.events("rows_may_differ")}
    assert told == {f"lake.{rig.db}.{name}" for name in shown}
    for name in ("t", "t_eq"):
        assert rig.select(name, ["id", "v", "c"], "id")[0] == (1, 1, 5)


@pytest.mark.parametrize("restart", [False, True], ids=["one run", "a restart between"])
def test_a_database_and_a_function(rig: Rig, restart: bool) -> None:
    """The function is given the names with its rows, for nobody else can mark what it stores."""
    path = with_handler(rig)
    rig.produce(insert(rig, 1), statement(rig))
    if restart:
        assert ended(start(path, "--until-caught-up")) == (0, "")
        assert set(marks(path).values()) == {None}
    rig.produce(insert(rig, 2))
    assert ended(start(path, "--until-caught-up")) == (0, "")
    shown = marks(path)
    assert set(shown) == {"t", "t_log", "t_own"}
    assert all(map(names_c, shown.values()))
    told = {said["target"] for said in rig.events("rows_may_differ")}
    assert told == {f"copy.{rig.db}.t", f"copy.{rig.db}.t_log", f"own.{rig.db}.t_own"}
    assert read(rig, "t", "id, v, c")[0] == (1, 1, 5)
    lines = (rig.folder / "rows").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [["t_own", 1, []], ["t_own", 2, ["c"]]]


def with_handler(rig: Rig) -> Path:
    """The configuration of SQLite, and a function as second sink."""
    path, folder = write_config(rig), rig.folder
    (folder / "own.py").write_text(HANDLER)
    sink = {
        "kind": "python", "entry": "own:apply", "path": [str(folder)],
        "state": str(folder / "own"), "settings.file": str(folder / "rows"),
    }  # fmt: skip
    lines = [f"{key} = {json.dumps(value)}" for key, value in sink.items()]
    route = ["[[pipeline.p.route]]", 'target = "own.{database}.{table}_own"']
    text = path.read_text().replace("[sink.copy]", "\n".join(["[sink.own]", *lines, "[sink.copy]"]))
    path.write_text("\n".join([text, *route, ""]))
    return path
