"""Who makes a pipeline's cuts, as it is configured."""

from __future__ import annotations

from pathlib import Path

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.contract.writes import TargetState
from actors.runtime.mailbox import Tick
from changes.model.model import TargetName
from daemon.app.side_actors import side_actors_of
from daemon.config.file import load
from offsets.cuts import Cut
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot

TEXT = """
[kafka]
bootstrap.servers = "127.0.0.1:1"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "rest"
uri = "http://127.0.0.1:1"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
include = ["shop.*"]
exclude = ["shop.old_*"]
target = "lake.{database}.{table}"
"""


def test_what_is_recorded_of_another_route_is_not_cut(tmp_path: Path) -> None:
    """Its sink may be gone; and a pipeline without cuts has nobody who makes them."""
    file = tmp_path / "config.toml"
    file.write_text(TEXT)
    assert list(side_actors_of(load(file), "shop", "run", Snapshot("shop", "g"))) == []
    file.write_text(TEXT + 'cut_every = "60s"\n')
    ((role, logic, _),) = side_actors_of(load(file), "shop", "run", Snapshot("shop", "g"))
    assert role == "cuts"
    asked = msg.CutAsked(
        {TopicPartition("shop", 0): 1}, {TopicPartition("shop", 0): 9}, "time", None, None
    )
    versions = {"lake.shop.a": "1", "lake.shop.`b.c`": "2", "old.shop.a": "3", "lake.crm.a": "4"}
    versions["lake.shop.old_a"] = "5"
    (tell,) = logic.handle(msg.CutReached(asked, versions, {}), 0.0)
    assert isinstance(tell, fx.Tell)
    table = TargetName("lake", "binlogd", "cuts")
    out = logic.handle(msg.Opened(table, TargetState()), 0.0)
    tagged = [each.message.target for each in out if isinstance(each, fx.Tell)]  # type: ignore[attr-defined]
    assert tagged == [TargetName("lake", "shop", "a"), TargetName("lake", "shop", "b.c")]
    assert all(each.to == WRITERS for each in out if isinstance(each, fx.Tell))


def test_what_an_operator_has_read_again_withdraws_cuts(tmp_path: Path) -> None:
    """Once the table of cuts is known, and before another cut; not where a row says so already."""
    file = tmp_path / "config.toml"
    file.write_text(TEXT + 'cut_every = "60s"\n')
    states = {
        TopicPartition("shop", 0): PartitionState(7, None, reread=9, withdraws=5),
        TopicPartition("shop", 1): PartitionState(9, None, reread=9),
    }
    ((_, logic, _),) = side_actors_of(
        load(file), "shop", "run", Snapshot("shop", "g", partitions=states)
    )
    (opens,) = logic.handle(Tick(), 0.0)
    table = TargetName("lake", "binlogd", "cuts")
    assert isinstance(opens, fx.Tell)
    assert opens.message == msg.OpenTarget(table, Address("shop", "cuts"))
    lane = TopicPartition(f"(cuts of shop, {load(file).group('shop')})", 0)
    (staged,) = logic.handle(msg.Opened(table, TargetState(hwms={lane: 7})), 0.0)
    assert isinstance(staged, fx.StageOwn)
    assert isinstance(staged.rows, Cut)
    assert (staged.rows.boundary, staged.rows.positions) == (
        "withdrawn", {TopicPartition("shop", 0): 5}
    )  # fmt: skip
