"""What a reset would do and what it would lose, planned without broker and sinks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets.position import TopicPartition
from offsets.recovery import PositionError, StartAt, Watermarks, start_position
from offsets.reset import (
    MarkMove,
    PartitionMove,
    ResetPlan,
    ResetRequest,
    ResetSurroundings,
    ResetTo,
    plan_reset,
)
from offsets.snapshot import MarkMoves, PartitionState, Snapshot, SpillMark, TargetMark
from offsets.snapshot_text import decode, encode

S = TopicPartition("shop", 0)
OTHER = TopicPartition("shop", 1)
ORDERS, ITEMS = "lake.s.orders", "lake.s.items"
RECORDED = Snapshot(
    "p", "g", {"shop": "id"},
    {S: PartitionState(50, 48), OTHER: PartitionState(7, 7)},
    {ORDERS: TargetMark("1", {S: 49}), ITEMS: TargetMark("2", {S: 30, OTHER: 6})},
)  # fmt: skip
AROUND = ResetSurroundings({S: Watermarks(10, 100), OTHER: Watermarks(0, 7)}, {S: 48, OTHER: 7})


def plan(
    to: str,
    at: int | None = None,
    target: str | None = None,
    recorded: Snapshot = RECORDED,
    around: ResetSurroundings = AROUND,
) -> ResetPlan:
    """Of partition 0."""
    positions = {} if at is None else {S: at}
    return plan_reset(recorded, around, ResetRequest(ResetTo(to), (S,), positions, target))


def test_back_to_the_earliest_lowers_every_mark_of_the_partition() -> None:
    """The frontier alone would be useless: the targets would drop what is read again."""
    found = plan("earliest")
    assert found.partitions == (PartitionMove(S, 50, 10, 48),)
    assert found.marks == (MarkMove(ITEMS, S, 30, 9), MarkMove(ORDERS, S, 49, 9))
    assert (found.losses, found.refusals) == ((), ())
    assert found.snapshot.partitions == {
        S: PartitionState(10, None, reset=True, reread=100, withdraws=10),
        OTHER: PartitionState(7, 7),
    }
    assert found.snapshot.targets[ITEMS] == TargetMark(
        "2", {S: 30, OTHER: 6}, MarkMoves(lower={S: 9})
    )


def test_up_to_where_the_tables_hold_more_is_remembered() -> None:
    """To the log's end, or beyond it where it was cut off; and over a second reset. So is the
    lowest place from which no cut stands."""
    first = plan("offset", 20).snapshot
    carried = replace(first, targets={})
    for to, expected in (("offset", 100), ("latest", None)):
        again = plan(to, 15 if to == "offset" else None, recorded=carried).snapshot
        assert again.partitions[S].reread == expected
        assert again.partitions[S].withdraws == (15 if to == "offset" else 20)
    later = replace(carried, partitions={S: replace(carried.partitions[S], frontier=40)})
    assert plan("offset", 30, recorded=later).snapshot.partitions[S].withdraws == 20
    ahead = {"lake.shop.items": TargetMark("2", {S: 170})}
    found = plan("offset", 20, recorded=replace(RECORDED, targets=ahead)).snapshot
    assert found.partitions[S].reread == 171


def test_where_reading_began_is_remembered() -> None:
    """What is skipped was not read; what is put back below it will be."""
    state = PartitionState(50, 48, begin=30)
    recorded = replace(RECORDED, partitions={S: state, OTHER: PartitionState(7, 7)})
    for to, begin in ((60, 60), (40, 30), (20, 20)):
        moved = plan("offset", to, recorded=recorded).snapshot
        assert moved.partitions[S].begin == begin
    unknown = plan("offset", 60, recorded=replace(RECORDED, partitions={})).snapshot
    assert unknown.partitions[S].begin == 60


def test_the_format_of_a_topic_that_is_read_anew_is_told_anew() -> None:
    """The way to have it told again; for one table nothing is known anew."""
    recorded = replace(RECORDED, formats={"shop": "ogg-json", "other": "canal-json"})
    assert plan("earliest", recorded=recorded).snapshot.formats == {"other": "canal-json"}
    assert plan("earliest", None, ITEMS, recorded).snapshot.formats == recorded.formats
    assert plan("frontier", recorded=recorded).snapshot.formats == recorded.formats


def test_a_target_that_is_below_the_new_position_is_left_alone() -> None:
    """It has nothing of what is read again, and its own lies behind it for good."""
    assert plan("offset", 40).marks == (MarkMove(ORDERS, S, 49, 39),)


def test_one_table_is_lowered_and_the_others_drop_what_comes_again() -> None:
    """The frontier goes down to it."""
    found = plan("offset", 20, ITEMS)
    assert found.partitions[0].after == 20
    assert found.marks == (MarkMove(ITEMS, S, 30, 19),)
    assert found.snapshot.targets[ORDERS].moves is None


@pytest.mark.parametrize(("to", "at"), [("latest", 100), ("timestamp", None), ("offset", 60)])
def test_forward_is_a_loss_that_is_named(to: str, at: int | None) -> None:
    """What lies between is applied nowhere; the marks are lifted, or it would come later."""
    found = plan(to, at)
    where = 60 if to == "offset" else 100
    assert f"shop:0: 50 -> {where} goes forward" in found.losses[0]
    assert found.snapshot.targets[ORDERS].moves == MarkMoves(lift={S: where - 1})
    assert found.snapshot.partitions[S].frontier == where


def test_forward_for_one_table_leaves_the_frontier() -> None:
    """The others have their changes yet to come."""
    found = plan("offset", 60, ORDERS)
    assert "is skipped for lake.s.orders" in found.losses[0]
    assert found.snapshot.partitions[S].frontier == 50
    assert found.marks == (MarkMove(ORDERS, S, 49, 59),)


def test_forward_for_a_table_without_a_mark_is_refused() -> None:
    """There is nothing to lift, and so nothing would be skipped."""
    source = replace(RECORDED, targets={ORDERS: TargetMark("1", {})})
    assert "no mark there that could be lifted" in plan("offset", 60, ORDERS, source).refusals[0]


def test_a_log_that_begins_above_the_frontier_can_only_be_skipped() -> None:
    """Retention overtook the reader: earliest is forward then."""
    around = replace(AROUND, logs={S: Watermarks(70, 100)})
    (loss,) = plan("earliest", around=around).losses
    assert "50 -> 70 goes forward" in loss
    assert "the log has none below 70" in loss


@pytest.mark.parametrize("at", [9, 101])
def test_outside_the_log_is_refused_and_both_are_named(at: int) -> None:
    """No force helps: the next start would refuse it."""
    assert plan("offset", at).refusals == (f"shop:0: {at} is outside the log, which holds 10..100",)


def test_marks_beyond_the_logs_end_are_a_loss() -> None:
    """The topic was cut: what the targets have of that can't be applied again."""
    around = replace(AROUND, logs={S: Watermarks(10, 40)})
    found = plan("latest", around=around)
    assert found.marks == (MarkMove(ORDERS, S, 49, 39),)
    assert "lake.s.orders holds changes up to 49, but the log ends at 40" in found.losses[0]


