"""Keys whose partition is another one by now."""

from __future__ import annotations

from changes.model.partitioners import first_elsewhere
from daemon.operations.replay.conflicts import Candidate
from daemon.operations.replay.moved import doubt_added, refuse_moved
from offsets.position import TopicPartition
from sources.base.port import LogRecord


def test_a_record_whose_key_has_another_partition_by_now_is_refused() -> None:
    """In its former one it would have the whole table refused, and a later change of its row is in
    another partition, where nothing looks for it."""
    key = b'{"id":7}'
    home = next(n for n in range(6) if first_elsewhere("murmur2", (key,), 6, n) is None)
    there, other = TopicPartition("shop", home), TopicPartition("shop", (home + 1) % 6)
    made = [Candidate(at, LogRecord(5, key, b"", (), 0)) for at in (there, other)]
    made.append(Candidate(other, LogRecord(5, None, b"", (), 0)))
    refuse_moved(made, "murmur2", {"shop": 6})
    assert [len(each.problems) for each in made] == [0, 1, 0]
    assert f"belongs into partition {home} of 6 now" in made[1].problems[0]


def test_without_a_partitioner_a_record_older_than_a_partition_is_doubted() -> None:
    """If that one was added since, a later change of the row may be there."""
    old, young = TopicPartition("shop", 0), TopicPartition("shop", 1)
    firsts = {old: 100, young: 500, TopicPartition("other", 0): 900}
    made = [Candidate(old, LogRecord(5, b"k", b"", (), at)) for at in (499, 500, None)]
    made.append(Candidate(young, LogRecord(5, b"k", b"", (), 600)))
    doubt_added(made, firsts)
    assert [len(each.doubts) for each in made] == [1, 0, 1, 0]
    assert "shop:1 has no record as old as it" in made[0].doubts[0]
