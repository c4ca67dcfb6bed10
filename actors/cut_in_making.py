"""A row of the table of cuts that is being made: a cut, or what withdraws earlier ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from actors.contract import messages as msg
from offsets.cuts import WITHDRAWN, Cut
from offsets.position import TopicPartition


@dataclass(slots=True)
class CutInMaking:
    """One per pipeline at a time. ``awaited``: the targets that are being tagged."""

    reached: msg.CutReached
    number: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    awaited: set[str] = field(default_factory=set)
    path: str | None = None

    def begin(
        self, number: int, tagged: Mapping[str, str], untagged: Collection[str]
    ) -> dict[str, str]:
        """Give it its number. Returns the versions that have no tag yet: they are awaited.
        ``untagged``: the sinks that have no tags."""
        self.number = number
        self.versions, self.left_out = dict(self.reached.versions), dict(self.reached.left_out)
        new = {
            name: version
            for name, version in self.versions.items()
            if tagged.get(name) != version and name.split(".")[0] not in untagged
        }
        self.awaited = set(new)
        return new

    def answered(self, target: str, problem: str | None) -> None:
        """A target is tagged, or left out for a reason."""
        self.awaited.discard(target)
        if problem is not None:
            self.left_out[target] = problem
            del self.versions[target]

    @property
    def withdraws(self) -> bool:
        """Whether it is none, and withdraws others."""
        return self.reached.asked.boundary == WITHDRAWN

    def staged(self, path: str) -> None:
        """Its row is in this file."""
        self.path = path

    def cut(self, pipeline: str) -> Cut:
        """As it is listed."""
        asked = self.reached.asked
        return Cut(
            number=self.number,
            pipeline=pipeline,
            boundary=asked.boundary,
            positions=asked.positions,
            time_ms=asked.time_ms,
            transaction=asked.transaction,
            versions=self.versions,
            left_out=self.left_out,
        )


def withdrawal(again: Mapping[TopicPartition, int]) -> msg.CutReached:
    """A row that says from where on the log is read again."""
    return msg.CutReached(msg.CutAsked({}, again, WITHDRAWN, None, None), {}, {})