def test_a_compacted_topic_can_not_fill_a_changelog_again() -> None:
    """Its rows would go, and the messages they came from are no more."""
    around = replace(AROUND, compacted={"shop": "is compacted"}, changelogs=True)
    assert "the topic is compacted" in plan("earliest", around=around).losses[0]
    assert plan("earliest", around=replace(around, changelogs=False)).losses == ()


def test_to_the_frontier_moves_the_group_alone() -> None:
    """After somebody rewound the group: no target loses or gains anything."""
    found = plan("frontier", around=replace(AROUND, committed={S: 20}))
    assert found.partitions == (PartitionMove(S, 50, 50, 20),)
    assert (found.marks, found.losses, found.nothing) == ((), (), False)


def test_one_table_to_the_frontier_is_lowered_to_it() -> None:
    """It was ahead of the slowest one."""
    ahead = replace(RECORDED, targets={ORDERS: TargetMark("1", {S: 80})})
    assert plan("frontier", None, ORDERS, ahead).marks == (MarkMove(ORDERS, S, 80, 49),)


def test_what_is_so_already_is_nothing() -> None:
    """The group stands there too."""
    around = replace(AROUND, committed={S: 50})
    assert plan("frontier", around=around).nothing
    assert not plan("earliest").nothing


def test_a_partition_of_which_nothing_is_recorded_takes_the_groups_place() -> None:
    """Without any word there is no frontier to stay at."""
    empty = Snapshot("p", "g")
    assert plan("earliest", recorded=empty).partitions == (PartitionMove(S, 48, 10, 48),)
    nowhere = replace(AROUND, committed={})
    assert plan("latest", recorded=empty, around=nowhere).partitions[0].before is None
    assert "nothing is recorded" in plan("frontier", recorded=empty, around=nowhere).refusals[0]


