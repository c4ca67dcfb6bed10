"""The lane ledger against a naive oracle: a set of outstanding offsets."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from offsets.ledger import LaneLedger, LedgerError
from offsets.position import Lane, Run, TopicPartition

SOURCE = TopicPartition("binlog", 0)
TARGETS = ("lake.s.a", "lake.s.b", "lake.s.c")


def ledger_at(position: int) -> LaneLedger:
    ledger = LaneLedger()
    ledger.assign(SOURCE, position)
    return ledger


def test_nothing_pending_puts_the_frontier_at_the_position() -> None:
    """At the tail the frontier equals the consumer's position, so lag is zero."""
    ledger = ledger_at(7)
    ledger.dispatched(SOURCE, 20, {})
    assert ledger.frontier(SOURCE) == 20


def test_an_earlier_open_offset_holds_a_later_finished_one() -> None:
    """414 open and 417 done commits 414: an earlier design lost 414 here."""
    ledger = ledger_at(414)
    ledger.dispatched(SOURCE, 418, {"lake.s.a": (414, 414), "lake.s.b": (415, 417)})
    ledger.done(Lane(SOURCE, "lake.s.b"), 417)
    assert ledger.frontier(SOURCE) == 414


def test_a_partial_acknowledgement_lifts_the_lane() -> None:
    """Done inside the interval moves its first offset just above."""
    ledger = ledger_at(0)
    ledger.dispatched(SOURCE, 10, {"lake.s.a": (2, 9)})
    ledger.done(Lane(SOURCE, "lake.s.a"), 5)
    assert ledger.pending(Lane(SOURCE, "lake.s.a")) == (6, 9)
    assert ledger.frontier(SOURCE) == 6


def test_gaps_in_the_log_hold_nothing_up() -> None:
    """Offsets 0, 1, 7 (markers between) end at the position, not at the last plus one."""
    ledger = ledger_at(0)
    ledger.dispatched(SOURCE, 11, {"lake.s.a": (0, 7)})
    ledger.done(Lane(SOURCE, "lake.s.a"), 7)
    assert ledger.frontier(SOURCE) == 11


def test_a_repeated_acknowledgement_changes_nothing() -> None:
    """An acknowledgement below the pending stretch is harmless."""
    ledger = ledger_at(0)
    ledger.dispatched(SOURCE, 5, {"lake.s.a": (0, 4)})
    ledger.done(Lane(SOURCE, "lake.s.a"), 4)
    ledger.dispatched(SOURCE, 9, {"lake.s.a": (6, 8)})
    ledger.done(Lane(SOURCE, "lake.s.a"), 4)
    assert ledger.frontier(SOURCE) == 6


def test_an_acknowledgement_above_the_position_is_a_bug() -> None:
    """What was never dispatched can't be done."""
    with pytest.raises(LedgerError, match="never dispatched"):
        ledger_at(3).done(Lane(SOURCE, "lake.s.a"), 3)


def test_a_position_that_goes_back_is_a_bug() -> None:
    """Offsets of one assignment only grow."""
    with pytest.raises(LedgerError, match="goes back"):
        ledger_at(3).dispatched(SOURCE, 2, {})


def test_a_lane_outside_the_batch_is_a_bug() -> None:
    """A lane's offsets lie between the old and the new position."""
    with pytest.raises(LedgerError, match="outside"):
        ledger_at(3).dispatched(SOURCE, 6, {"lake.s.a": (2, 4)})


def test_a_partition_that_is_not_assigned_is_refused() -> None:
    """After a revoke the ledger knows nothing of the partition."""
    ledger = ledger_at(3)
    ledger.drop(SOURCE)
    with pytest.raises(LedgerError, match="not assigned"):
        ledger.frontier(SOURCE)


def test_partitions_do_not_hold_each_other() -> None:
    """An open lane of one partition leaves the other's frontier alone."""
    other = TopicPartition("binlog", 1)
    ledger = ledger_at(0)
    ledger.assign(other, 100)
    ledger.dispatched(SOURCE, 5, {"lake.s.a": (0, 4)})
    ledger.dispatched(other, 105, {"lake.s.b": (100, 104)})
    ledger.done(Lane(other, "lake.s.b"), 104)
    assert ledger.frontiers() == {SOURCE: 0, other: 105}


def test_the_holders_of_the_frontier_come_lowest_first() -> None:
    """Status can name the culprit."""
    ledger = ledger_at(0)
    ledger.dispatched(SOURCE, 9, {"lake.s.a": (4, 8), "lake.s.b": (1, 7)})
    assert list(ledger.holders(SOURCE)) == [("lake.s.b", 1), ("lake.s.a", 4)]


