"""A target whose keys have one partition each: lanes side by side, and what puts it aside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.raw_messages import Messages, SpillState
from actors.contract.writes import TargetState
from actors.runtime.mailbox import Tick
from actors.target.attempts import COUNT_KNOWN_S
from actors.target.rule import ProcessorLogic
from changes.formats import FORMATS
from changes.model.model import Column, FormatOptions, Mode, TableName, TableSchema, TargetName
from changes.routes.routing import Route, Router
from offsets.key_partitioning import KeyPartitioning, Partitioned
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from tests.actors.settings import settings_of

P0, P1 = TopicPartition("shop", 0), TopicPartition("shop", 1)
TARGET = TargetName("lake", "s", "t")
SCHEMA = TableSchema((Column("id", pa.int64()),), ("id",))
ROUTER = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT)])
SIX = KeyPartitioning("shop", 6, "id integer (1)", checked=True)


class Keyed:
    """A processor with one target, its batches staged by hand. A refusal stops the pipeline, but
    for what is of one table's keys."""

    def __init__(
        self,
        held: KeyPartitioning | None = None,
        marks: dict[TopicPartition, int] | None = None,
        **more: Any,
    ) -> None:
        more = {"dead_letters": True, "batch_age_s": 0.1, **more}
        settings = settings_of(partitioner="murmur2", **more)
        format_ = FORMATS["debezium-json"](FormatOptions(by_key=True))
        me = Address("p", "processor")
        self.logic = ProcessorLogic(me, format_, ROUTER, settings, "run", lambda: 0.0)
        self.effects: list[Any] = []
        self.handle(msg.PartitionCounts({"shop": 6}))
        self._state = TargetState(SCHEMA, Mode.UPSERT, marks or {}, key_partitioning=held)
        self._opened = 0

    def handle(self, message: object, now: float = 0.0) -> None:
        self.effects += self.logic.handle(message, now)

    def send(self, *lanes: tuple[TopicPartition, int]) -> None:
        """A message of each lane, closed together."""
        (route,) = ROUTER.targets(TableName("s", "t"))
        for source, offset in lanes:
            share = msg.Share(route, Messages([offset], [b"{}"], 10), table=TableName("s", "t"))
            self.handle(msg.RecordBatch(1, source, (share,), 10, Watermarks(0, 100)))
        while len(self.told(msg.OpenTarget)) > self._opened:
            self._opened += 1
            self.handle(msg.Opened(TARGET, self._state))
        self.handle(Tick(), 1.0)

    def staged(self, **more: Any) -> None:
        staged = msg.Staged(TARGET, "file", 1, 9, 1, schema=SCHEMA, mode=Mode.UPSERT)
        self.handle(replace(staged, **{"key_partitioning": SIX, **more}), 1.0)

    def told(self, kind: type) -> list[Any]:
        said = [each.message for each in self.effects if isinstance(each, fx.Tell)]
        return [each for each in said if isinstance(each, kind)]

    @property
    def pieces(self) -> list[list[tuple[TopicPartition, list[int]]]]:
        """The lanes, with their offsets, of each batch or file that was to be staged."""
        stages = [each for each in self.effects if isinstance(each, fx.Stage)]
        return [[(at.source, list(at.messages.offsets)) for at in each.lanes] for each in stages]

    @property
    def spilled(self) -> str:
        """Why the target is in quarantine."""
        (reason,) = {each.reason for each in self.effects if isinstance(each, fx.Spill)}
        return str(reason)


def test_lanes_go_into_one_write_and_the_count_to_the_decoder() -> None:
    """It says how the keys are spread."""
    keyed = Keyed()
    keyed.send((P0, 5), (P1, 7))
    (stage,) = [each for each in keyed.effects if isinstance(each, fx.Stage)]
    assert stage.partitioned == Partitioned("murmur2", {"shop": 6})
    keyed.staged()
    (write,) = keyed.told(msg.WriteBatch)
    assert set(write.batch.lanes) == {P0, P1}
    assert write.batch.key_partitioning == SIX


def test_lanes_that_come_in_turns_are_decoded_in_one_piece_each() -> None:
    """A piece costs as much to decode as some hundred rows, and a poll has a few of each lane."""
    keyed = Keyed()
    keyed.send((P0, 5), (P1, 7), (P0, 6), (P1, 8), (P0, 9))
    assert keyed.pieces == [[(P0, [5, 6, 9]), (P1, [7, 8])]]
    keyed.staged()
    (write,) = keyed.told(msg.WriteBatch)
    assert dict(write.through) == {P0: 9, P1: 8}


