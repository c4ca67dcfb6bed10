"""Who folds counts: when, what is read first, and what becomes of a fold that fails."""

from __future__ import annotations

from collections.abc import Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.contract.figures import Figures
from actors.contract.of_counts import SideFigures
from actors.contract.writes import StagedBatch, TargetState
from actors.counts import FOLD_EVERY_S, MANY_MINUTES, CountsLogic
from actors.runtime.mailbox import Tick
from changes.model.model import TargetName
from offsets.counts import CountRow, LaneCounts, RowCounts
from offsets.position import TopicPartition

TABLE = TargetName("lake", "binlogd", "counts")
ORDERS = TargetName("lake", "shop", "orders")
LANE = TopicPartition("shop", 0)
OWN = TopicPartition("(counts of p, g)", 0)
NOW = 1_800_000_000


def run(since: str, through: int, minutes: int = 1) -> LaneCounts:
    return LaneCounts(since, -1, through, dict.fromkeys(range(1, minutes + 1), RowCounts(1)))


class Folder:
    """The logic, and writers who do as they are told. ``mark``: of the table of counts, None:
    there is none yet. ``shown``: what targets' marks carry when they are read."""

    def __init__(self, *recorded: str) -> None:
        more = 2, recorded, lambda: NOW, "run"
        self.logic = CountsLogic("p", "g", TABLE, *more)
        self.mark: int | None = None
        self.shown: dict[str, Mapping[TopicPartition, LaneCounts]] = {}
        self.read: list[str] = []
        self.rows: list[CountRow] = []
        self.folded: list[msg.CountsFolded] = []
        self.wakes: list[float | None] = []
        self.fails: msg.FailureKind | None = None
        self.unread: msg.FailureKind | None = None
        self.said: list[str] = []

    def feed(self, message: object, now: float = 0.0) -> None:
        for effect in self.logic.handle(message, now):
            match effect:
                case fx.Tell(to, msg.OpenTarget(target)) if to == WRITERS:
                    self._open(target, now)
                case fx.Tell(to, msg.WriteBatch(batch)) if to == WRITERS:
                    self._write(batch, now)
                case fx.Tell(to, msg.CountsFolded() as told):
                    assert to == Address("p", "processor", to.number)
                    self.folded.append(told)
                case fx.StageOwn(rows):
                    assert isinstance(rows, tuple)
                    self.staged = rows
                    self.feed(msg.OwnStaged("file", ()), now)
                case fx.WakeAt(when):
                    self.wakes.append(when)
                case fx.Log(_, event, _):
                    self.said.append(event)
                case fx.RemoveStaged(paths):
                    assert paths == ("file",)

    def _open(self, target: TargetName, now: float) -> None:
        if target == TABLE:
            hwms = {} if self.mark is None else {OWN: self.mark}
            return self.feed(msg.Opened(target, TargetState(hwms=hwms)), now)
        self.read.append(str(target))
        if self.unread is not None:
            return self.feed(msg.Failed(target, self.unread, "why"), now)
        counts = self.shown.get(str(target), {})
        return self.feed(msg.Opened(target, TargetState(counts=counts)), now)

    def _write(self, batch: StagedBatch, now: float) -> None:
        ((lane, span),) = batch.lanes.items()
        assert lane == OWN
        if self.fails is None and span.after != (-1 if self.mark is None else self.mark):
            self.feed(msg.Failed(TABLE, msg.FailureKind.FENCED, "moved"), now)
        elif self.fails is not None:
            self.feed(msg.Failed(TABLE, self.fails, "away"), now)
        else:
            self.mark = span.through
            self.rows += self.staged
            self.feed(msg.Written(TABLE, {lane: 0}, {lane: span.through}, None), now)

    def told(self, since: str, through: int, minutes: int = 1, now: float = 0.0) -> None:
        counts = {LANE: run(since, through, minutes)}
        self.feed(msg.CountsHeld(ORDERS, counts), now)


