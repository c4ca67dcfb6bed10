"""How a collector is: when it is on its way up, and from when on it reads the source's log."""

from __future__ import annotations

from collector.figures import begins, reads_log

READS = {"file": "bin.000001", "pos": "4"}
LOOKS = {**READS, "snapshot": "INITIAL", "snapshot_completed": "false"}


def test_it_reads_the_log_once_the_tables_were_looked_at() -> None:
    """Debezium's position says so long that it is of a snapshot."""
    assert [reads_log(one) for one in (None, {}, LOOKS, READS)] == [False, False, False, True]


def test_it_is_looked_at_soon_until_it_reads() -> None:
    """One that nobody but an operator brings up is not."""
    assert [begins(state, None) for state in ("waiting", "starting", "running")] == [True] * 3
    assert begins("running", LOOKS)
    assert not begins("running", READS)
    assert not any(begins(state, None) for state in ("lost", "paused", "failed", "unfit", "away"))
