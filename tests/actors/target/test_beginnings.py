"""Targets that begin amid their tables' history: rows that did not change since are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from changes.model.model import Mode
from changes.routes.routing import Route
from tests.actors.target.processor_rig import ProcessorRig, canal

UPDATE = {"type": "UPDATE", "old": [{"name": "x"}]}
DELETE = {"type": "DELETE"}


def told(rig: ProcessorRig) -> list[str]:
    rig.settle()
    return rig.logged("begins_amid")


@pytest.mark.parametrize("first", [UPDATE, DELETE], ids=["update", "delete"])
def test_a_first_change_of_a_row_from_before_is_told(tmp_path: Path, first: dict[str, Any]) -> None:
    """As of a table that was left out by the configuration until now: once."""
    rig = ProcessorRig(tmp_path)
    rig.send("t", (4, canal("t", 1, "a", **first)), (5, canal("t", 2, "b", **first)))
    what = "lake.db.t: its first change up to binlog:0 offset 5 is of a row that the source had"
    assert told(rig) == [f"{what} before"]
    rig.send("t", (6, canal("t", 3, "c", **UPDATE)))
    assert len(told(rig)) == 1


def test_a_table_that_begins_with_an_insert_says_nothing(tmp_path: Path) -> None:
    """Nor does one that is stored already."""
    rig = ProcessorRig(tmp_path)
    rig.send("t", (4, canal("t", 1, "a")), (5, canal("t", 1, "b", **UPDATE)))
    assert told(rig) == []
    rig.send("t", (6, canal("t", 1, "c", **UPDATE)))
    assert told(rig) == []


def test_a_list_of_changes_begins_anywhere(tmp_path: Path) -> None:
    """It is what happened from then on."""
    route = Route(("db.*",), (), "lake.{database}.{table}", Mode.APPEND)
    rig = ProcessorRig(tmp_path, routes=(route,))
    rig.send("t", (4, canal("t", 1, "a", **UPDATE)))
    assert told(rig) == []