def test_what_an_earlier_run_left_is_folded_at_once() -> None:
    """Targets that have nothing new are read for it, one after the other."""
    folder = Folder("lake.shop.orders", "lake.shop.items")
    folder.shown["lake.shop.orders"] = {LANE: run("w1", 5)}
    folder.feed(Tick())
    assert folder.read == ["lake.shop.items", "lake.shop.orders"]
    assert folder.rows == [CountRow("lake.shop.orders", LANE, NOW, run("w1", 5))]
    assert folder.folded == [msg.CountsFolded(ORDERS, {LANE: run("w1", 5)})]


def test_a_fold_a_minute_has_all_that_was_told() -> None:
    """What is in the table is not written again; a run that grew is."""
    folder = Folder()
    folder.feed(Tick())
    assert folder.wakes == [None]
    folder.told("w1", 5, now=10.0)
    assert folder.wakes[-1] == 10.0 + FOLD_EVERY_S
    folder.feed(Tick(), 70.0)
    assert (len(folder.rows), folder.wakes[-1]) == (1, None)
    folder.told("w1", 5, now=71.0)
    folder.feed(Tick(), 140.0)
    assert len(folder.rows) == 1
    folder.told("w1", 9, now=141.0)
    folder.feed(Tick(), 210.0)
    assert [row.run.through for row in folder.rows] == [5, 9]


def test_a_log_that_is_behind_is_folded_at_once() -> None:
    """Marks would carry too much."""
    folder = Folder()
    folder.feed(Tick())
    folder.told("w1", 5, now=10.0, minutes=MANY_MINUTES)
    assert folder.wakes[-1] == 10.0


def test_a_run_that_ends_without_being_in_the_table_is_written_too() -> None:
    """With a name its target got other marks."""
    folder = Folder()
    folder.feed(Tick())
    folder.told("w1", 5)
    folder.told("w2", 9)
    folder.feed(Tick(), 60.0)
    assert sorted(row.run.since for row in folder.rows) == ["w1", "w2"]


def test_where_another_member_has_folded_marks_are_read_first() -> None:
    """What was told may be older than what that one has written."""
    folder = Folder()
    folder.feed(Tick())
    folder.told("w1", 5)
    folder.feed(Tick(), 60.0)
    assert folder.mark is not None
    folder.mark += 100
    folder.told("w1", 9)
    folder.shown["lake.shop.orders"] = {LANE: run("w1", 12)}
    folder.feed(Tick(), 120.0)
    assert folder.said == ["counts_not_folded"]
    assert folder.read == []
    folder.feed(Tick(), 180.0)
    assert folder.read == ["lake.shop.orders"]
    assert [row.run.through for row in folder.rows] == [5, 12]
    assert figures(folder) == SideFigures(None)


def figures(folder: Folder) -> object:
    (reply,) = folder.logic.handle(Figures(), 0.0)
    assert isinstance(reply, fx.Reply)
    return reply.value


def test_a_sink_that_is_away_is_told_and_tried_again() -> None:
    """Each minute."""
    folder = Folder()
    folder.feed(Tick())
    folder.told("w1", 5)
    folder.fails = msg.FailureKind.RETRY
    folder.feed(Tick(), 60.0)
    assert figures(folder) == SideFigures("away", NOW)
    assert folder.wakes[-1] == 60.0 + FOLD_EVERY_S
    folder.fails = None
    folder.feed(Tick(), 120.0)
    assert (len(folder.rows), figures(folder)) == (1, SideFigures(None))


def test_a_target_that_cannot_be_read_holds_up_no_other() -> None:
    """It is tried again; one that is refused is not, but told."""
    folder = Folder("lake.shop.orders")
    folder.unread = msg.FailureKind.RETRY
    folder.feed(Tick())
    assert figures(folder) == SideFigures("lake.shop.orders: why", NOW)
    folder.feed(msg.CountsHeld(TargetName("lake", "shop", "items"), {LANE: run("w1", 5)}), 1.0)
    folder.feed(Tick(), 60.0)
    assert [row.target for row in folder.rows] == ["lake.shop.items"]
    folder.unread = msg.FailureKind.REFUSED
    folder.feed(Tick(), 120.0)
    assert (folder.said[-1], figures(folder)) == ("counts_not_read", SideFigures(None))
    assert folder.wakes[-1] is None