class LedgerMachine(RuleBasedStateMachine):
    """Random dispatches and acknowledgements; the oracle is every outstanding (offset, target)."""

    @initialize(start=st.integers(0, 50))
    def begin(self, start: int) -> None:
        """Assign the partition somewhere."""
        self.ledger = ledger_at(start)
        self.position = start
        self.outstanding: set[tuple[int, str]] = set()
        self.sent: dict[str, list[int]] = {target: [] for target in TARGETS}
        self.acked = dict.fromkeys(TARGETS, -1)
        self.last_frontier = start

    @rule(
        messages=st.lists(
            st.tuples(st.integers(0, 4), st.sets(st.sampled_from(TARGETS))), max_size=8
        ),
        tail=st.integers(0, 3),
    )
    def dispatch(self, messages: list[tuple[int, set[str]]], tail: int) -> None:
        """A batch of messages for random targets with random gaps between and behind them."""
        lanes: dict[str, tuple[int, int]] = {}
        offset = self.position
        for gap, targets in messages:
            offset += gap
            for target in targets:
                first, _ = lanes.get(target, (offset, offset))
                lanes[target] = (first, offset)
                self.outstanding.add((offset, target))
                self.sent[target].append(offset)
            offset += 1
        self.position = offset + tail
        self.ledger.dispatched(SOURCE, self.position, lanes)

    @precondition(lambda self: self.outstanding)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        """A target is done up to one of the offsets it was sent, old ones included."""
        target = data.draw(st.sampled_from([t for t in TARGETS if self.sent[t]]))
        through = data.draw(st.sampled_from(self.sent[target]))
        self.ledger.done(Lane(SOURCE, target), through)
        self.acked[target] = max(self.acked[target], through)
        self.outstanding = {
            (offset, name)
            for offset, name in self.outstanding
            if name != target or offset > through
        }

    @invariant()
    def never_passes_an_unfinished_offset(self) -> None:
        """The frontier is at most the lowest outstanding offset and never goes back."""
        frontier = self.ledger.frontier(SOURCE)
        lowest = min((offset for offset, _ in self.outstanding), default=self.position)
        assert frontier <= lowest
        assert frontier >= self.last_frontier
        self.last_frontier = frontier

    @invariant()
    def holds_back_only_for_a_reason(self) -> None:
        """The frontier stays above what the lowest unfinished lane has acknowledged."""
        frontier = self.ledger.frontier(SOURCE)
        if not self.outstanding:
            assert frontier == self.position
        else:
            floors = [
                min(
                    max(self.acked[target] + 1, 0) or offset,
                    min(o for o, t in self.outstanding if t == target),
                )
                for offset, target in self.outstanding
            ]
            assert frontier >= min(floors)


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=200, stateful_step_count=30)


def test_an_open_message_holds_the_frontier_at_its_first_part() -> None:
    """Whatever is done behind it: a restart must read its parts again."""
    ledger = ledger_at(10)
    ledger.dispatched(SOURCE, 13, {"lake.s.a": (11, 12)}, fragments={"shard 1": 10})
    ledger.done(Lane(SOURCE, "lake.s.a"), 12)
    assert ledger.frontier(SOURCE) == 10
    assert list(ledger.holders(SOURCE)) == [("open message shard 1", 10)]


def test_a_whole_message_takes_its_fragments_place_in_one_step() -> None:
    """The frontier stays at the first part until each of the targets has the message."""
    ledger = ledger_at(10)
    ledger.dispatched(SOURCE, 12, {}, fragments={"shard 1": 10})
    ledger.dispatched(SOURCE, 14, {}, {"lake.s.a": [Run(10, 13)], "lake.s.b": [Run(10, 13)]})
    ledger.done(Lane(SOURCE, "lake.s.a"), 13)
    assert ledger.frontier(SOURCE) == 10
    ledger.done(Lane(SOURCE, "lake.s.b"), 13)
    assert ledger.frontier(SOURCE) == 14


def test_a_run_is_never_lifted() -> None:
    """What is done among its parts is other messages: half of a message can't be read again."""
    ledger = ledger_at(10)
    ledger.dispatched(SOURCE, 16, {"lake.s.a": (12, 13)}, {"lake.s.a": [Run(10, 15)]})
    ledger.done(Lane(SOURCE, "lake.s.a"), 13)
    assert ledger.frontier(SOURCE) == 10
    assert ledger.pending(Lane(SOURCE, "lake.s.a")) == (10, 15)


def test_a_lane_is_as_low_as_the_lowest_of_its_runs() -> None:
    """A message that began earlier may be whole later (the parts of shards interleave)."""
    ledger = ledger_at(0)
    ledger.dispatched(SOURCE, 9, {}, {"lake.s.a": [Run(4, 6), Run(1, 7)]})
    ledger.done(Lane(SOURCE, "lake.s.a"), 6)
    assert ledger.frontier(SOURCE) == 1


