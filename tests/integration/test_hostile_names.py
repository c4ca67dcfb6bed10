"""Names of the source that would be paths: no file is made outside of the warehouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.model.errors import TargetRefused
from changes.model.model import TargetName
from settings.exit import Exit
from sparkwriter.iceberg.catalog import LakeCatalog
from tests.integration.rig import Rig, canal

NAMES = ("..", ".", "a/b", "line\nfeed")


def test_such_a_table_is_left_out_and_the_others_go_on(rig: Rig) -> None:
    """As a table's name and as a database's; each one is named once, and nothing is made of it."""
    row, evil = [{"id": 1, "name": "a", "qty": 1}], f"evil_{rig.db}"
    names = (f"../../{evil}", *NAMES)
    warehouse = Path(rig.lake["warehouse"].removeprefix("file:"))
    made = {path.name for path in warehouse.iterdir()} | {"catalog.db"}
    rig.produce(
        *(canal(f"{rig.db}.{name}", "INSERT", row) for name in names * 2),
        *(canal("x.orders", "INSERT", row, database=name) for name in names),
        canal(f"{rig.db}.orders", "INSERT", row),
    )
    assert rig.run(rig.write_config(p=rig.pipeline(include=["*"]))) is Exit.OK
    assert rig.rows("orders") == [(1, "a", 1)]
    around = {path.name for folder in warehouse.parents[:2] for path in folder.iterdir()}
    assert around.isdisjoint({evil, rig.db})
    assert {path.name for path in warehouse.iterdir()} <= {*made, rig.db}
    assert [path.name for path in (warehouse / rig.db).iterdir()] == ["orders"]
    told = [(event["database"], event["table"]) for event in rig.events("table_left_out")]
    assert told == [*((rig.db, name) for name in names), *((name, "orders") for name in names)]


@pytest.mark.parametrize("name", NAMES)
def test_the_sink_makes_no_such_table(rig: Rig, name: str) -> None:
    """Whoever asks."""
    catalog = LakeCatalog(rig.spark)
    for target in (TargetName("lake", "x", name), TargetName("lake", name, "x")):
        with pytest.raises(TargetRefused, match="in the lake is named so"):
            catalog.create(target, (), {}, ("a", "b"))
