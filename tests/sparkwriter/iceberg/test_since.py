"""Since which version a table holds an offset, by its metadata file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from changes.model.model import TargetName
from offsets.fence import Marks
from offsets.position import TopicPartition
from sparkwriter.iceberg.local_tables import HWM, since_when
from sparkwriter.kit.queries import NoAnswer, Since

LANE, OTHER = TopicPartition("shop", 0), TopicPartition("shop", 1)
T = TargetName("lake", "s", "t")


def metadata(
    folder: Path, *marks: Mapping[TopicPartition, int] | str | None, first: int = 1
) -> Path:
    """Snapshots 1, 2, ... each on top of the one before; None: another's, without marks."""
    snapshots: list[dict[str, Any]] = []
    for number, mark in enumerate(marks, 1):
        text = Marks(mark).text() if isinstance(mark, Mapping) else mark
        snapshots.append(
            {"snapshot-id": number, "timestamp-ms": number * 1000,
             "summary": {} if text is None else {HWM: text}}
            | ({"parent-snapshot-id": number - 1} if number > 1 else {})
        )  # fmt: skip
    path = folder / "v1.metadata.json"
    found = {"snapshots": snapshots[first - 1 :]}
    path.write_text(json.dumps(found | ({"current-snapshot-id": len(marks)} if marks else {})))
    return path


def since(path: Path, offset: int, lane: TopicPartition = LANE) -> Since | None:
    return since_when(path, T, lane, offset)


def test_the_first_version_that_holds_it_is_found(tmp_path: Path) -> None:
    """Others' snapshots hold what those below them do, and are nobody's first."""
    path = metadata(tmp_path, {LANE: 4}, None, {LANE: 4, OTHER: 9}, None, {LANE: 9, OTHER: 9}, None)
    assert [since(path, offset) for offset in (0, 4, 5, 9, 10)] == [
        Since("1", 1000, False), Since("1", 1000, False), Since("5", 5000, False),
        Since("5", 5000, False), None,
    ]  # fmt: skip
    assert since(path, 9, OTHER) == Since("3", 3000, False)


def test_what_was_put_back_counts_from_where_it_came_again(tmp_path: Path) -> None:
    """A reset lowered the marks: what the table held before is applied again."""
    path = metadata(tmp_path, {LANE: 9}, {LANE: 2}, {LANE: 9})
    assert since(path, 9) == Since("3", 3000, False)
    assert since(path, 2) == Since("1", 1000, False)


def test_where_older_ones_have_expired_it_says_so(tmp_path: Path) -> None:
    path = metadata(tmp_path, {LANE: 4}, {LANE: 5}, {LANE: 9}, first=2)
    assert since(path, 4) == Since("2", 2000, True)
    assert since(path, 9) == Since("3", 3000, False)
    assert since(metadata(tmp_path), 0) is None


def test_marks_that_are_none_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match=HWM.replace(".", r"\.")):
        since(metadata(tmp_path, "nonsense"), 1)
    with pytest.raises(NoAnswer, match="can't be read"):
        since(tmp_path / "no.json", 1)
