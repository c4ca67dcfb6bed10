"""What the committer asks of the stores, and when the group may hear of it."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from actors.committer.rule import CommitterLogic
from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.runtime.effect_handlers import CommitterEffects
from actors.runtime.mailbox import Tick
from offsets.position import EpochSpan, LogEpoch, TopicPartition
from offsets.snapshot import PartitionState, Snapshot
from offsets.store import Loaded, StoreError

MINE, THEIRS = TopicPartition("t", 0), TopicPartition("t", 1)
RECORDED = Snapshot(
    "p", "g", {"t": "id"}, {MINE: PartitionState(5, 5), THEIRS: PartitionState(3, 3)}
)


def assigned(commits: bool) -> CommitterLogic:
    """A committer that was given one of the two partitions, at 5, and has passed it to 9."""
    logic = CommitterLogic("p", RECORDED, 5.0, None, commits=commits)
    logic.handle(msg.EpochStarted(1, MINE, 5, 9, 5), 0.0)
    logic.handle(msg.Dispatched(1, MINE, 9, {}), 0.0)
    return logic


def stored(logic: CommitterLogic) -> PartitionState:
    """What it would have stored now of its own partition."""
    (save,) = (e for e in logic.handle(Tick(), 1.0) if isinstance(e, fx.SaveSnapshot))
    return save.snapshot.partitions[MINE]


def test_the_id_of_a_topic_is_recorded_with_its_first_position() -> None:
    """Not before: a topic that is known and has no position would begin at the configured start."""
    logic = CommitterLogic("p", RECORDED, 5.0, None)
    new = TopicPartition("new", 0)
    assert "new" not in logic.snapshot().topic_ids
    first = msg.EpochStarted(1, MINE, 5, 9, 5, topic_id="id", more=True)
    assert not logic.handle(first, 0.0)
    (save,) = logic.handle(msg.EpochStarted(2, new, 0, 3, None, topic_id="id-of-new"), 0.0)
    assert isinstance(save, fx.SaveSnapshot)
    assert save.snapshot.topic_ids == {"t": "id", "new": "id-of-new"}
    assert save.snapshot.partitions[new].frontier == 0


def saved(logic: CommitterLogic, request: object) -> list[object]:
    """What it does once the stores have what a message made it save."""
    (save,) = (e for e in logic.handle(request, 1.0) if isinstance(e, fx.SaveSnapshot))
    assert save.owned == (MINE,)
    frontiers = {source: state.frontier for source, state in save.snapshot.partitions.items()}
    return logic.handle(msg.Saved(frontiers), 1.0)


def test_the_group_hears_of_what_the_stores_hold() -> None:
    """Of its own partitions, once they are stored."""
    told = saved(assigned(True), Tick())
    assert told == [
        fx.Tell(Address("p", "fetcher"), msg.CommitFrontiers({MINE: 9}, {MINE: 1}, False))
    ]


def test_without_kafka_commit_the_group_hears_nothing() -> None:
    """Neither regularly, nor in a revoke."""
    assert saved(assigned(False), Tick()) == []
    assert saved(assigned(False), msg.Release((MINE,))) == [fx.Reply({})]


def test_without_kafka_commit_the_consumer_is_closed_all_the_same() -> None:
    """The last word to the fetcher carries no frontier."""
    told = saved(assigned(False), msg.SaveNow())
    assert told == [fx.Tell(Address("p", "fetcher"), msg.CommitFrontiers({}, {}, True))]


def test_a_reset_frontier_is_committed_at_once_and_then_counts_as_any_other() -> None:
    """Until the broker has confirmed it, no start may believe the group's commit from before."""
    reset = Snapshot("p", "g", {"t": "id"}, {MINE: PartitionState(2, None, reset=True)})
    logic = CommitterLogic("p", reset, 5.0, None)
    told = saved(logic, msg.EpochStarted(1, MINE, 2, 9, confirmed=7))
    assert told == [
        fx.Tell(Address("p", "fetcher"), msg.CommitFrontiers({MINE: 2}, {MINE: 1}, False))
    ]
    assert logic.snapshot().partitions == {MINE: PartitionState(2, None, reset=True)}
    logic.handle(msg.Confirmed({MINE: 2}), 1.0)
    assert logic.snapshot().partitions == {MINE: PartitionState(2, 2)}


