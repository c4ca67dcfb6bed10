"""Marks as text, and what the fence makes of one that stands elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from offsets.counts import LaneCounts
from offsets.fence import Fenced, FencedWrite, Marks, Span, Straggler
from offsets.position import EntryStep, TopicPartition, job_lane

A, B = TopicPartition("shop", 0), TopicPartition("shop", 1)
OURS, THEIRS = "g@here", "g@there"


@dataclass(frozen=True)
class Write:
    """What the fence sees of a write."""

    lanes: Mapping[TopicPartition, Span]
    group: str = OURS
    step: EntryStep | None = None
    begun: int = 0
    ends_lane: bool = False
    target: str = "lake.s.t"
    batch_id: str = "b"
    counts: None = None
    folded: Mapping[TopicPartition, LaneCounts] = field(default_factory=dict)


def batch(group: str = OURS, **lanes: tuple[int, int]) -> FencedWrite:
    return Write({{"A": A, "B": B}[name]: Span(*span) for name, span in lanes.items()}, group)


def test_marks_come_back_with_who_moved_them() -> None:
    """And those of whom nothing is known, as an earlier version wrote all of them."""
    marks = Marks({B: 7, A: 5}, {B: OURS})
    assert json.loads(marks.text()) == {"shop:0": 5, "shop:1": [7, OURS]}
    assert Marks.parse(marks.text()) == marks


def test_a_batch_signs_the_marks_that_it_moves() -> None:
    """Others keep their names, and so does a lane of which it has replays alone."""
    here = Marks({A: 5, B: 7}, {A: THEIRS, B: THEIRS})
    after = here.after(batch(A=(5, 9), B=(7, 7)))
    assert after == Marks({A: 9, B: 7}, {A: OURS, B: THEIRS})


def test_a_name_that_is_taken_again_is_one_short_until_it_has_come() -> None:
    """Its own mark all the same."""
    after = Marks({A: 5}).after(batch(A=(5, 9)), waits=True)
    assert after == Marks({A: 8}, {A: OURS})


def test_a_mark_where_the_batch_begins_is_fine_whoever_moved_it() -> None:
    """A target that is taken over from another group is gone on with."""
    Marks({A: 5}, {A: THEIRS}).check(batch(A=(5, 9)))


@pytest.mark.parametrize(
    ("by", "told"), [(OURS, Straggler), (THEIRS, Fenced), ("", Fenced), ("g2@here", Fenced)]
)
def test_a_mark_that_moved_on_is_judged_by_who_moved_it(by: str, told: type[Fenced]) -> None:
    """A group of the same name in another cluster is another group."""
    with pytest.raises(Fenced) as fenced:
        Marks({A: 6}, {A: by} if by else {}).check(batch(A=(5, 9)))
    assert type(fenced.value) is told


def test_a_batch_without_a_group_has_no_stragglers() -> None:
    """Two that are nobody's are not each other's."""
    with pytest.raises(Fenced) as fenced:
        Marks({A: 6}, {}).check(batch("", A=(5, 9)))
    assert type(fenced.value) is Fenced


def test_a_mark_that_went_back_is_to_be_read_again() -> None:
    """No writer does that: the processor sees it and says that the target was rolled back."""
    with pytest.raises(Straggler, match="stands at 3, expected 5"):
        Marks({A: 3}, {A: THEIRS}).check(batch(A=(5, 9)))
    with pytest.raises(Straggler, match="stands at -1, expected 5"):
        Marks({}, {}).check(batch(A=(5, 9)))


def test_one_strangers_lane_outweighs_all_stragglers() -> None:
    """In whichever order they come."""
    marks, groups = {A: 6, B: 8}, {A: OURS, B: THEIRS}
    for lanes in ({"A": (5, 9), "B": (7, 9)}, {"B": (7, 9), "A": (5, 9)}):
        with pytest.raises(Fenced, match=THEIRS) as fenced:
            Marks(marks, groups).check(batch(**lanes))
        assert type(fenced.value) is Fenced


def test_steps_come_back_and_count_until_the_mark_passes_them() -> None:
    """A mark may be -1 then: nothing before the message is written."""
    amid = Write({A: Span(-1, -1)}, step=EntryStep(4, 2, 1))
    after = Marks().after(amid)
    assert json.loads(after.text()) == {"shop:0": [-1, OURS, [4, 2, 1]]}
    assert Marks.parse(after.text()) == after
    assert after.cover(amid)
    assert after.after(batch(A=(-1, 4))).steps == {}


def test_marks_that_an_operator_lowers_forget_the_step_above_them() -> None:
    """The whole message is applied again; one that stays where it was keeps its step."""
    marks = Marks({A: 3, B: 3}, {A: OURS}, {A: EntryStep(4, 2), B: EntryStep(4, 1)})
    assert marks.at({A: 2, B: 3}).steps == {B: EntryStep(4, 1)}
    assert marks.at({A: 3, B: 9}).steps == {A: EntryStep(4, 2)}


def test_marks_that_came_with_a_name_lift_those_of_the_table() -> None:
    """With who moved them, be it nobody known, and with how far they are amid a message."""
    table = Marks({A: 5, B: 7}, {A: THEIRS, B: THEIRS})
    renaming = Marks.renamed_by(Write({A: Span(5, 8)}, step=EntryStep(9, 1)))
    assert table.with_name(renaming) == Marks(
        {A: 8, B: 7}, {A: OURS, B: THEIRS}, {A: EntryStep(9, 1)}
    )
    assert table.lifted(Marks({A: 6, B: 2})) == Marks({A: 6, B: 7}, {B: THEIRS})


def test_a_jobs_lane_leaves_with_its_last_write_or_with_the_streams_first() -> None:
    """With whose it was, too: what is left is what a stream goes on from."""
    job = job_lane("l1")
    filled = Marks().after(Write({job: Span(-1, 0)}))
    assert filled == Marks({job: 0}, {job: OURS})
    last = Write({job: Span(0, 1), A: Span(-1, 4)}, ends_lane=True)
    assert filled.after(last) == Marks({A: 4}, {A: OURS})
    assert filled.after(batch(B=(-1, 7))) == Marks({B: 7}, {B: OURS})


def test_a_jobs_lane_is_not_lifted_into_another_table() -> None:
    """That takes the name of the one it filled."""
    old = Marks({job_lane("l1"): 3, A: 5}, {A: OURS})
    assert Marks({A: 4}).lifted(old) == Marks({A: 5}, {A: OURS})
