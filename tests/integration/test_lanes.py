"""A table that comes in two partitions: kept equal by the positions in the messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from settings.exit import Exit
from tests.integration.rig import Rig, canal


def ticdc(table: str, kind: str, commit: int, row: Mapping[str, Any]) -> bytes:
    """A row's change as TiCDC writes it, committed at ``commit``."""
    return canal(table, kind, [row], id=0, _tidb={"commitTs": commit})


def row(key: int, name: str = "a") -> dict[str, Any]:
    return {"id": key, "name": name, "qty": key}


def test_two_partitions_of_one_table_end_as_the_source_has_it(rig: Rig) -> None:
    """The second partition comes hours late: what it has of a key is older, newer or of no other.

    Key 1 was deleted and 2 changed since; 3 was changed after, 4 is known to the late one alone.
    """
    rig.topic = f"{rig.topic}-two"
    rig.create_topic(rig.topic, partitions=2)
    config = rig.write_config(p=rig.pipeline(topics=[rig.topic], positions="tidb-commit-ts"))
    t, base = f"{rig.db}.orders", 449_000_000_000_000_000
    rig.produce(
        ticdc(t, "DELETE", base + 20, row(1)),
        ticdc(t, "UPDATE", base + 21, row(2, "new")),
        ticdc(t, "UPDATE", base + 22, row(3, "old")),
        partition=1,
    )
    assert rig.run(config) is Exit.OK
    rig.produce(
        ticdc(t, "INSERT", base + 1, row(1)),
        ticdc(t, "INSERT", base + 2, row(2, "older")),
        ticdc(t, "UPDATE", base + 30, row(3, "newest")),
        ticdc(t, "INSERT", base + 4, row(4)),
    )
    assert rig.run(config) is Exit.OK
    found = [each[:3] for each in rig.rows("orders")]
    assert found == [(2, "new", 2), (3, "newest", 3), (4, "a", 4)]


def test_a_table_made_without_positions_is_refused_a_second_partition(rig: Rig) -> None:
    """Its rows say nothing of when they were changed; the message says what to do."""
    two = f"{rig.topic}-two"
    rig.create_topic(two)
    t = f"{rig.db}.orders"
    rig.produce(ticdc(t, "INSERT", 5, row(1)))
    both = {"topics": [rig.topic, two]}
    rig.run(rig.write_config(p=rig.pipeline(**both)))
    rig.produce(ticdc(t, "INSERT", 6, row(1)), topic=two)
    guarded = rig.write_config(p=rig.pipeline(**both, positions="tidb-commit-ts"))
    assert rig.run(guarded) is Exit.PIPELINE_FAILED
    assert "was made without the positions tidb-commit-ts: rebuild it" in rig.stderr
