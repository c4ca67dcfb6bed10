"""How batches are laid over one another, and what several stores say together."""

from __future__ import annotations

from dataclasses import replace

from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot, TargetMark
from offsets.store import combined, merged, restricted

ONE, TWO, OTHER = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def snapshot(ids: dict[str, str], frontiers: dict[TopicPartition, int], mark: int = 0) -> Snapshot:
    partitions = {source: PartitionState(at) for source, at in frontiers.items()}
    return Snapshot("p", "g", ids, partitions, {"lake.s.t": TargetMark("v", {ONE: mark})})


def test_a_batch_replaces_what_it_names() -> None:
    """The rest stays, ids of topics that are read no more too."""
    held = snapshot({"a": "1", "b": "2"}, {ONE: 5, OTHER: 7})
    found = merged(held, snapshot({"a": "1"}, {ONE: 3, TWO: 4}, mark=2))
    assert found == snapshot({"a": "1", "b": "2"}, {ONE: 3, TWO: 4, OTHER: 7}, mark=2)


def test_the_force_text_is_the_batchs() -> None:
    """Configured without one again, an old text may be forced anew."""
    held = replace(snapshot({}, {}), forced="once")
    assert merged(held, snapshot({}, {})).forced is None


def test_nothing_of_another_group_is_carried_over() -> None:
    """Its frontiers are of other commits."""
    held = replace(snapshot({}, {OTHER: 7}), group="before")
    assert merged(held, snapshot({}, {ONE: 1})) == snapshot({}, {ONE: 1})


def test_a_member_speaks_of_its_own_partitions_alone() -> None:
    """What it remembers of others is of the past; marks are carried by every publish."""
    found = restricted(snapshot({}, {ONE: 5, TWO: 6}), (TWO,))
    assert found == snapshot({}, {TWO: 6})


def test_the_first_stores_word_comes_first() -> None:
    """A later store fills in what the first does not know."""
    first, later = snapshot({"a": "1"}, {ONE: 5}, 4), snapshot({"a": "1"}, {ONE: 9, TWO: 6}, 8)
    assert combined([first, later]) == snapshot({"a": "1"}, {ONE: 5, TWO: 6}, 4)


def test_a_store_of_a_topic_made_again_is_not_mixed_in() -> None:
    """Its offsets are of other messages: neither its frontiers nor its marks count."""
    first = replace(snapshot({"a": "new"}, {ONE: 5}), targets={})
    later = snapshot({"a": "old", "b": "2"}, {TWO: 6, OTHER: 7})
    found = combined([first, later])
    assert found is not None
    assert (found.partitions, found.targets) == (
        {ONE: PartitionState(5), OTHER: PartitionState(7)}, {},
    )  # fmt: skip
    assert found.topic_ids == {"a": "new", "b": "2"}


def test_no_store_no_word() -> None:
    """The group's commit alone is no snapshot."""
    assert combined([]) is None
