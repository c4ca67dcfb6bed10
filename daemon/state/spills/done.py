"""``.done`` files: what is left of a spill that was replayed, up to where that was in each lane."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from pathlib import Path

from actors.runtime.files import write_durably
from offsets.position import TopicPartition


def read_done(path: Path) -> dict[TopicPartition, int]:
    """For each lane, up to where its spills were replayed; empty if that can't be read."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return {TopicPartition.parse(source): int(last) for source, last in said.items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def write_done(path: Path, lasts: Mapping[TopicPartition, int]) -> None:
    """Write the ``.done`` file durably, before its spill is deleted. A later one repeats an earlier
    one's lanes, because the earlier one may still be listed. Raises OSError."""
    write_durably(path, json.dumps({str(source): last for source, last in lasts.items()}))


def forget(folder: Path, kind: str, kept: Set[Path]) -> None:
    """Remove the files of that kind that nobody needs. Raises OSError."""
    for path in folder.glob(f"*.{kind}"):
        if path not in kept:
            path.unlink()
