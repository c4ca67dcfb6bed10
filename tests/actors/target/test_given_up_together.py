"""Two targets of one processor whose writes are given up for one partition."""

from __future__ import annotations

import pyarrow as pa

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.raw_messages import Messages
from actors.contract.writes import TargetState
from actors.target.rule import ProcessorLogic
from changes.formats import FORMATS
from changes.model.model import Column, FormatOptions, Mode, TableName, TableSchema, TargetName
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from tests.actors.settings import settings_of

P0 = TopicPartition("binlog", 0)
ROUTER = Router([Route(("*",), (), "lake.{database}.{table}", Mode.APPEND)])
ONE, OTHER = TargetName("lake", "s", "one"), TargetName("lake", "s", "other")
SCHEMA = TableSchema((Column("id", pa.int32()),), ())


class Two:
    """A processor with two targets; the disk takes everything, at most so many bytes wait."""

    def __init__(self) -> None:
        settings = settings_of(batch_messages=1, buffer_bytes=50)
        format_ = FORMATS["canal-json"](FormatOptions())
        me = Address("p", "processor")
        self.logic = ProcessorLogic(me, format_, ROUTER, settings, "run", lambda: 1.0)
        self._files = 0

    def hear(self, message: object) -> list[object]:
        """Feed a message; gives what was told."""
        told: list[object] = []
        waiting = [message]
        while waiting:
            for effect in self.logic.handle(waiting.pop(0), 0.0):
                match effect:
                    case fx.Tell():
                        told.append(effect.message)
                    case fx.Stage(route):
                        self._files += 1
                        path = f"f{self._files}"
                        done = msg.Staged(route.name, path, 1, 1, 1, schema=SCHEMA, mode=route.mode)
                        waiting.append(done)
                    case _:
                        pass
        return told

    def data(self, target: TargetName, offset: int, epoch: int = 1) -> list[object]:
        (route,) = ROUTER.targets(TableName("s", target.table))
        share = msg.Share(route, Messages([offset], [b"{}"], 100))
        return self.hear(msg.RecordBatch(epoch, P0, (share,), 100, Watermarks(0, 99)))

    def opened(self, target: TargetName, **marks: int) -> list[object]:
        return self.hear(msg.Opened(target, TargetState(hwms={P0: marks["at"]} if marks else {})))


def test_what_waits_behind_a_write_goes_with_it_though_another_gave_up_the_lane() -> None:
    """Its rows would be written as if the write before them had landed, and the mark pass that."""
    two = Two()
    for target in (ONE, OTHER):
        two.data(target, 5)
        two.opened(target)
    two.data(ONE, 6)  # at its bound: staged behind the write
    told = two.hear(msg.Failed(OTHER, msg.FailureKind.STRAGGLER, "moved"))
    assert msg.Reread({P0: 1}) in told
    two.hear(msg.Failed(ONE, msg.FailureKind.RETRY, "away"))
    assert not [m for m in two.opened(ONE) if isinstance(m, msg.WriteBatch)]
    two.hear(msg.Forget((P0,), 1))
    two.data(ONE, 5, epoch=2)
    (write,) = (m for m in two.opened(ONE) if isinstance(m, msg.WriteBatch))
    assert write.through == {P0: 5}


def test_what_was_read_since_stays() -> None:
    """The write is of an assignment before it: nobody would read that again."""
    two = Two()
    two.data(ONE, 5)
    two.opened(ONE)
    two.hear(msg.Forget((P0,), 1))
    two.data(ONE, 5, epoch=2)
    two.hear(msg.Failed(ONE, msg.FailureKind.RETRY, "away"))
    (write,) = (m for m in two.opened(ONE) if isinstance(m, msg.WriteBatch))
    assert (write.through, write.epochs) == ({P0: 5}, {P0: 2})
