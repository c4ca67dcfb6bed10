"""How a target's keys are spread over the partitions of its topic. Pure.

Partitions have no order between them. Where each key has one partition none is needed: what the
others hold is of other keys. So their lanes are written side by side, as long as this stays true.
The target keeps what it was true under, and a write that says otherwise is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from offsets.position import TopicPartition
from settings.counted import counted

UNKNOWN = "unknown"
"""The partitioner that can't be computed: that a key has one partition is believed."""


RELOAD = "`binlogd tables load` fills the table again"
"""The way out where a key may have changed its partition: nothing in the log orders the two."""


def other_form(before: str, now: str) -> str:
    """Why a record key of another form is not taken."""
    return (
        f"the record keys have another form than before ({before} before, {now} now), so a row may "
        f"have changed its partition: {RELOAD}"
    )


@dataclass(frozen=True, slots=True)
class KeyPartitioning:
    """The topic, its number of partitions, and the form of its record keys.

    ``key`` is empty where keys are not looked at. ``checked``: each record's partition was computed
    from its key and found to be the one it is in; ``fewest``: with so many of them, where some of
    the records came before more were known.
    """

    topic: str
    partitions: int
    key: str = ""
    checked: bool = False
    fewest: int | None = None

    def text(self) -> str:
        """As the target keeps it."""
        held = {"topic": self.topic, "partitions": self.partitions, "key": self.key}
        return json.dumps(held, ensure_ascii=False, sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> KeyPartitioning:
        """Read back what ``text`` wrote."""
        said = json.loads(text)
        return cls(str(said["topic"]), int(said["partitions"]), str(said["key"]))

    def is_behind(self, held: KeyPartitioning | None) -> bool:
        """Whether these rows were checked with fewer partitions than the target's rows: they have
        to be checked again."""
        if held is None or not self.checked or held.topic != self.topic:
            return False
        return (self.fewest or self.partitions) < held.partitions

    def behind(self, earlier: KeyPartitioning | None) -> KeyPartitioning:
        """Of these rows and of others that were staged before them, in one write."""
        if earlier is None:
            return self
        least = min(each.fewest or each.partitions for each in (self, earlier))
        fewest = least if least < self.partitions else None
        return replace(self, checked=self.checked and earlier.checked, fewest=fewest)

    def problem_after(
        self, held: KeyPartitioning | None, lanes: Iterable[TopicPartition]
    ) -> str | None:
        """Why rows that are spread so can't come behind those that the target holds, None where
        they can. ``held``: how these are spread, where it keeps that; ``lanes``: all it has marks
        of."""
        others = sorted({lane.topic for lane in lanes} - {self.topic})
        if held is None and others:
            return (
                f"already holds changes of {', '.join(others)}, and a key of {self.topic} may be "
                f"there too: {RELOAD}, or give each topic a target of its own"
            )
        if held is None:
            return None
        if held.topic != self.topic:
            return (
                f"its keys are spread over {held.topic}, and these are of {self.topic}: a key may "
                "be in both. Give each topic a target of its own"
            )
        if self.key and held.key and self.key != held.key:
            return other_form(held.key, self.key)
        if self.partitions < held.partitions or (
            self.partitions > held.partitions and not self.checked
        ):
            return (
                f"{self.topic} had {counted(held.partitions, 'partition')}, and has "
                f"{self.partitions} here: a key may have changed its partition: {RELOAD}"
            )
        return None


@dataclass(frozen=True, slots=True)
class Partitioned:
    """What the configuration and the broker say of a pipeline whose keys have one partition each.

    ``counts``: of each topic how many partitions it has, as far as that is known.
    """

    partitioner: str
    counts: Mapping[str, int]

    def counted(self, counts: Mapping[str, int]) -> Partitioned:
        """With these counts. A number never falls: a smaller one is older."""
        grown = {topic: max(count, self.counts.get(topic, 0)) for topic, count in counts.items()}
        return replace(self, counts={**self.counts, **grown})

    def beside(self, held: KeyPartitioning | None) -> Partitioned:
        """With the target's own number where that is larger: another member has heard of it."""
        known = held is not None and self.checked and held.topic in self.counts
        return self if held is None or not known else self.counted({held.topic: held.partitions})

    @property
    def checked(self) -> bool:
        """Whether a record's partition can be computed from its key."""
        return self.partitioner != UNKNOWN