def test_a_table_nobody_recorded_is_named_and_can_be_forced() -> None:
    """It may be misspelt; or the file was lost, and the table is there."""
    found = plan("earliest", None, "lake.s.other")
    assert "lake.s.other is not recorded (lake.s.items, lake.s.orders)" in found.losses[0]
    assert found.snapshot.targets["lake.s.other"] == TargetMark(None, {}, MarkMoves(lower={S: 9}))


def test_quarantined_messages_are_in_the_way() -> None:
    """What is read again below a spill would be dropped as known, and lost."""
    spilled = replace(RECORDED, spills={ORDERS: SpillMark(9, {S: (40, 45)})})
    assert "lake.s.orders is in quarantine" in plan("earliest", recorded=spilled).refusals[0]
    assert plan("earliest", None, ITEMS, spilled).refusals == ()
    assert plan_reset(
        spilled, AROUND, ResetRequest(ResetTo.EARLIEST, (OTHER,))
    ).refusals == ()  # fmt: skip


def test_a_reset_that_is_not_carried_out_is_in_the_way() -> None:
    """Two of them in a row would delete rows that the second one does not read again."""
    first = plan("earliest").snapshot
    assert "is recorded and not carried out yet" in plan("latest", recorded=first).refusals[0]


# --- whatever is asked


offsets = st.integers(0, 30)
states = st.builds(
    lambda frontier, behind: PartitionState(frontier, max(0, frontier - behind)),
    offsets,
    st.integers(0, 3),
)
hwms = st.dictionaries(st.sampled_from([S, OTHER]), st.integers(-1, 30))
snapshots = st.builds(
    lambda partitions, targets: Snapshot("p", "g", {}, partitions, targets),
    st.dictionaries(st.sampled_from([S, OTHER]), states),
    st.dictionaries(
        st.sampled_from([ORDERS, ITEMS]), st.builds(lambda marks: TargetMark("1", marks), hwms)
    ),
)
logs = st.builds(lambda low, size: Watermarks(low, low + size), offsets, offsets)
arounds = st.builds(
    lambda one, two, committed: ResetSurroundings({S: one, OTHER: two}, committed),
    logs,
    logs,
    st.dictionaries(st.sampled_from([S, OTHER]), offsets),
)
requests = st.builds(
    ResetRequest,
    st.sampled_from(ResetTo),
    st.sampled_from([(S,), (S, OTHER)]),
    st.dictionaries(st.sampled_from([S, OTHER]), offsets),
    st.sampled_from([None, ORDERS, ITEMS]),
)