def test_a_run_whose_first_part_nothing_held_is_a_bug() -> None:
    """The frontier may have passed it, and a restart would not find it."""
    with pytest.raises(LedgerError, match=r"nothing held 2 for a run of lake\.s\.a"):
        ledger_at(3).dispatched(SOURCE, 6, {}, {"lake.s.a": [Run(2, 4)]})


def test_an_open_message_that_nothing_held_before_is_a_bug() -> None:
    """It was left out of an earlier batch's."""
    ledger = ledger_at(3)
    ledger.dispatched(SOURCE, 6, {}, fragments={"s": 4})
    ledger.dispatched(SOURCE, 7, {})
    with pytest.raises(LedgerError, match="nothing held 4 for the open message s"):
        ledger.dispatched(SOURCE, 9, {}, fragments={"s": 4})


def test_runs_end_in_the_batch_and_in_order() -> None:
    """An acknowledgement takes all runs up to an offset, so they come by their last parts."""
    with pytest.raises(LedgerError, match=r"does not end in 5\.\.8"):
        ledger_at(3).dispatched(SOURCE, 9, {}, {"lake.s.a": [Run(3, 5), Run(3, 4)]})


def test_acknowledgements_leave_no_trace_behind_a_stuck_lane() -> None:
    """One lane that never ends must not let the ledger grow with what others do."""
    ledger = ledger_at(0)
    ledger.dispatched(SOURCE, 1, {"lake.s.a": (0, 0)})
    for offset in range(1, 5000):
        ledger.dispatched(SOURCE, offset + 1, {"lake.s.b": (offset, offset)})
        ledger.done(Lane(SOURCE, "lake.s.b"), offset)
    assert len(ledger._partitions[SOURCE].order) == 1
    assert ledger.frontier(SOURCE) == 0


class SplitMachine(RuleBasedStateMachine):
    """Messages of one to four parts of three shards, interleaved; the oracle is a list of them."""

    @initialize(start=st.integers(0, 50))
    def begin(self, start: int) -> None:
        """Assign the partition somewhere."""
        self.ledger = ledger_at(start)
        self.position = start
        self.open: dict[str, tuple[int, int]] = {}
        self.pending: list[tuple[str, int, int]] = []
        self.lifted = dict.fromkeys(TARGETS, 0)

    @rule(
        parts=st.lists(
            st.tuples(
                st.sampled_from(["s1", "s2", "s3"]),
                st.integers(1, 4),
                st.sets(st.sampled_from(TARGETS)),
            ),
            max_size=8,
        )
    )
    def dispatch(self, parts: list[tuple[str, int, set[str]]]) -> None:
        """A batch: each part goes on with its shard's open message, or begins one."""
        lanes: dict[str, tuple[int, int]] = {}
        runs: dict[str, list[Run]] = {}
        for offset, (shard, size, targets) in enumerate(parts, self.position):
            first, missing = self.open.pop(shard, (offset, size))
            if missing > 1:
                self.open[shard] = (first, missing - 1)
                continue
            for target in targets:
                self.pending.append((target, first, offset))
                if first == offset:
                    lanes[target] = (lanes.get(target, (offset, 0))[0], offset)
                else:
                    runs.setdefault(target, []).append(Run(first, offset))
        self.position += len(parts)
        fragments = {shard: first for shard, (first, _) in self.open.items()}
        self.ledger.dispatched(SOURCE, self.position, lanes, runs, fragments)

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        """A target has all messages up to one of those that are pending."""
        target, _, through = data.draw(st.sampled_from(self.pending))
        self.ledger.done(Lane(SOURCE, target), through)
        self.pending = [p for p in self.pending if p[0] != target or p[2] > through]
        self.lifted[target] = through + 1

    @invariant()
    def holds_what_is_open_and_nothing_else(self) -> None:
        """Exactly at the lowest first part; a whole message may hold from its stretch's begin."""
        highest = lowest = min([self.position, *(first for first, _ in self.open.values())])
        for target, first, through in self.pending:
            highest = min(highest, first)
            lowest = min(lowest, first if first < through else min(first, self.lifted[target]))
        assert lowest <= self.ledger.frontier(SOURCE) <= highest


TestSplit = SplitMachine.TestCase
TestSplit.settings = settings(max_examples=200, stateful_step_count=25)


def test_an_open_message_does_not_keep_all_that_is_whole_from_being_applied() -> None:
    """A run up to the log's end, which is amid a message, must not wait for the rest."""
    ledger = ledger_at(10)
    ledger.dispatched(SOURCE, 13, {"lake.s.a": (11, 12)}, fragments={"shard 1": 10})
    assert ledger.applied(SOURCE) == 11
    ledger.done(Lane(SOURCE, "lake.s.a"), 12)
    assert (ledger.applied(SOURCE), ledger.frontier(SOURCE)) == (13, 10)
