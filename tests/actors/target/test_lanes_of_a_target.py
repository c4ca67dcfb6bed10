"""A target of several lanes: what becomes of one lane's replays when another meets trouble."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.raw_messages import Messages, SpillState
from actors.contract.writes import TargetState
from actors.runtime.mailbox import Tick
from actors.target.rule import ProcessorLogic
from changes.formats import FORMATS
from changes.model.model import Column, FormatOptions, Mode, TableName, TableSchema, TargetName
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from tests.actors.settings import settings_of

P0, P1 = TopicPartition("binlog", 0), TopicPartition("binlog", 1)
LOG = TargetName("lake", "log", "all")
SCHEMA = TableSchema((Column("id", pa.string()),), ())
ROUTER = Router([Route(("*",), (), "lake.log.all", Mode.APPEND)])


class Changelog:
    """A processor whose one target takes both partitions; its batches are staged by hand."""

    def __init__(self, marks: dict[TopicPartition, int]) -> None:
        settings = settings_of(dead_letters=True, quarantine=True, batch_age_s=0.1)
        format_ = FORMATS["canal-json"](FormatOptions())
        me = Address("p", "processor")
        self.logic = ProcessorLogic(me, format_, ROUTER, settings, "run", lambda: 0.0)
        self.effects: list[object] = []
        self._marks = marks
        self._opened = 0

    def handle(self, message: object, now: float) -> None:
        self.effects += self.logic.handle(message, now)

    def send(self, source: TopicPartition, *offsets: int) -> None:
        (route,) = ROUTER.targets(TableName("s", "t"))
        share = msg.Share(route, Messages(list(offsets), [b"{}"] * len(offsets), 10))
        self.handle(msg.RecordBatch(1, source, (share,), 10, Watermarks(0, 100)), 0.0)

    def staged(self, bad: msg.BadMessageAt | None, path: str | None = "file") -> None:
        """What was sent is closed, and comes back, maybe with a bad record in it."""
        state = TargetState(SCHEMA, Mode.APPEND, self._marks)
        while len(self.told(msg.OpenTarget)) > self._opened:  # each lane asks for its marks
            self._opened += 1
            self.handle(msg.Opened(LOG, state), 0.0)
        self.handle(Tick(), 1.0)
        answer = msg.Staged(LOG, path, 1, 9, 1, schema=SCHEMA, mode=Mode.APPEND, bad=bad)
        self.handle(answer, 1.0)

    def told(self, kind: type) -> list[Any]:
        return [e.message for e in self.effects if isinstance(e, fx.Tell)
                and isinstance(e.message, kind)]  # fmt: skip

    def acknowledged(self, source: TopicPartition) -> int:
        """How far the committer hears that a lane is done, with a write or without."""
        said = [*self.told(msg.Written), *self.told(msg.WriteBatch)]
        return max((each.through.get(source, -1) for each in said), default=-1)


@pytest.mark.parametrize("index", [0, 1])
def test_another_lanes_replays_behind_a_bad_record_are_done(index: int) -> None:
    """They are in the target, and will never be closed again: the frontier would stand still."""
    log = Changelog({P0: 9})
    log.send(P1, 1, 2)
    log.send(P0, 5, 6)
    log.staged(msg.BadMessageAt(0, index, "bad"), "file" if index else None)
    assert log.acknowledged(P0) == 6
    assert log.acknowledged(P1) == (1 if index else -1)


def test_what_is_new_behind_a_bad_record_is_not_done_with_it() -> None:
    """Nor are replays of the record's own lane, or of one with something new before them."""
    log = Changelog({P0: 5})
    log.send(P1, 1, 2)
    log.send(P0, 5, 6)
    log.staged(msg.BadMessageAt(0, 1, "bad"))
    assert (log.acknowledged(P0), log.acknowledged(P1)) == (-1, 1)


def test_a_refused_write_before_a_bad_record_goes_into_quarantine() -> None:
    """The bad record begins its lane, so the write has nothing of that lane."""
    log = Changelog({})
    log.send(P0, 5)
    log.send(P1, 1)
    log.staged(msg.BadMessageAt(1, 0, "bad"))
    log.handle(msg.Failed(LOG, msg.FailureKind.REFUSED, "no"), 1.0)
    (spill,) = [e for e in log.effects if isinstance(e, fx.Spill)]
    assert set(spill.rereads) == {fx.LogRange(P0, 5, 5), fx.LogRange(P1, 1, 1)}


def test_replays_of_another_lane_are_not_spilled() -> None:
    """The target has them: a release would find its mark beyond them, and take it for another
    member's. They are done."""
    log = Changelog({P0: 9})
    log.send(P1, 1)
    log.staged(None)
    log.send(P0, 5, 6)
    log.handle(msg.Failed(LOG, msg.FailureKind.REFUSED, "no"), 1.0)
    log.send(P0, 8)
    log.handle(msg.Spilled(LOG, SpillState(2, 1, {P1: (1, 1)})), 1.0)
    log.handle(Tick(), 9.0)
    spills = [e for e in log.effects if isinstance(e, fx.Spill)]
    assert [each.records for each in spills] == [()]
    assert log.acknowledged(P0) == 8