class RefusingStore:
    """Holds what it is asked, and fails it."""

    name = "file"

    def __init__(self, error: StoreError | None) -> None:
        self.error = error
        self.asked: list[Snapshot] = []

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def get(self) -> Loaded:
        return Loaded(None)

    def set(self, batch: Snapshot) -> Future[None]:
        self.asked.append(batch)
        done: Future[None] = Future()
        if self.error:
            done.set_exception(self.error)
        else:
            done.set_result(None)
        return done


def test_a_store_gets_this_members_partitions_alone() -> None:
    """In a shared one the others' newer positions would be lost under what is remembered here."""
    store = RefusingStore(None)
    heard = CommitterEffects(store)(fx.SaveSnapshot(RECORDED, (MINE,)))
    assert heard == msg.Saved({MINE: 5, THEIRS: 3})
    assert [set(batch.partitions) for batch in store.asked] == [{MINE}]


def test_a_store_that_fails_is_named() -> None:
    """The committer tries again; nothing is committed meanwhile."""
    store = RefusingStore(StoreError("file: disk full"))
    heard = CommitterEffects(store)(fx.SaveSnapshot(RECORDED, (MINE,)))
    assert heard == msg.SaveFailed("file: disk full")
    logic = assigned(True)
    logic.handle(Tick(), 1.0)
    told = logic.handle(heard, 1.0)
    assert told == [fx.Log("error", "offsets_not_stored", {"reason": "file: disk full"})]


@pytest.mark.parametrize("commits", [True, False])
def test_a_refusal_at_the_end_ends_the_pipeline_named(commits: bool) -> None:
    """The exit status must not say that all is recorded."""
    logic = assigned(commits)
    logic.handle(msg.SaveNow(), 1.0)
    told = logic.handle(msg.SaveFailed("file: disk full"), 1.0)
    failed = msg.PipelineFailed("p", "the positions can't be stored: file: disk full")
    assert fx.Tell(Address("p", "supervisor"), failed) in told


def test_the_leader_epoch_below_the_frontier_is_stored_with_it() -> None:
    """What was recorded, until a message of this run is done; then that one's, with the revoke."""
    logic = CommitterLogic("p", RECORDED, 5.0, None)
    logic.handle(msg.EpochStarted(1, MINE, 5, 9, 5, LogEpoch(2, 5)), 0.0)
    assert stored(logic).log == LogEpoch(2, 5)
    span = EpochSpan(7, 5, 8)
    logic.handle(msg.Dispatched(1, MINE, 9, {}, epochs=(span,)), 0.0)
    assert stored(logic) == PartitionState(9, 5, LogEpoch(7, 9))
    logic.handle(msg.Release((MINE,)), 1.0)
    assert logic.snapshot().partitions[MINE].log == LogEpoch(7, 9)


def test_a_partition_that_comes_where_it_was_left_is_stored() -> None:
    """A save before it came was of no partition: a file that is new would never name it."""
    logic = CommitterLogic("p", RECORDED, 5.0, None)
    (early,) = (e for e in logic.handle(Tick(), 1.0) if isinstance(e, fx.SaveSnapshot))
    logic.handle(msg.Saved({}), 1.0)
    (save,) = (
        e
        for e in logic.handle(msg.EpochStarted(1, MINE, 5, 9, 5), 2.0)
        if isinstance(e, fx.SaveSnapshot)
    )
    assert early.snapshot == save.snapshot
    assert (early.owned, save.owned) == ((), (MINE,))
