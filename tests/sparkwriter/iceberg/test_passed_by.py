"""Whether main went on without a snapshot: only then may that one's files go."""

from __future__ import annotations

import pytest

from sparkwriter.iceberg.java import LakeTable


class Held(LakeTable):
    """A table of these snapshots, each with the one before it; main shows the first."""

    def __init__(self, parents: dict[int, int | None]) -> None:
        self._parents = parents

    def head(self, branch: str) -> int | None:
        return next(iter(self._parents))

    def parent(self, snapshot_id: int) -> int | None:
        return self._parents.get(snapshot_id)

    def holds(self, snapshot_id: int) -> bool:
        return snapshot_id in self._parents


@pytest.mark.parametrize(
    ("parents", "passed"),
    [
        ({5: 3, 3: 1, 1: None}, True),  # two by others, from where the write began
        ({1: None}, True),  # nothing landed
        ({5: 2, 2: 1, 1: None}, False),  # it did, and others went on from it
        ({5: 2}, False),  # it did, and has expired
        ({5: 4}, False),  # what was before is gone: nobody knows
        ({5: 1, 2: 1, 1: None}, False),  # it is there, beside main
        ({0: None}, False),  # rolled back to before the write began
    ],
)
def test_whether_main_has_passed_a_snapshot_by(
    parents: dict[int, int | None], passed: bool
) -> None:
    """Snapshot 2 was to follow 1."""
    assert Held(parents).passed_by(2, since=1) is passed
