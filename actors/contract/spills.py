"""Values of a spill: the raw messages of a target in quarantine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from changes.model import TableName
from offsets.position import TopicPartition


class SpillRecord(NamedTuple):
    """A raw message of a target in quarantine."""

    source: TopicPartition
    offset: int
    ddl: bool
    value: bytes
    table: TableName | None = None
    """See ``Share.table``: set when the spill is read, by the routes of that time."""


@dataclass(frozen=True, slots=True)
class SpillState:
    """What a spill holds, durably. ``lanes``: the first and last offset of each."""

    bytes: int = 0
    messages: int = 0
    lanes: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
