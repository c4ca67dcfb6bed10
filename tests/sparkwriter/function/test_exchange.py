"""A function whose `rename` raises: the names are as they were, and the old table goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.contract.writes import Swap
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from tests.sparkwriter.conftest import LANE, Staging

OLD = TargetName("cache", "shop", "orders")
NEW = OLD._replace(table="orders__rebuild_1")
ASIDE = OLD._replace(table="orders__before_1")
SWAP = Swap(OLD, NEW, ASIDE, {LANE: 9})


FIRST = f"rename {OLD.table} {ASIDE.table}"
SECOND = f"rename {NEW.table} {OLD.table}"
BACK = f"rename {ASIDE.table} {OLD.table}"


class World:
    """Two tables, of which one is to take the other's name."""

    def __init__(
        self, folder: Path, writer: Callable[..., LedgeredWriter], staging: Staging, orders: Any
    ) -> None:
        self.folder, self.staging, self.orders = folder, staging, orders
        self.fails()
        self.sink = writer("renaming:apply", fails=str(folder / "fails"))
        self.sink.write(staging.batch(orders(("U", 1, "a", 1)), 1))
        filled = Staging(folder, NEW, staging.schema)
        self.sink.write(filled.batch(orders(("U", 2, "b", 2)), 8))

    def fails(self, *calls: str) -> None:
        """These raise from now on."""
        (self.folder / "fails").write_text("\n".join(calls))

    def kept(self) -> dict[str, list[int]]:
        """The function's own rows, by table."""
        found: dict[str, list[int]] = json.loads((self.folder / "rows").read_text())
        return {name.rpartition(".")[2]: rows for name, rows in found.items() if rows}


@pytest.fixture
def world(tmp_path: Path, writer: Any, staging: Staging, orders: Any) -> World:
    return World(tmp_path, writer, staging, orders)


@pytest.mark.parametrize("call", [FIRST, SECOND])
def test_a_rename_that_raises_is_as_if_it_was_never_asked_for(call: str, world: World) -> None:
    """The first one; or the second, and the first is taken back. Later it works."""
    before = world.kept()
    world.fails(call)
    with pytest.raises(SinkUnavailable, match="no rename"):
        world.sink.swap(SWAP)
    assert world.kept() == before
    assert world.sink.open(NEW).version is not None
    world.sink.write(world.staging.batch(world.orders(("U", 3, "c", 3)), 2, after=1))
    assert world.kept()[OLD.table] == [1, 3]
    world.fails()
    assert world.sink.swap(SWAP).hwms == {LANE: 8}
    assert world.kept() == {OLD.table: [2]}


def test_a_name_that_can_not_be_given_back_is_told(world: World) -> None:
    """By both names: somebody has to do it."""
    world.fails(SECOND, BACK)
    with pytest.raises(TargetRefused, match=r"orders__before_1, which was .*orders, could not"):
        world.sink.swap(SWAP)


def test_a_drop_that_raises_leaves_the_old_one_by_name(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exchange is made by then, and is not taken back."""
    world.fails(f"drop {ASIDE.table}")
    assert world.sink.swap(SWAP).hwms == {LANE: 8}
    assert world.kept() == {OLD.table: [2], ASIDE.table: [1]}
    assert "table_left" in capsys.readouterr().out