def test_lanes_that_come_in_turns_are_staged_behind_a_write_in_a_file_each() -> None:
    """Not in one for each turn, which costs as much as hundreds of rows."""
    keyed = Keyed(buffer_bytes=40)
    keyed.send((P0, 5), (P1, 5))
    keyed.staged()
    keyed.send((P0, 6), (P1, 7), (P0, 8), (P1, 9))
    keyed.staged(path="behind")
    keyed.send((P0, 10), (P1, 11))
    assert keyed.pieces[1:] == [[(P0, [6, 8])], [(P1, [7, 9, 11])]]


def test_a_lane_of_which_a_bad_record_alone_came_has_no_rows_to_refuse() -> None:
    """What waited staged is of other lanes, whose order it does not touch: it is a dead letter."""
    keyed = Keyed(buffer_bytes=40)
    keyed.send((P0, 5), (P1, 5))
    keyed.staged()
    keyed.send((P0, 6), (P0, 7), (P0, 8), (P0, 9), (P1, 7))
    keyed.staged(path="behind")
    (write,) = keyed.told(msg.WriteBatch)
    state = TargetState(SCHEMA, Mode.UPSERT, {P0: 5, P1: 5}, key_partitioning=SIX)
    keyed.handle(msg.Written(TARGET, write.epochs, write.through, state), 2.0)
    keyed.handle(Tick(), 3.0)
    assert keyed.pieces[-1] == [(P1, [7])]
    keyed.staged(bad=msg.BadMessageAt(0, 0, "no row"), key_partitioning=None)
    (letter,) = keyed.told(msg.DeadLetter)
    assert (letter.source, letter.offset) == (P1, 7)
    assert not keyed.told(msg.PipelineFailed)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"not_by_key": "shop:0 offset 5: a record without a key"}, "a record without a key"),
        ({"bad": msg.BadMessageAt(0, 0, "moves", of_keys=True)}, "`binlogd tables load`"),
        ({"key_partitioning": replace(SIX, key="id text (2)")}, "another form than before"),
        ({"key_partitioning": replace(SIX, topic="store")}, "spread over shop"),
    ],
)  # fmt: skip
def test_what_is_of_its_keys_puts_the_table_aside(answer: Any, why: str) -> None:
    """By name, also where a refusal stops the pipeline and bad records become dead letters."""
    keyed = Keyed(SIX)
    keyed.send((P0, 5))
    keyed.staged(**answer)
    assert why in keyed.spilled
    assert not keyed.told(msg.PipelineFailed)
    assert not keyed.told(msg.DeadLetter)
    assert not keyed.told(msg.WriteBatch)


def test_a_record_elsewhere_waits_for_a_newer_count_and_no_longer() -> None:
    """More partitions may be there than are known: it is staged again, with the new number."""
    keyed = Keyed()
    keyed.send((P0, 5))
    elsewhere = msg.StageFailed(TARGET, "its key belongs into partition 3", elsewhere=True)
    keyed.handle(elsewhere, 1.0)
    keyed.handle(msg.PartitionCounts({"shop": 8}), 1.5)
    keyed.handle(Tick(), 10.0)
    stages = [each for each in keyed.effects if isinstance(each, fx.Stage)]
    assert dict(stages[-1].partitioned.counts) == {"shop": 8}
    assert len(stages) == 2
    keyed.handle(msg.PartitionCounts({"shop": 6}), 10.0)  # an older answer
    keyed.handle(elsewhere, 1.0 + COUNT_KNOWN_S)
    assert keyed.spilled == "lake.s.t: its key belongs into partition 3"


def test_a_lane_whose_messages_the_target_has_is_done_where_another_is_refused() -> None:
    """They were closed together; nothing of the first is spilled, and it must not stay open until
    its next message."""
    keyed = Keyed(SIX, {P0: 5})
    keyed.send((P0, 5), (P1, 7))
    keyed.staged(not_by_key="shop:1 offset 7: a record without a key")
    keyed.handle(msg.Spilled(TARGET, SpillState(2, 1, {P1: (7, 7)})), 2.0)
    (listed,) = keyed.told(msg.Written)
    assert listed.through == {P0: 5, P1: 7}
