"""Keys whose partition is another one by now."""

from __future__ import annotations

from changes.model.partitioners import first_elsewhere
from daemon.operations.replay.conflicts import Candidate
from daemon.operations.replay.moved import refuse_moved
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
