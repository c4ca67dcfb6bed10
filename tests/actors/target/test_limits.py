"""What a processor stages when it holds too much."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.raw_messages import Messages
from actors.contract.writes import TargetState
from actors.runtime.lending import Lender
from actors.runtime.mailbox import Tick
from actors.target.rule import ProcessorLogic
from changes.formats import FORMATS
from changes.model.model import Column, FormatOptions, Mode, TableName, TableSchema
from changes.routes.routing import Route, Router, TargetRoute
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from tests.actors.settings import settings_of
from tests.actors.target.processor_rig import ProcessorRig, canal

SOURCE = TopicPartition("binlog", 0)
ROUTER = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)])
SCHEMA = TableSchema((Column("id", pa.int32()),), ("id",))


def route(table: str) -> TargetRoute:
    """Where a table goes."""
    (found,) = ROUTER.targets(TableName("s", table))
    return found


def batch(offset: int, **sizes: int) -> msg.RecordBatch:
    """One message for each table, of so many bytes."""
    shares = tuple(
        msg.Share(route(table), Messages([offset + place], [b"{}"], size))
        for place, (table, size) in enumerate(sizes.items())
    )
    return msg.RecordBatch(1, SOURCE, shares, sum(sizes.values()), Watermarks(0, 100))


def staged(request: fx.Stage) -> msg.Staged:
    """A file was written."""
    name = request.route.name
    return msg.Staged(name, f"{name}.parquet", 1, 1, 1, schema=SCHEMA, mode=Mode.UPSERT)


def processor(**settings: Any) -> ProcessorLogic:
    """A processor whose batches are of one message."""
    return ProcessorLogic(
        Address("p", "processor"), FORMATS["canal-json"](FormatOptions()), ROUTER,
        settings_of(batch_messages=1, **settings), "run", lambda: 1.0,
    )  # fmt: skip


def writing(memory_bytes: int) -> ProcessorLogic:
    """A processor with a write of two targets under way."""
    logic = processor(memory_bytes=memory_bytes)
    logic.handle(batch(0, small=1, large=1), 0.0)
    for table in ("small", "large"):
        out = logic.handle(msg.Opened(route(table).name, TargetState()), 0.0)
        (request,) = (effect for effect in out if isinstance(effect, fx.Stage))
        logic.handle(staged(request), 0.0)
    return logic


def test_only_as_much_is_staged_as_brings_it_below_the_bound() -> None:
    """The largest first; what it held counts as gone, and reading goes on."""
    out = writing(memory_bytes=80).handle(batch(10, small=30, large=60), 1.0)
    assert [e.route.name.table for e in out if isinstance(e, fx.Stage)] == ["large"]
    assert not any(isinstance(effect, fx.Hold) for effect in out)


def test_what_the_disk_did_not_take_is_still_held() -> None:
    """Its messages are in memory until it does: data is left waiting meanwhile."""
    logic = writing(memory_bytes=80)
    logic.handle(batch(10, small=30, large=60), 1.0)
    out = logic.handle(msg.StageFailed(route("large").name, "disk full"), 1.0)
    assert [e.route.name.table for e in out if isinstance(e, fx.Stage)] == ["small"]
    out = logic.handle(msg.StageFailed(route("small").name, "disk full"), 1.0)
    assert fx.Hold(True) in out


def test_who_was_refused_what_is_lent_goes_on_when_it_comes_back() -> None:
    """Its own targets are at rest meanwhile: only the lender's word wakes it."""
    lender, woken = Lender(1200), list[str]()
    other = lender.account("q")
    logic = processor(memory=lender.account("p", None, lambda: woken.append("p")))
    logic.handle(batch(0, table=1), 0.0)  # it is being opened: nothing can be staged
    assert other.hold(150 + 900)
    out = logic.handle(batch(1, table=200), 1.0)
    assert fx.Hold(True) in out
    assert woken == []
    other.hold(0)
    assert woken == ["p"]
    assert fx.Hold(False) in logic.handle(Tick(), 2.0)


def test_who_has_writes_wait_for_a_cut_hears_which_partitions_went_away() -> None:
    """Before the revoke waits for what is under way: else it would wait for those."""
    gone = msg.Forget((SOURCE,), 1)
    asked = fx.Tell(Address("p", "cuts"), gone)
    assert asked in processor(together=frozenset({"lake"})).handle(gone, 0.0)
    assert asked not in processor().handle(gone, 0.0)


@pytest.mark.parametrize(("together", "said"), [({"lake"}, ["a statement"]), (set(), [])])
def test_a_statement_amid_a_cut_is_named(together: set[str], said: list[str]) -> None:
    """It is written before the others' rows: readers may see that."""
    rig = ProcessorRig(together=frozenset(together))
    rig.states["lake.db.a"] = TargetState(schema=SCHEMA)
    rig.send("a", (0, canal("a", 1, isDdl=True, type="TRUNCATE", sql="TRUNCATE TABLE a")), ddl=True)
    rig.feed(msg.Flush(1))
    rig.settle()
    assert rig.logged("written_ahead") == said


def test_a_wait_for_another_target_is_said_once_and_is_no_sink_that_is_away() -> None:
    """Dozens of ``sink_unavailable`` for a renaming made operators look for what was not broken."""
    logic = processor(writers=1)
    logic.handle(batch(0, waits=1), 0.0)
    out = logic.handle(msg.Opened(route("waits").name, TargetState()), 0.0)
    (request,) = (effect for effect in out if isinstance(effect, fx.Stage))
    logic.handle(staged(request), 0.0)
    failed = msg.Failed(route("waits").name, msg.FailureKind.WAITS, "waits until it has its name")
    said = []
    for second in range(3):
        out = logic.handle(failed, float(second))
        said += [(e.level, e.event) for e in out if isinstance(e, fx.Log)]
        logic.handle(Tick(), second + 0.9)
    assert said == [("info", "waits_for_name"), *[("debug", "waits_for_name")] * 2]


def test_a_write_that_waits_for_its_next_attempt_holds_no_writer() -> None:
    """It may wait for just what another target is to write: a table that takes its name."""
    logic = processor(writers=1)
    logic.handle(batch(0, waits=1, other=1), 0.0)
    out = logic.handle(msg.Opened(route("waits").name, TargetState()), 0.0)
    (request,) = (effect for effect in out if isinstance(effect, fx.Stage))
    logic.handle(staged(request), 0.0)
    out = logic.handle(msg.Opened(route("other").name, TargetState()), 0.0)
    assert not any(isinstance(effect, fx.Stage) for effect in out)
    failed = msg.Failed(route("waits").name, msg.FailureKind.RETRY, "waits until it has its name")
    out = logic.handle(failed, 0.0)
    assert [e.route.name.table for e in out if isinstance(e, fx.Stage)] == ["other"]
