"""Marks as text, and what a writer makes of one that stands elsewhere. Pure: no table is read."""

from __future__ import annotations

import json

import pytest

from actors.contract.ports import Fenced, Span, StagedBatch, Straggler
from changes.model import Mode, TableSchema, TargetName
from offsets.position import TopicPartition
from sparkwriter.iceberg.look import Absent, check_expected, text_after, text_now
from sparkwriter.iceberg.marks import groups_of, marks_of, marks_text

A, B = TopicPartition("shop", 0), TopicPartition("shop", 1)
OURS, THEIRS = "g@here", "g@there"


def batch(group: str = OURS, **lanes: tuple[int, int]) -> StagedBatch:
    spans = {{"A": A, "B": B}[name]: Span(*span) for name, span in lanes.items()}
    target = TargetName("lake", "s", "t")
    return StagedBatch("b", target, Mode.UPSERT, TableSchema((), ()), spans, group=group)


def test_marks_come_back_with_who_moved_them() -> None:
    """And those of whom nothing is known, as an earlier version wrote all of them."""
    text = marks_text({B: 7, A: 5}, {B: OURS})
    assert json.loads(text) == {"shop:0": 5, "shop:1": [7, OURS]}
    assert (marks_of(text), groups_of(text)) == ({A: 5, B: 7}, {B: OURS})


def test_a_batch_signs_the_marks_that_it_moves() -> None:
    """Others keep their names, and so does a lane of which it has replays alone."""
    here = Absent({A: 5, B: 7}, {A: THEIRS, B: THEIRS})
    text = text_after(batch(A=(5, 9), B=(7, 7)), here)
    assert (marks_of(text), groups_of(text)) == ({A: 9, B: 7}, {A: OURS, B: THEIRS})
    assert groups_of(text_now(here)) == {A: THEIRS, B: THEIRS}


def test_a_name_that_is_taken_again_is_one_short_until_it_has_come() -> None:
    """Its own mark all the same."""
    text = text_after(batch(A=(5, 9)), Absent({A: 5}), waits=True)
    assert (marks_of(text), groups_of(text)) == ({A: 8}, {A: OURS})


def test_a_mark_where_the_batch_begins_is_fine_whoever_moved_it() -> None:
    """A target that is taken over from another group is gone on with."""
    check_expected(batch(A=(5, 9)), {A: 5}, {A: THEIRS}, {})


@pytest.mark.parametrize(
    ("by", "told"), [(OURS, Straggler), (THEIRS, Fenced), ("", Fenced), ("g2@here", Fenced)]
)
def test_a_mark_that_moved_on_is_judged_by_who_moved_it(by: str, told: type[Fenced]) -> None:
    """A group of the same name in another cluster is another group."""
    with pytest.raises(Fenced) as fenced:
        check_expected(batch(A=(5, 9)), {A: 6}, {A: by} if by else {}, {})
    assert type(fenced.value) is told


def test_a_batch_without_a_group_has_no_stragglers() -> None:
    """Two that are nobody's are not each other's."""
    with pytest.raises(Fenced) as fenced:
        check_expected(batch("", A=(5, 9)), {A: 6}, {}, {})
    assert type(fenced.value) is Fenced


def test_a_mark_that_went_back_is_to_be_read_again() -> None:
    """No writer does that: the processor sees it and says that the target was rolled back."""
    with pytest.raises(Straggler, match="stands at 3, expected 5"):
        check_expected(batch(A=(5, 9)), {A: 3}, {A: THEIRS}, {})
    with pytest.raises(Straggler, match="stands at -1, expected 5"):
        check_expected(batch(A=(5, 9)), {}, {}, {})


def test_one_strangers_lane_outweighs_all_stragglers() -> None:
    """In whichever order they come."""
    marks, groups = {A: 6, B: 8}, {A: OURS, B: THEIRS}
    for lanes in ({"A": (5, 9), "B": (7, 9)}, {"B": (7, 9), "A": (5, 9)}):
        with pytest.raises(Fenced, match=THEIRS) as fenced:
            check_expected(batch(**lanes), marks, groups, {})
        assert type(fenced.value) is Fenced