@given(snapshots, arounds, requests)
def test_nothing_between_is_skipped_unless_it_is_called_a_loss(
    recorded: Snapshot, around: ResetSurroundings, request: ResetRequest
) -> None:
    """For each target: what it lacks and what it will drop have nothing in common but losses.

    What a target lacks lies at or above the old frontier, and what is taken from it (above its
    lowered mark) as well; what it drops is below the new frontier, or at or below its new mark.
    """
    found = plan_reset(recorded, around, request)
    if found.refusals:
        assert found.snapshot == recorded
        return
    for move in found.partitions:
        source = move.source
        for mark in found.snapshot.targets.values():
            held = mark.hwms.get(source, -1)
            after = (mark.moves or MarkMoves()).of(mark.hwms).get(source, -1)
            wanted = held + 1 if after >= held else after + 1  # the first that it must get
            if move.before is not None:
                wanted = max(wanted, move.before) if after >= held else wanted
            given = max(move.after, after + 1)  # the first that it will get
            if move.before is not None and given > wanted:
                assert any(str(source) in loss for loss in found.losses)


@given(snapshots, arounds, requests)
def test_all_of_what_was_asked_for_comes_about(
    recorded: Snapshot, around: ResetSurroundings, request: ResetRequest
) -> None:
    """Back: each concerned target gets what lies at and above the position. Forward: nothing below.

    But where only the group is to follow, and of a lane that a target does not have.
    """
    found = plan_reset(recorded, around, request)
    group_only = request.to is ResetTo.FRONTIER and request.target is None
    if found.refusals or group_only:
        return
    for source in request.sources:
        log = around.logs[source]
        to = {ResetTo.EARLIEST: log.low, ResetTo.LATEST: log.high}.get(
            request.to, request.at.get(source, log.high)
        )
        (move,) = (move for move in found.partitions if move.source == source)
        if request.to is ResetTo.FRONTIER:
            assert move.before is not None
            to = move.before
        forward = move.before is not None and to > move.before
        if request.target is None:
            assert move.after == to
        elif move.before is not None:
            assert move.after == min(to, move.before)
        for name, mark in found.snapshot.targets.items():
            if source not in mark.hwms or request.target not in (None, name):
                continue
            after = (mark.moves or MarkMoves()).of(mark.hwms)[source]
            assert after == (max if forward else min)(mark.hwms[source], to - 1)


@given(snapshots, arounds, requests)
def test_the_next_start_follows_the_plan(
    recorded: Snapshot, around: ResetSurroundings, request: ResetRequest
) -> None:
    """Whatever the group's commit is: a crash before it is moved must not bring the old one back.

    Rows are deleted with the lowered marks; a start above the new frontier would lose them.
    """
    found = plan_reset(recorded, around, request)
    snapshot = decode(encode(found.snapshot))
    assert snapshot == found.snapshot
    for move in found.partitions:
        try:
            start = start_position(
                move.source,
                recorded=snapshot.partitions.get(move.source),
                committed=around.committed.get(move.source),
                log=around.logs[move.source],
                configured=StartAt.LATEST,
                configured_offset=None,
            )
        except PositionError:
            # Only where the frontier was outside before and one table is moved below it.
            assert request.target is not None
            continue
        assert start.offset == move.after


@given(snapshots, arounds, requests)
def test_only_what_was_asked_for_is_touched(
    recorded: Snapshot, around: ResetSurroundings, request: ResetRequest
) -> None:
    """Other partitions, other targets, versions and marks as they were published."""
    after = plan_reset(recorded, around, request).snapshot
    for source, state in recorded.partitions.items():
        if source not in request.sources:
            assert after.partitions[source] == state
    for name, mark in recorded.targets.items():
        assert replace(after.targets[name], moves=None) == mark
        if request.target not in (None, name):
            assert after.targets[name].moves is None
        moved = (after.targets[name].moves or MarkMoves()).of(mark.hwms)
        changed = {source for source, hwm in moved.items() if hwm != mark.hwms[source]}
        assert changed <= set(request.sources)
