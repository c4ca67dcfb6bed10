"""A run that ends where the log ended: what it need not wait for, and when it is said to be over.

The committer says once that all up to the log's end is applied.
"""

from __future__ import annotations

from actors.committer.rule import CommitterLogic
from actors.contract import effects as fx
from actors.contract import messages as msg
from changes.model.model import TargetName
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from tests.actors.target.processor_rig import ProcessorRig, canal

SOURCE = TopicPartition("t", 0)
T = "lake.s.t"


def told(effects: list[object]) -> list[object]:
    return [e.message for e in effects if isinstance(e, fx.Tell) and e.to.role == "supervisor"]


def test_a_log_that_ends_amid_a_message_is_caught_up_without_the_rest() -> None:
    """The missing part may never come; what is whole is waited for, and the frontier stays."""
    logic = CommitterLogic("p", Snapshot("p", "g"), 5.0, {SOURCE: 10})
    logic.handle(msg.EpochStarted(1, SOURCE, 0, 10, 0), 0.0)
    sent = msg.Dispatched(1, SOURCE, 10, {T: (0, 8)}, fragments={"shard a": 4})
    assert msg.CaughtUp("p") not in told(logic.handle(sent, 1.0))
    written = msg.Written(TargetName.parse(T), {SOURCE: 1}, {SOURCE: 8}, None)
    assert msg.CaughtUp("p") in told(logic.handle(written, 2.0))
    assert logic.snapshot().partitions[SOURCE].frontier == 4


def test_a_topic_that_is_gone_is_not_waited_for() -> None:
    """The run would never end. What was read of it and is lost with it is told, once."""
    other = TopicPartition("u", 0)
    logic = CommitterLogic("p", Snapshot("p", "g"), 5.0, {SOURCE: 0, other: 10})
    logic.handle(msg.EpochStarted(1, SOURCE, 0, 0, 0, more=True), 0.0)
    logic.handle(msg.EpochStarted(2, other, 4, 10, 4), 0.0)
    logic.handle(msg.Dispatched(2, other, 7, {T: (4, 6)}), 1.0)
    logic.handle(msg.Release((other,)), 2.0)
    logic.handle(msg.Saved({}), 2.0)
    out = logic.handle(msg.TopicsGone(frozenset({"u"})), 3.0)
    fields = {"topic": "u", "applied_below": {"u:0": 4}, "read_not_applied": 3}
    assert fx.Log("warning", "topic_gone", fields) in out
    assert msg.CaughtUp("p") in told(out)
    assert not logic.handle(msg.TopicsGone(frozenset({"u"})), 4.0)


def test_what_is_the_last_of_a_bounded_run_need_not_get_old() -> None:
    """From the last batch on that was given, not from the word: that one may come first."""
    rig = ProcessorRig(batch_age_s=60.0)
    rig.send("t", (0, canal("t", 1, "a")))
    rig.write()  # its opening
    rig.feed(msg.Flush(2))
    assert not rig.work
    rig.send("t", (1, canal("t", 2, "b")))
    rig.write()
    assert rig.rows["lake.db.t"] == {(1,): "a", (2,): "b"}


def test_progress_is_told_now_and_then() -> None:
    """A report takes a look at all partitions: of thousands of writes a second not each has one."""
    logic = CommitterLogic("p", Snapshot("p", "g"), 5.0, None)
    logic.handle(msg.EpochStarted(1, SOURCE, 0, 10, 0), 0.0)
    logic.handle(msg.Dispatched(1, SOURCE, 10, {T: (0, 9)}), 1.0)

    def written(through: int, now: float) -> list[object]:
        done = msg.Written(TargetName.parse(T), {SOURCE: 1}, {SOURCE: through}, None, changes=1)
        return told(logic.handle(done, now))

    assert written(0, 1.0) == [msg.Progress("p", 9, 1)]
    assert written(1, 1.1) == []
    assert written(2, 1.3) == [msg.Progress("p", 7, 3)]
